# frozen_string_literal: true

require "securerandom"
require "uri"
require_relative "../../version"
require_relative "answer"
require_relative "attempts"
require_relative "endpoint"
require_relative "errors"
require_relative "post"
require_relative "retries"

module Hikyaku
  class Publisher
    # A hub that is reached over HTTP.
    #
    # Mercure draft-08, section "Publication".
    class RemoteHub
      MAX_ANSWER_BYTES = 65_536
      HEADERS = {
        "content-type" => "application/x-www-form-urlencoded",
        "accept" => "text/plain, application/problem+json, */*;q=0.1",
        "accept-encoding" => "identity",
        "user-agent" => "hikyaku/#{VERSION}"
      }.freeze
      # Trying these again at once would give the same, or take as long again.
      HOPELESS = [OpenSSL::SSL::SSLError, Net::OpenTimeout].freeze
      private_constant :MAX_ANSWER_BYTES, :HEADERS, :HOPELESS

      def initialize(endpoint, tokens:, pool:, retry_unknown:, retries:, hint: nil)
        @endpoint = endpoint
        @tokens = tokens
        @pool = pool
        @retry_unknown = retry_unknown
        @retries = retries
        @hint = hint
        @marker = nil
      end

      def publish(fields, idempotency_key)
        body = form(fields)
        key = idempotency_key || SecureRandom.uuid
        attempts = Attempts.new(tokens: @tokens, retries: @retries.call) { may_repeat? }
        attempts.run do |token, doubtful|
          answer = exchange(request(body, key, token, doubtful))
          raise answer.failure(@endpoint, hint: @hint) unless answer.success?
          answer.event_id || fields[:id]
        end
      end

      # `DELETE {hub path}/subscribers/{subject}`, which Hikyaku's hub alone knows. Repeated where a publish is not: what
      # is closed stays closed.
      def disconnect(subject, revoke)
        target = "#{@endpoint.uri.path}/subscribers/#{escape(subject)}#{"?revoke=1" if revoke}"
        Attempts.new(tokens: @tokens, retries: @retries.call) { true }.run do |token|
          answer = exchange(authorized(Net::HTTP::Delete.new(target, HEADERS.slice("user-agent")), token))
          answer.disconnected || raise(answer.failure(@endpoint, hint: @hint))
        end
      end

      # Closes what is not in use; publishing afterwards opens again.
      def close = @pool.clear

      def to_s = @endpoint.to_s

      private

      def may_repeat? = (@retry_unknown == :auto) ? !@marker.nil? : @retry_unknown

      def request(body, key, token, doubtful)
        request = authorized(Post.new(@endpoint.request_target, HEADERS), token)
        request["idempotency-key"] = key
        # So that a hub that was restarted in between, and has forgotten the key, does not publish a second time.
        request[Answer::MARKER] = @marker if doubtful && @marker
        request.body = body
        request
      end

      def authorized(request, token)
        request["host"] = @endpoint.host
        request["authorization"] = "Bearer #{token}" if token
        request
      end

      def exchange(request)
        connection = connect
        whole = false
        response, body, whole = receive(connection, request)
        remember(connection, response)
        Answer.new(response, body, whole: whole)
      rescue *Endpoint::NETWORK_ERRORS => error
        raise OutcomeUnknown, "#{@endpoint} gave no whole answer (#{error.class}) after the update was sent: it may have been published or not"
      ensure
        whole ? @pool.give_back(connection) : connection&.discard
      end

      def receive(connection, request)
        head = nil
        body = +""
        catch(:enough) do
          connection.request(request) do |response|
            head = response
            response.read_body do |bytes|
              body << bytes
              throw :enough, [head, body, false] if body.bytesize > MAX_ANSWER_BYTES
            end
          end
          # Net::HTTP takes a body that is cut short for a whole one.
          raise EOFError if body.bytesize < (head.content_length || 0)
          [head, body, true]
        end
      end

      def connect
        @pool.take
      rescue *Endpoint::NETWORK_ERRORS => error
        transient = HOPELESS.none? { |kind| error.is_a?(kind) }
        raise Unreachable.new("#{@endpoint} cannot be reached: #{error.message}", transient: transient)
      end

      def remember(connection, response)
        connection.kept_seconds = response["keep-alive"].to_s[/timeout=(\d{1,6})/i, 1]&.to_f
        # Not what a gateway answers in the hub's place.
        @marker = response[Answer::MARKER] if response.is_a?(Net::HTTPSuccess)
      end

      # RFC 3986 section 2.3: everything but unreserved characters.
      def escape(text) = text.b.gsub(/[^A-Za-z0-9._~-]/n) { |byte| format("%%%02X", byte.ord) }

      def form(fields)
        pairs = fields[:topics].map { |topic| ["topic", topic] }
        pairs << ["data", fields[:data]] unless fields[:data].empty?
        pairs << ["private", "on"] if fields[:private]
        pairs << ["id", fields[:id]] if fields[:id]
        pairs << ["type", fields[:type]] if fields[:type]
        pairs << ["retry", fields[:retry_after].to_s] if fields[:retry_after]
        URI.encode_www_form(pairs)
      end
    end
  end
end
