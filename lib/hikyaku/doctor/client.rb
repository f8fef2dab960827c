# frozen_string_literal: true

require "uri"
require_relative "../version"
require_relative "connection"
require_relative "exchange"
require_relative "stream"

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
  end
end
