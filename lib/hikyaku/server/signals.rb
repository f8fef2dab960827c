# frozen_string_literal: true

module Hikyaku
  class Server
    # Waits for TERM and INT, and for the process itself to say that it is over.
    class Signals
      STOP = %w[TERM INT].freeze
      # There is nothing to read again; a terminal that closes is no reason to stop a hub.
      IGNORED = %w[HUP].freeze
      private_constant :IGNORED

      def initialize
        @reader, @writer = IO.pipe
        @previous = {}
      end

      # @return [self]
      def install
        STOP.each { |name| @previous[name] = trap(name) { tell(name) } }
        IGNORED.each { |name| @previous[name] = trap(name, "IGNORE") }
        self
      end

      # @return [String] "TERM", "INT", or what was told
      def wait = @reader.gets.to_s.chomp

      # @param name [String]
      # @return [void]
      def tell(name)
        @writer.write_nonblock("#{name}\n")
      rescue IOError, SystemCallError
        nil
      end

      # @return [void]
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
