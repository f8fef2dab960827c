# frozen_string_literal: true

require "jwt"
require "securerandom"

module Bench
  # The access token of a publisher who may publish to every topic (RFC 9068, RFC 9396).
  module Token
    ISSUER = "https://bench.example"
    KEY = SecureRandom.hex(32)
    SECONDS = 86_400

    # @param audience [String] the hub's resource identifier
    def self.publisher(audience)
      now = Time.now.to_i
      claims = {
        iss: ISSUER, sub: "bench", aud: audience, client_id: "bench", iat: now, exp: now + SECONDS, jti: SecureRandom.uuid,
        authorization_details: [
          {type: "https://mercure.rocks/authorization-detail", actions: ["publish"], topics: [{match: "*"}]}
        ]
      }
      JWT.encode(claims, KEY, "HS256", typ: "at+jwt")
    end
  end
end
