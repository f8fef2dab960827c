# frozen_string_literal: true

require "socket"

module Hikyaku
  class Web
    # Stands between the reactor and what a server writes to, where the server does not give its socket away: the reactor has
    # one end of a pair of sockets, a thread of the server moves what comes out of the other. A slow reader is blocked
    # there as it would be at a socket of its own.
    class Pump
      # Bytes that are moved at once.
      PORTION = 65_536
      private_constant :PORTION

      def initialize(stream, reactor, subscriber)
        @stream = stream
        @reactor = reactor
        @subscriber = subscriber
      end

      # Moves bytes until either side ends the stream.
      def run
        outlet, inlet = UNIXSocket.pair
        @reactor.attach(@subscriber, inlet)
        loop do
          @stream.write(outlet.readpartial(PORTION))
          @stream.flush if @stream.respond_to?(:flush)
        end
      rescue IOError, SystemCallError
        nil
      ensure
        outlet&.close
        @stream.close if @stream.respond_to?(:close)
      end
    end
  end
end
