# frozen_string_literal: true

require "json"
require_relative "../problem"

module Hikyaku
  class Web
    class DeveloperPage
      # Reads and checks the JSON that the page's helpers are called with. Raises {Problem}.
      module Requests
        MAX_TOPICS = 100
        MAX_SECONDS = 30 * 86_400
        # What browsers keep of one cookie, less room for its name and attributes.
        MAX_COOKIE_BYTES = 3_800
        MATCHER_KEYS = %w[match match_type].freeze
        private_constant :MAX_TOPICS, :MAX_SECONDS, :MAX_COOKIE_BYTES, :MATCHER_KEYS

        module_function

        def parse(env, max_bytes:)
          type = env["CONTENT_TYPE"].to_s[/\A[^;\s]+/].to_s.downcase
          raise Problem.new(415, "send a JSON object, with Content-Type: application/json") unless type == "application/json"

          bytes = env["rack.input"]&.read(max_bytes + 1).to_s
          raise Problem.new(413, "the body is larger than #{max_bytes} bytes") if bytes.bytesize > max_bytes

          object(bytes.dup.force_encoding(Encoding::UTF_8))
        end

        def grants(body)
          {
            publish: matchers(body["publish"], "publish"), subscribe: matchers(body["subscribe"], "subscribe"),
            payload: payload(body["payload"]), expires_in: seconds(body.fetch("expires_in", 3600)), legacy: body["legacy"] == true
          }
        end

        def question(body)
          token = body["token"]
          raise Problem.new(400, "token must be a string") unless token.is_a?(String)
          raise Problem.new(400, 'role must be "publisher" or "subscriber"') unless %w[publisher subscriber].include?(body["role"])

          [token, body["role"].to_sym]
        end

        def cookie(body)
          token = body["token"]
          return if token.nil?
          unless token.is_a?(String) && token.match?(%r{\A[A-Za-z0-9._~+/-]+=*\z})
            raise Problem.new(400, "token must be null or a token: letters, digits and -._~+/ only")
          end
          raise Problem.new(400, "browsers keep no cookie of this size: the token is longer than #{MAX_COOKIE_BYTES} bytes") if token.bytesize > MAX_COOKIE_BYTES

          token
        end

        def object(text)
          raise Problem.new(400, "the body is not UTF-8") unless text.valid_encoding?

          parsed = JSON.parse(text)
          raise Problem.new(400, "the body must be a JSON object") unless parsed.is_a?(Hash)

          parsed
        rescue JSON::ParserError
          raise Problem.new(400, "the body is not JSON")
        end

        def matchers(list, name)
          list = [] if list.nil?
          raise Problem.new(400, "#{name} must be an array of topics or matchers") unless list.is_a?(Array)
          raise Problem.new(400, "#{name} has more than #{MAX_TOPICS} entries") if list.size > MAX_TOPICS

          list.map { |entry| matcher(entry, name) }
        end

        def matcher(entry, name)
          entry = {"match" => entry} if entry.is_a?(String)
          valid = entry.is_a?(Hash) && (entry.keys - MATCHER_KEYS).empty? && entry["match"].is_a?(String) &&
            (entry["match_type"].nil? || entry["match_type"].is_a?(String))
          raise Problem.new(400, %(#{name}: each entry is a string or {"match", "match_type"})) unless valid

          {"match" => entry["match"], "match_type" => entry["match_type"] || "exact"}
        end

        def payload(value)
          return value if value.nil? || value.is_a?(Hash)

          raise Problem.new(400, "payload must be a JSON object")
        end

        def seconds(value)
          return value if value.is_a?(Integer) && value.between?(1, MAX_SECONDS)

          raise Problem.new(400, "expires_in must be a whole number of seconds, 1 to #{MAX_SECONDS}")
        end
        private_class_method :object, :matchers, :matcher, :payload, :seconds
      end
      private_constant :Requests
    end
  end
end
