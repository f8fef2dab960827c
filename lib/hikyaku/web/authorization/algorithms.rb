# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Web
    class Authorization
      # The signature algorithms that the hub knows, and the one kind of key that each works with. Which of them are
      # accepted is said by the configuration and by the key, never by a token (Mercure draft-08, section "Token
      # Validation"; RFC 8725 sections 3.1 and 3.2).
      module Algorithms
        KIND = {
          "HS256" => :secret, "HS384" => :secret, "HS512" => :secret,
          "RS256" => :rsa, "RS384" => :rsa, "RS512" => :rsa,
          "PS256" => :rsa, "PS384" => :rsa, "PS512" => :rsa,
          "ES256" => :p256, "ES384" => :p384, "ES512" => :p521,
          "EdDSA" => :ed25519, "Ed25519" => :ed25519
        }.freeze

        # What a key is used with when nobody says: exactly one algorithm (EdDSA has two names, RFC 9864).
        DEFAULT = {
          secret: ["HS256"], rsa: ["RS256"], p256: ["ES256"], p384: ["ES384"], p521: ["ES512"],
          ed25519: ["EdDSA", "Ed25519"]
        }.each_value(&:freeze).freeze

        # How people call the kinds of keys.
        NAME = {
          secret: "a secret", rsa: "an RSA key", p256: "an EC key on P-256", p384: "an EC key on P-384",
          p521: "an EC key on P-521", ed25519: "an Ed25519 key"
        }.freeze

        # RFC 7518 section 3.2: a secret at least as long as the hash.
        SECRET_BYTES = {"HS256" => 32, "HS384" => 48, "HS512" => 64}.freeze

        class << self
          def parse(setting, value)
            names = Array(value).flat_map { |part| part.to_s.split(/[\s,]+/) }.reject(&:empty?)
            return if names.empty?
            names.map { |name| canonical(name) or raise ConfigError, unknown(setting, name) }.uniq.freeze
          end

          def known?(name) = KIND.key?(name)

          def for_kind(kind, configured)
            return DEFAULT.fetch(kind) unless configured
            names = configured.select { |name| KIND[name] == kind }
            (kind == :ed25519 && names.any?) ? DEFAULT.fetch(kind) : names.freeze
          end

          # What is wrong with the length of a secret (RFC 7518 section 3.2).
          def lack(secret, algorithms)
            name = algorithms.max_by { |one| SECRET_BYTES.fetch(one, 0) }
            least = SECRET_BYTES.fetch(name)
            return if secret.bytesize >= least
            "the secret has #{secret.bytesize} bytes, and #{name} needs at least #{least} (RFC 7518, section 3.2): " \
              "make one with `openssl rand -hex 32`"
          end

          private

          def canonical(name) = KIND.keys.find { |known| known.casecmp?(name) }

          def unknown(setting, name)
            "#{setting}: #{name.inspect} is not a signature algorithm that the hub knows; use #{KIND.keys.join(", ")}"
          end
        end
      end
    end
  end
end
