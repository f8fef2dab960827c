# frozen_string_literal: true

require "socket"
require_relative "../hub/client_address"
require_relative "problem"
require_relative "subscribe/negotiation"
require_relative "subscription_reader"

module Hikyaku
  class Web
    # GET, HEAD and QUERY of the hub's URL.
    #
    # Mercure draft-08, sections "Subscription", "Subscribers" and
    # "Reconnection, State Reconciliation, and Event Sourcing".
    class Subscribe
      HEADERS = {
        "cache-control" => "no-store, no-transform",
        "x-accel-buffering" => "no",
        **Problem::NOSNIFF
      }.freeze
      # The content of an answer to HEAD, of a length that servers do not know: no array, for which they would say 0.
      NOTHING = [].each.freeze
      CLOSING = {"connection" => "close"}.freeze
      # Of each stream format and coding.
      STREAM_HEADERS = %i[events message_pack].product(%i[identity gzip]).to_h do |format, coding|
        [[format, coding], Negotiation.headers(format, coding).merge(HEADERS).freeze]
      end.freeze
      CLOSING_HEADERS = STREAM_HEADERS.transform_values { |headers| headers.merge(CLOSING).freeze }.freeze
      # The header with which a client asks for a stream that it can change, and gets what that takes: see Change.
      CHANGEABLE = "HTTP_HIKYAKU_STREAM"
      # Its value where the events are to name the matchers that selected them, too.
      NAMING = "matchers"
      private_constant :HEADERS, :STREAM_HEADERS, :NOTHING, :CLOSING, :CLOSING_HEADERS, :CHANGEABLE, :NAMING

      def initialize(hub, reactor, authenticator, reader, config)
        @hub = hub
        @reactor = reactor
        @authenticator = authenticator
        @reader = reader
        @config = config
        @counts_loopback = config.counts_loopback?
        @negotiation = Negotiation.new(hub)
      end

      def call(request)
        raise Problem.new(503, "the hub is stopping", headers: {"retry-after" => "1"}) if @hub.stopped?
        grant, cursor = @reader.read(request) { form_of(request) }
        choice = @negotiation.call(request.header("HTTP_ACCEPT"), request.header("HTTP_ACCEPT_ENCODING"))
        return head(grant, cursor, choice) if request.method == "HEAD"
        stream_to(request, grant, cursor, choice)
      rescue TooManyConnections => error
        raise Problem.new(429, error.message, headers: {"retry-after" => (1 + @hub.reconnection_delay / 1000).to_s, **closing(request)})
      rescue PatternsTooCostly => error
        raise Problem.new(429, error.message, reason: "patterns_too_costly", headers: {"retry-after" => (1 + @hub.reconnection_delay / 1000).to_s, **closing(request)})
      rescue InvalidToken => error
        @authenticator.invalid!(:subscriber, error)
      end

      private

      def form_of(request)
        (request.method == "QUERY" && request.body?) ? request.form(limit: @config.max_request_bytes) : []
      end

      # What a stream would begin with; and for whoever asks for the newest event with an empty cursor, where to begin later: there
      # need not be an event for that.
      def head(grant, cursor, choice)
        headers = STREAM_HEADERS[choice].merge(@reader.headers(cursor && @hub.resolve(cursor, grant)))
        headers["hikyaku-cursor"] = @hub.cursor(grant) if cursor == ""
        [200, headers, NOTHING]
      end

      # Whose connection is not kept: a stream ends with it, and who is one too many is not to hold another's place.
      def closes?(request) = request.env["SERVER_PROTOCOL"].to_s.start_with?("HTTP/1")

      def closing(request)
        return {} unless closes?(request)
        return CLOSING unless request.env.key?("puma.socket")
        # Puma goes by what the client says, and then says so itself.
        request.env["HTTP_CONNECTION"] = "close"
        {}
      end

      def stream_to(request, grant, cursor, choice)
        format, coding = choice
        asked = request.header(CHANGEABLE)
        naming = asked == NAMING && format == :events
        changeable = asked == "1" || naming
        subscriber = @hub.subscribe(grant, last_event_id: cursor, address: counted(request.address), changeable: changeable, naming: naming,
          format: format, coding: coding)
        request.granted(grant)
        stream = StreamBody.new(@hub, @reactor, subscriber, request.env.key?("puma.socket"))
        headers = (closes?(request) ? CLOSING_HEADERS : STREAM_HEADERS)[choice].merge(@reader.headers(subscriber.last_event_id))
        capability = changeable && @hub.capability(subscriber)
        headers["hikyaku-stream"] = capability if capability
        response = [200, headers, stream]
      ensure
        # A server may interrupt whoever takes too long.
        @hub.unsubscribe(subscriber) if subscriber && !response
      end

      # The address by which a subscriber is counted, if any.
      def counted(address) = (@counts_loopback || !Hub::ClientAddress.loopback?(address)) ? address : nil
    end

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
