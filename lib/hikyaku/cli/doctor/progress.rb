# frozen_string_literal: true

require_relative "../client"

module Hikyaku
  module CLI
    class Doctor < Client
      # What is waited for: on a terminal in one line that goes away again, elsewhere only what takes long, a line each.
      class Progress
        CLEAR = "\r\e[K"
        private_constant :CLEAR

        def initialize(out)
          @out = out
          @terminal = out.respond_to?(:tty?) && out.tty?
          @said = nil
        end

        def call(what, seconds)
          return @out.print("#{CLEAR}… #{CLI.printable(what)}#{", #{seconds.ceil} s" if seconds}") if @terminal
          return if seconds.nil? || what == @said
          @said = what
          @out.puts("hikyaku: #{CLI.printable(what)} (#{seconds.ceil} s)")
        end

        def clear
          @out.print(CLEAR) if @terminal
        end
      end
    end
  end
end
