# frozen_string_literal: true

require "json"
require "openssl"
require "securerandom"

module Bench
  # Access tokens (RFC 9068, RFC 9396) of the one issuer that the hubs under test trust, and its two keys. Signed here and
  # not by a library, so that 10,000 are made in about a second.
  module Token
    ISSUER = "https://bench.example"
    AUDIENCE = "https://bench.example/.well-known/mercure"
    ALGORITHMS = %w[HS256 ES256].freeze
    SECRET = SecureRandom.bytes(32)
    KEY = OpenSSL::PKey::EC.generate("prime256v1")
    SECONDS = 86_400
    COORDINATE = 32 # bytes of each of a signature's two numbers, RFC 7518 section 3.4

    class << self
      # @return [String] of one who may publish to every topic; the same each time
      def publisher = @publisher ||= make("HS256", "publisher", "publish")

      # @param alg [String] "HS256" or "ES256"
      # @param count [Integer]
      # @return [Array<String>] of so many who may read every topic, each different; the same each time
      def subscribers(alg, count)
        @subscribers ||= {}
        @subscribers[[alg, count]] ||= Array.new(count) { |n| make(alg, "reader-#{n}", "subscribe") }
      end

      # @return [String] JWK Set (RFC 7517) of both keys
      def key_set
        point = KEY.public_key.to_octet_string(:uncompressed)
        x, y = [1, 1 + COORDINATE].map { |from| base64url(point[from, COORDINATE]) }
        JSON.generate(keys: [
          {kty: "oct", kid: "HS256", alg: "HS256", k: base64url(SECRET)},
          {kty: "EC", kid: "ES256", alg: "ES256", crv: "P-256", x: x, y: y}
        ])
      end

      private

      def make(alg, subject, action)
        text = [{alg: alg, kid: alg, typ: "at+jwt"}, claims(subject, action)].map { |part| base64url(JSON.generate(part)) }.join(".")
        "#{text}.#{base64url((alg == "HS256") ? OpenSSL::HMAC.digest("SHA256", SECRET, text) : signature(text))}"
      end

      def claims(subject, action)
        now = Time.now.to_i
        {iss: ISSUER, sub: subject, aud: AUDIENCE, client_id: "bench", iat: now, exp: now + SECONDS, jti: SecureRandom.hex(8),
         authorization_details: [{type: "https://mercure.rocks/authorization-detail", actions: [action], topics: [{match: "*"}]}]}
      end

      def signature(text)
        numbers = OpenSSL::ASN1.decode(KEY.sign("SHA256", text)).value
        numbers.map { |number| number.value.to_s(2).rjust(COORDINATE, "\0") }.join
      end

      def base64url(bytes) = [bytes].pack("m0").tr("+/", "-_").delete("=")
    end
  end
end
