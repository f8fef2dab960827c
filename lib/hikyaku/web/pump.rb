# frozen_string_literal: true

module Hikyaku
  class Web
    # Stands for a socket that the server does not give away: the reactor hands it bytes, a thread of the server writes
    # them. It holds one portion at a time, so a slow reader is blocked here as it would be at a socket.
    class Pump
      # @param stream [#write] the server's; `flush` and `close` are called where it has them
      # @param reactor [Reactor]
      # @param subscriber [Hub::Subscriber]
      def initialize(stream, reactor, subscriber)
        @stream = stream
        @reactor = reactor
        @subscriber = subscriber
        @mutex = Mutex.new
        @changed = ConditionVariable.new
        @bytes = nil
        @refused = false
        @closed = false
      end

      # Moves bytes until either side ends the stream.
      #
      # @return [void]
      def run
        @reactor.attach(@subscriber, self)
        while (bytes = portion)
          @stream.write(bytes)
          @stream.flush if @stream.respond_to?(:flush)
          @reactor.writable(@subscriber) if written
        end
      rescue IOError, SystemCallError
        nil
      ensure
        @closed = true
        @reactor.hung_up(@subscriber)
        @stream.close if @stream.respond_to?(:close)
      end

      # As a socket's: takes the bytes, or refuses while others are being written.
      #
      # @param bytes [String]
      # @return [Integer, :wait_writable]
      # @raise [IOError] the stream has ended
      def write_nonblock(bytes, exception: true)
        @mutex.synchronize do
          raise IOError, "closed stream" if @closed
          if @bytes
            @refused = true
            return :wait_writable
          end
          @bytes = bytes
          @changed.signal
        end
        bytes.bytesize
      end

      # Ends the stream after what was taken.
      #
      # @return [void]
      def close
        @mutex.synchronize do
          @closed = true
          @changed.signal
        end
      end

      # @return [Boolean]
      def closed? = @closed

      private

      def portion
        @mutex.synchronize do
          @changed.wait(@mutex) until @bytes || @closed
          @bytes
        end
      end

      # @return [Boolean] somebody was refused meanwhile
      def written
        @mutex.synchronize do
          @bytes = nil
          refused = @refused
          @refused = false
          refused
        end
      end
    end
  end
end
