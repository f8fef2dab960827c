# frozen_string_literal: true

module Hikyaku
  class Server
    # Waits for TERM, INT and HUP, and for the process itself to say that it is over.
    class Signals
      STOP = %w[TERM INT].freeze
      # Keys are to be read again. A terminal that closes sends it too, which is no reason to stop a hub.
      RELOAD = "HUP"

      def initialize(&on_stop)
        @on_stop = on_stop
        @reader, @writer = IO.pipe
        @previous = {}
      end

      def install
        STOP.each do |name|
          @previous[name] = trap(name) do
            tell(name)
            @on_stop&.call
          end
        end
        @previous[RELOAD] = trap(RELOAD) { tell(RELOAD) }
        self
      end

      def wait = @reader.gets.to_s.chomp

      def tell(name)
        @writer.write_nonblock("#{name}\n")
      rescue IOError, SystemCallError
        nil
      end

      def restore
        @previous.each { |name, handler| trap(name, handler || "DEFAULT") }
        @previous.clear
        [@reader, @writer].each(&:close)
      end

      private

      def trap(name, ...) = Signal.trap(name, ...)
    end
  end
end
