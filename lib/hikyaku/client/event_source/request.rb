# frozen_string_literal: true

require "uri"
require_relative "../publisher/endpoint"
require_relative "../../version"
require_relative "errors"

module Hikyaku
  class EventSource
    # Asks for a stream, and follows redirects. Token and headers of the caller go to the origin of its URL only.
    class Request
      MAX_REDIRECTS = 10
      REDIRECTS = [301, 302, 303, 307, 308].freeze
      HEADERS = {
        "cache-control" => "no-store",
        "user-agent" => "hikyaku/#{VERSION}"
      }.freeze
      # A hub that has no MessagePack has event streams.
      ACCEPT = {events: "text/event-stream", msgpack: "application/vnd.msgpack, text/event-stream;q=0.9"}.freeze
      CODINGS = %i[identity gzip].freeze
      private_constant :MAX_REDIRECTS, :REDIRECTS, :HEADERS, :ACCEPT, :CODINGS

      def initialize(endpoint, method:, params:, headers:, format: :events, coding: :identity)
        raise ConfigError, "method must be :get or :query, not #{method.inspect}" unless %i[get query].include?(method)
        raise ConfigError, "format must be :events or :msgpack, not #{format.inspect}" unless ACCEPT.key?(format)
        raise ConfigError, "coding must be :identity or :gzip, not #{coding.inspect}" unless CODINGS.include?(coding)
        @endpoint = endpoint
        @method = method
        @form = URI.encode_www_form(params)
        @headers = headers.to_h { |name, value| [name.to_s.downcase, value.to_s] }
        @wanted = {"accept" => ACCEPT.fetch(format), "accept-encoding" => coding.to_s, **HEADERS}.freeze
      end

      def credentials? = @headers.key?("authorization") || @headers.key?("cookie")

      def perform(last_event_id:, token:, use:)
        endpoint = @endpoint
        method = @method
        (MAX_REDIRECTS + 1).times do
          request = build(endpoint, method, last_event_id, token)
          response = use.call(endpoint.connection) do |connection|
            connection.request(request) do |head|
              return yield(head) unless redirect?(head)
              # Not its body, which may be endless.
              break head
            end
          end
          method = :get if response.code == "303"
          endpoint = follow(endpoint, response["location"])
        end
        raise Refused, "#{@endpoint} redirects more than #{MAX_REDIRECTS} times"
      end

      def to_s = @endpoint.to_s

      private

      def redirect?(response) = REDIRECTS.include?(Integer(response.code, 10)) && !response["location"].nil?

      def follow(endpoint, location)
        other = endpoint.redirected(location)
        return other unless endpoint.uri.scheme == "https" && other.uri.scheme != "https"
        raise Refused, "#{endpoint} redirects to #{other}, which is not encrypted"
      rescue ConfigError => error
        raise Refused, error.message
      end

      def build(endpoint, method, last_event_id, token)
        request = Net::HTTPGenericRequest.new(method.to_s.upcase, method == :query, true, target(endpoint, method), @wanted)
        request["host"] = endpoint.host
        if endpoint.same_origin?(@endpoint)
          @headers.each { |name, value| request[name] = value }
          request["authorization"] = "Bearer #{token}" if token
        end
        request["last-event-id"] = last_event_id unless last_event_id.empty?
        if method == :query
          request["content-type"] = "application/x-www-form-urlencoded"
          request.body = @form
        end
        request
      end

      # Whoever redirects has seen the parameters and says himself what is to be asked instead.
      def target(endpoint, method)
        return endpoint.request_target if method == :query || @form.empty? || !endpoint.equal?(@endpoint)
        "#{endpoint.request_target}#{endpoint.uri.query ? "&" : "?"}#{@form}"
      end
    end
  end
end
