# frozen_string_literal: true

require "uri"
require_relative "../problem"

module Hikyaku
  class Web
    class Authorization
      # A token is presented in a way that cannot be understood: 400 with the challenge `invalid_request` (Mercure
      # draft-08, section "Error Responses").
      class InvalidRequest < Problem
        def initialize(detail) = super(400, detail, code: "invalid_request")
      end

      # Finds the token of a request (Mercure draft-08, section "Presenting the Access Token").
      #
      # The Authorization header goes before the cookie, which the browser sends whether it was meant or not. A header
      # that is no Bearer header with one token is refused rather than passed over, so that a mistake of the client
      # never turns into a request with other rights. In 0.x the query parameter `authorization` stands between the two.
      module Credentials
        # RFC 6750 section 2.1, RFC 9110 section 11.1 (the scheme in any case).
        # Spelled out, since a pattern that ignores case takes ten times as long over a token.
        BEARER = %r{\A[ \t]*[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]+=*)[ \t]*\z}
        # Of a token without padding, which no JWS has.
        TOKEN_CHARACTERS = "A-Za-z0-9._~+/-"
        COOKIE_NAME = "__Secure-mercure_access_token"
        LEGACY_COOKIE_NAME = "mercureAuthorization"
        QUERY_NAME = "authorization"

        class << self
          def find(env, cookie_name: COOKIE_NAME, legacy: false)
            if (header = env["HTTP_AUTHORIZATION"])
              return [bearer(header), :header]
            end
            if legacy == true && (token = query(env))
              return [token, :query]
            end
            token = cookie(env, cookie_name) || (cookie(env, LEGACY_COOKIE_NAME) if legacy)
            token ? [token, :cookie] : [nil, nil]
          end

          private

          # Servers join several headers of one name with a comma, which no token contains. What nearly everybody sends is
          # told without the pattern: this is asked for each publish.
          def bearer(header)
            if header.start_with?("Bearer ")
              token = header.byteslice(7, header.bytesize).force_encoding(Encoding::BINARY)
              return token if !token.empty? && token.count(TOKEN_CHARACTERS) == token.bytesize
            end
            header.b[BEARER, 1] or
              raise InvalidRequest, "the Authorization header is not the word Bearer and one token"
          end

          # Only where nothing is changed: a link must not publish.
          def query(env)
            return unless %w[GET HEAD].include?(env["REQUEST_METHOD"])
            tokens = env["QUERY_STRING"].to_s.b.split("&").filter_map do |pair|
              name, value = pair.split("=", 2)
              decoded(value || "") if name && decoded(name) == QUERY_NAME
            end
            raise InvalidRequest, "the query has the parameter authorization more than once" if tokens.size > 1
            tokens.first
          end

          def decoded(text)
            URI.decode_www_form_component(text, Encoding::BINARY)
          rescue ArgumentError
            text
          end

          # RFC 6265 section 4.2.2: the first of several is the one with the longest path.
          def cookie(env, name)
            cookies = env["HTTP_COOKIE"] or return
            cookies.b.split(";").each do |pair|
              key, value = pair.split("=", 2)
              return value.strip.gsub(/\A"|"\z/, "") if value && key.strip == name
            end
            nil
          end
        end

        private_constant :BEARER, :TOKEN_CHARACTERS, :QUERY_NAME
      end
    end
  end
end
