# frozen_string_literal: true

require "jwt"
require "jwt/eddsa"
require "openssl"
require "securerandom"
require_relative "../../support/clock"
require_relative "../../error"
require_relative "../../support/signing_key"

module Hikyaku
  class Publisher
    # Signs short-lived access tokens that permit publishing to every topic, with a key that the hub knows.
    #
    # Mercure draft-08, sections "Authorization" and "Authorization Details"; RFC 9068 section 2.
    class TokenMint
      DETAIL_TYPE = "https://mercure.rocks/authorization-detail"
      # What a key is used with when nobody says.
      ALGORITHMS = {secret: "HS256", rsa: "RS256", p256: "ES256", p384: "ES384", p521: "ES512", ed25519: "EdDSA"}.freeze
      private_constant :DETAIL_TYPE, :ALGORITHMS

      def initialize(key:, issuer:, audience:, alg: nil, kid: nil, subject: nil, lifetime: 300, legacy: false,
        clock: Support::Clock::WALL)
        raise ConfigError, "alg none signs nothing: no hub accepts it" if alg.to_s.casecmp?("none")
        raise ConfigError, "lifetime must be a positive number of seconds" unless lifetime.is_a?(Numeric) && lifetime.positive?
        require_names(issuer, audience) unless legacy
        kind, @key = SigningKey.read(key)
        @alg = alg || ALGORITHMS.fetch(kind)
        @header = {typ: "at+jwt", kid: kid}.compact
        @claims = {iss: issuer, aud: audience, sub: subject || issuer, client_id: issuer, **permissions(legacy)}.compact
        @lifetime = lifetime
        @clock = clock
        call
      rescue JWT::EncodeError, OpenSSL::OpenSSLError, NotImplementedError
        raise ConfigError, "the key cannot sign with #{@alg || "any algorithm"}: give the algorithm that belongs to it as alg"
      end

      def call
        now = @clock.call.floor(6)
        claims = @claims.merge(iat: now, exp: now + @lifetime.to_i, jti: "urn:uuid:#{SecureRandom.uuid}")
        JWT.encode(claims, @key, @alg, @header)
      end

      def hint = "the token is signed here for issuer #{@claims[:iss].inspect} and audience #{@claims[:aud].inspect}: does the hub know both, and the key?"

      def inspect = "#<#{self.class.name} #{@alg} #{@claims[:iss].inspect}>"

      private

      def require_names(issuer, audience)
        raise ConfigError, "issuer is missing: the name under which the hub knows the key" if issuer.to_s.empty?
        raise ConfigError, "audience is missing: the hub's resource identifier, usually its public URL" if audience.to_s.empty?
      end

      def permissions(legacy)
        detail = {type: DETAIL_TYPE, actions: ["publish"], topics: [{match: "*"}]}
        {authorization_details: [detail], mercure: legacy ? {publish: ["*"]} : nil}
      end
    end
  end
end
