# frozen_string_literal: true

require "json"
require "uri"
require_relative "../version"
require_relative "connection"
require_relative "../support/clock"
require_relative "../http/parser"
require_relative "../client/event_source/parser"

module Hikyaku
  class Doctor
    # Sends requests, each on a connection of its own, as the clients of a hub do who come from everywhere.
    class Client
      # Seconds for whatever should take none.
      PATIENCE = 10
      FORM = "application/x-www-form-urlencoded"
      HEADERS = {"accept-encoding" => "identity", "user-agent" => "hikyaku-doctor/#{VERSION}"}.freeze
      private_constant :PATIENCE, :FORM, :HEADERS

      def initialize(place)
        @place = place
      end

      def request(method, target = @place.target, headers: {}, form: nil)
        exchange = start(Exchange, method, target, headers.merge("connection" => "close"), form)
        exchange.wait(PATIENCE)
        raise ConnectionFailed, "#{@place}: #{silence(exchange)}" unless exchange.head
        exchange
      ensure
        exchange&.close
      end

      def stream(parameters, headers: {})
        start(Stream, "GET", with_query(parameters), {"accept" => "text/event-stream", "cache-control" => "no-store"}.merge(headers), nil)
      end

      def connect(alpn: ["http/1.1"], verify: true)
        connection = Connection.new(@place, seconds: PATIENCE, alpn: alpn, verify: verify)
        yield connection
      ensure
        connection&.close
      end

      private

      def start(kind, method, target, headers, form)
        connection = Connection.new(@place, seconds: PATIENCE)
        kind.new(connection, method, message(method, target, headers, form && URI.encode_www_form(form)), seconds: PATIENCE)
      rescue
        connection&.close
        raise
      end

      def message(method, target, headers, body)
        fields = {"host" => @place.authority, **HEADERS}.merge(headers)
        fields = fields.merge("content-type" => FORM, "content-length" => body.bytesize.to_s) if body
        "#{method} #{target} HTTP/1.1\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}"
      end

      def with_query(parameters)
        "#{@place.target}#{@place.target.include?("?") ? "&" : "?"}#{URI.encode_www_form(parameters)}"
      end

      def silence(exchange)
        case exchange.ended
        when nil then "no answer came within #{PATIENCE} s"
        when :malformed then "the answer is no HTTP"
        else "the connection was closed without an answer"
        end
      end
    end

    # One request, and what comes back: when the head, when each piece of the body, and how it ended.
    #
    # Times are those of the monotonic clock, but for `asked_at` and `answered_at`, which are compared with a server's clock.
    class Exchange
      include Support::Clock

      # Of a body that is kept; what follows is counted only.
      KEPT_BYTES = 262_144
      private_constant :KEPT_BYTES

      attr_reader :head, :sent_at, :head_at, :last_byte_at, :ended, :ended_at, :body, :asked_at, :answered_at

      def initialize(connection, method, bytes, seconds:)
        @connection = connection
        @parser = HTTP::Parser.new(:response)
        @parser.request_method = method
        @body = +"".b
        @asked_at = Time.now
        connection.write(bytes, seconds)
        @sent_at = now
      end

      # Reads what comes until the block is content, the time is over, or nothing more can come.
      def wait(seconds)
        deadline = now + seconds
        loop do
          return true if block_given? ? yield : complete?
          left = deadline - now
          return false if @ended || left <= 0
          pump(left)
        end
      end

      # Reads once.
      def pump(seconds = 0)
        return if @ended
        case (bytes = @connection.read(seconds))
        when :nothing then nil
        when :reset then finish(:reset)
        when nil then close_parser
        else
          @parser << bytes
          parse
        end
      end

      def complete? = @ended == :complete

      def status = @head&.status

      def [](name)
        values = @head ? @head.values(name) : []
        values.join(", ").force_encoding(Encoding::UTF_8).scrub("?") unless values.empty?
      end

      def type = self["content-type"]&.slice(/\A[^;\s]*/)&.downcase

      def json
        document = JSON.parse(@body)
        document if document.is_a?(Hash)
      rescue JSON::ParserError, EncodingError
        nil
      end

      def problem? = type == "application/problem+json"

      def detail = (json&.fetch("detail", nil).to_s if problem?)

      def head_seconds = (@head_at - @sent_at if @head_at)

      def io = @connection.io

      def address = @connection.address

      def close = @connection.close

      private

      def parse
        while (part = @parser.next)
          case part
          when :end then return finish(:complete)
          when String then take(part)
          else begin_answer(part)
          end
        end
      rescue HTTP::Parser::Malformed
        finish(:malformed)
      end

      def begin_answer(head)
        return if head.interim?
        @head = head
        @head_at = now
        @answered_at = Time.now
      end

      # A stream without a length ends with its connection, and is then complete for HTTP: here it was closed.
      def close_parser
        @parser.close
        parse
        @ended = :closed if @ended.nil? || (@ended == :complete && @head&.framing == :until_close)
        @ended = :closed if @ended == :malformed && @head
        @ended_at ||= now
      end

      def take(bytes)
        @last_byte_at = now
        @body << bytes.byteslice(0, KEPT_BYTES - @body.bytesize) if @body.bytesize < KEPT_BYTES
      end

      def finish(how)
        @ended = how
        @ended_at = now
      end
    end

    # An event stream, with the time at which each event and each comment came.
    #
    # HTML standard, section "Server-sent events".
    class Stream < Exchange
      extend Support::Clock

      Arrival = Struct.new(:event, :at)
      COMMENT = /[\r\n]:/n
      # Arrivals and comments that are kept.
      MOST = 10_000
      private_constant :COMMENT, :MOST

      attr_reader :arrivals, :comments, :size

      # As Exchange.
      def initialize(*, **)
        @events = EventSource::Parser.new
        @arrivals = []
        @comments = []
        @size = 0
        @last = "\n".b
        super
      end

      # Reads several streams until the block is content or the time is over.
      def self.wait_all(streams, seconds)
        deadline = now + seconds
        loop do
          streams.each(&:pump)
          return true if yield
          open = streams.reject(&:ended)
          return false if open.empty? || (left = deadline - now) <= 0
          # What TLS has read already is not seen by select, so it does not wait long.
          IO.select(open.map(&:io), nil, nil, [left, 0.05].min)
        end
      end

      def stream? = status == 200 && type == "text/event-stream"

      def arrival(id) = @arrivals.find { |arrival| arrival.event.id == id }

      def retry = @events.retry

      def coded? = !["", "identity"].include?(self["content-encoding"].to_s.downcase)

      private

      def take(bytes)
        @size += bytes.bytesize
        super
        interpret(bytes) unless coded?
      rescue EventSource::EventTooLarge
        finish(:malformed)
      end

      # An answer that is no stream is kept as it is.
      def interpret(bytes)
        return unless stream?
        found = (@last + bytes).scan(COMMENT).size
        @comments.concat([last_byte_at] * found) if @comments.size < MOST
        @last = bytes.byteslice(-1)
        @events.feed(bytes) { |event| @arrivals << Arrival.new(event, last_byte_at) if @arrivals.size < MOST }
      end
    end
  end
end
