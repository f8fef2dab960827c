# frozen_string_literal: true

require "socket"
require_relative "pump"

module Hikyaku
  class Web
    # The body of an event stream, as Rack 3 has it: the server calls it with what it writes to.
    #
    # Where that is the raw socket, the reactor takes it and the call returns at once, so that no thread of the server is
    # held. Where it is not (TLS in Puma, HTTP/2, another server's own object), the call pumps until the stream ends.
    class StreamBody
      # Whose stream it is: for a server that hands subscribers to the engine by itself, and then neither calls nor closes.
      attr_reader :subscriber

      def initialize(hub, reactor, subscriber, owned = false)
        @hub = hub
        @reactor = reactor
        @subscriber = subscriber
        @owned = owned
        @called = false
      end

      def call(stream)
        @called = true
        if stream.is_a?(BasicSocket)
          @reactor.attach(@subscriber, @owned ? stream : stream.dup)
        else
          Pump.new(stream, @reactor, @subscriber).run
        end
      rescue Exception # standard:disable Lint/RescueException
        # There is no descriptor left, say, or the server has given the request up: nobody else would know of it.
        @hub.unsubscribe(@subscriber)
        raise
      end

      # The server is done with the response. The stream is not, once it was called.
      def close
        @hub.unsubscribe(@subscriber) unless @called
      end
    end
  end
end
