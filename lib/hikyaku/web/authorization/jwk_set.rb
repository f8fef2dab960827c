# frozen_string_literal: true

require "jwt"
require "jwt/eddsa"
require_relative "algorithms"
require_relative "key"
require_relative "strict_json"

module Hikyaku
  class Web
    class Authorization
      # A JWK Set (RFC 7517) as trusted keys. Keys that are not for verifying signatures, or that the hub cannot use,
      # are skipped: a set is shared with other readers.
      class JwkSet
        # The text is not a JWK Set at all.
        class Malformed < StandardError
        end

        # So that a huge set cannot make every token expensive.
        MAX_KEYS = 100
        PUBLIC_MEMBERS = {"RSA" => %w[kty n e], "EC" => %w[kty crv x y], "OKP" => %w[kty crv x]}.freeze

        attr_reader :keys
        attr_reader :skipped

        def initialize(json, configured:, secrets:, weak: false)
          document = StrictJson.object(json) or raise Malformed, "it is not a JSON object"
          entries = document.key?("kty") ? [document] : document["keys"]
          raise Malformed, "it has no array \"keys\"" unless entries.is_a?(Array)
          raise Malformed, "it has more than #{MAX_KEYS} keys" if entries.size > MAX_KEYS
          @configured = configured
          @secrets = secrets
          @weak = weak
          @skipped = []
          @keys = entries.each_with_index.filter_map { |entry, index| usable(entry, index) }.freeze
        end

        private

        def usable(jwk, index)
          raise Key::Unusable, "it is not a JSON object" unless jwk.is_a?(Hash)
          check_purpose(jwk)
          import(jwk, allowlist(jwk), jwk["kid"].is_a?(String) ? jwk["kid"] : nil)
        rescue Key::Unusable, JWT::Error, OpenSSL::OpenSSLError, ArgumentError => error
          @skipped << "key #{index}: #{error.is_a?(Key::Unusable) ? error.message : "its members are malformed"}"
          nil
        end

        # RFC 7517 sections 4.2 and 4.3.
        def check_purpose(jwk)
          raise Key::Unusable, "its use is not sig" if jwk.key?("use") && jwk["use"] != "sig"
          return unless jwk.key?("key_ops")
          raise Key::Unusable, "its key_ops do not hold verify" unless Array(jwk["key_ops"]).include?("verify")
        end

        # RFC 7517 section 4.4: a key that names its algorithm is used with no other.
        def allowlist(jwk)
          return @configured unless jwk.key?("alg")
          alg = jwk["alg"]
          raise Key::Unusable, "its alg is unknown" unless Algorithms.known?(alg)
          if @configured && !Algorithms.for_kind(Algorithms::KIND.fetch(alg), @configured).include?(alg)
            raise Key::Unusable, "its alg is not on the allowlist"
          end
          [alg]
        end

        def import(jwk, configured, kid)
          if jwk["kty"] == "oct"
            raise Key::Unusable, "it is a secret in a published set" unless @secrets
            return Key.of_secret(secret(jwk["k"]), configured: configured, kid: kid, weak: @weak)
          end
          members = PUBLIC_MEMBERS[jwk["kty"]] or raise Key::Unusable, "its kty is unknown"
          raise Key::Unusable, "a member is not a string" unless members.all? { |name| jwk[name].is_a?(String) }
          material = JWT::JWK.new(jwk.slice(*members)).verify_key
          return ed25519(material, jwk, configured, kid) if material.is_a?(Ed25519::VerifyKey)
          Key.of_pkey(material, configured: configured, kid: kid)
        end

        def secret(encoded)
          raise Key::Unusable, "its member k is not a string" unless encoded.is_a?(String)
          JWT::Base64.url_decode(encoded)
        end

        def ed25519(material, jwk, configured, kid)
          raise Key::Unusable, "its curve is not Ed25519" unless jwk["crv"] == "Ed25519"
          Key.new(kind: :ed25519, material: material, algorithms: Key.allowed(:ed25519, configured), kid: kid)
        end

        private_constant :MAX_KEYS, :PUBLIC_MEMBERS
      end
    end
  end
end
