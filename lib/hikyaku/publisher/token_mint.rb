# frozen_string_literal: true

require "jwt"
require "jwt/eddsa"
require "openssl"
require "securerandom"
require_relative "../error"

module Hikyaku
  class Publisher
    # Signs short-lived access tokens that permit publishing to every topic, with a key that the hub knows.
    #
    # Mercure draft-08, sections "Authorization" and "Authorization Details"; RFC 9068 section 2.
    class TokenMint
      DETAIL_TYPE = "https://mercure.rocks/authorization-detail"
      CURVES = {"prime256v1" => "ES256", "secp384r1" => "ES384", "secp521r1" => "ES512"}.freeze
      # Zero bytes alone are the empty key to an HMAC (RFC 2104 section 2).
      SAID = /[^\0\s]/n
      private_constant :DETAIL_TYPE, :CURVES, :SAID

      def initialize(key:, issuer:, audience:, alg: nil, kid: nil, subject: nil, lifetime: 300, legacy: false,
        clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME) })
        key = read(key) if key.is_a?(String)
        raise ConfigError, "alg none signs nothing: no hub accepts it" if alg.to_s.casecmp?("none")
        raise ConfigError, "lifetime must be a positive number of seconds" unless lifetime.is_a?(Numeric) && lifetime.positive?
        require_names(issuer, audience) unless legacy
        @key, natural_alg = signing_key(key)
        @alg = alg || natural_alg
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

      def read(key)
        key = File.binread(key.delete_prefix("file:").delete_prefix("//")).chomp if key.start_with?("file:")
        raise ConfigError, "key is empty" unless key.b.match?(SAID)
        key
      rescue SystemCallError => error
        raise ConfigError, "the file of the key cannot be read (#{error.class})"
      end

      # Variables often hold the line ends of a PEM text as "\\n". A password is never asked for at the terminal.
      def private_key(pem) = OpenSSL::PKey.read(pem.include?("\n") ? pem : pem.gsub("\\n", "\n"), "")

      def signing_key(key)
        key = private_key(key) if key.is_a?(String) && key.start_with?("-----BEGIN ")
        case key
        when String then [key, "HS256"]
        when OpenSSL::PKey::RSA then [key, "RS256"]
        when OpenSSL::PKey::EC then [key, CURVES.fetch(key.group.curve_name, "ES256")]
        when Ed25519::SigningKey then [key, "EdDSA"]
        when OpenSSL::PKey::PKey then [ed25519(key), "EdDSA"]
        else raise ConfigError, "key must be a secret, a private key or its PEM text, not #{key.class}"
        end
      end

      # Ruby 3.1's OpenSSL has no class for these keys: the seed stands inside two OCTET STRINGs (RFC 8410 section 7).
      def ed25519(key)
        raise ConfigError, "the key is not of a kind that tokens are signed with" unless key.oid.casecmp?("ed25519")
        wrapped = OpenSSL::ASN1.decode(key.private_to_der).value.fetch(2).value
        Ed25519::SigningKey.new(OpenSSL::ASN1.decode(wrapped).value)
      end
    end
  end
end
