# frozen_string_literal: true

require "json"
require "jwt"
require "jwt/eddsa"
require "openssl"
require_relative "../../support/secret"
require_relative "../../error"

module Hikyaku
  class Web
    class Authorization
      # One trusted verification key with the algorithms that it may be used with. Never shows its material.
      class Key
        # A key that cannot be used; the message says why, without the key.
        class Unusable < StandardError
        end

        CURVES = {"prime256v1" => :p256, "secp384r1" => :p384, "secp521r1" => :p521}.freeze
        SIGNATURE_BYTES = {p256: 64, p384: 96, p521: 132, ed25519: 64}.freeze
        MIN_RSA_BITS = 2048 # RFC 7518 section 3.3
        ED25519_PREFIX = "302a300506032b6570032100"

        class << self
          def of_pkey(pkey, configured:, kid: nil)
            kind, material = public_half(pkey)
            new(kind: kind, material: material, algorithms: allowed(kind, configured), kid: kid)
          end

          def of_secret(secret, configured:, kid: nil, weak: false)
            raise Unusable, "the secret is empty" if Secret.empty?(secret)
            algorithms = allowed(:secret, configured)
            lack = Algorithms.lack(secret, algorithms)
            raise Unusable, lack if lack && !weak
            new(kind: :secret, material: secret.b.freeze, algorithms: algorithms, kid: kid)
          end

          def allowed(kind, configured)
            names = Algorithms.for_kind(kind, configured)
            return names unless names.empty?
            raise Unusable, "#{configured.join(", ")} cannot be used with #{Algorithms::NAME.fetch(kind)}"
          end

          private

          def public_half(pkey)
            case pkey
            when OpenSSL::PKey::RSA then rsa(pkey)
            when OpenSSL::PKey::EC then elliptic(pkey)
            else edwards(pkey)
            end
          end

          def rsa(pkey)
            if pkey.n.num_bits < MIN_RSA_BITS
              raise Unusable, "the RSA key has #{pkey.n.num_bits} bits, at least #{MIN_RSA_BITS} are required"
            end
            raise Unusable, "the RSA key's public exponent is not odd and greater than 1" unless pkey.e > 1 && pkey.e.odd?
            [:rsa, OpenSSL::PKey::RSA.new(pkey.public_to_der)]
          end

          def elliptic(pkey)
            kind = CURVES[pkey.group.curve_name] or
              raise Unusable, "the EC key's curve is none of P-256, P-384 and P-521"
            [kind, OpenSSL::PKey::EC.new(pkey.public_to_der)]
          end

          # Ruby's OpenSSL has no class for Ed25519; its public form is a fixed prefix and 32 bytes (RFC 8410).
          def edwards(pkey)
            der = pkey.public_to_der
            raise Unusable, "it is no RSA, EC or Ed25519 key" unless der.unpack1("H*").start_with?(ED25519_PREFIX) && der.bytesize == 44
            [:ed25519, Ed25519::VerifyKey.new(der.byteslice(12, 32))]
          end
        end

        attr_reader :kid, :kind, :algorithms

        def initialize(kind:, material:, algorithms:, kid: nil)
          @kind = kind
          @material = material
          @algorithms = algorithms
          @kid = kid
          @identity = [kid, kind, algorithms, OpenSSL::Digest::SHA256.digest(bytes)].freeze
          freeze
        end

        # Whether this key made the token's signature with that algorithm. The comparison of a secret's signature
        # takes the same time wherever the difference is.
        def signed?(encoded, algorithm)
          return false unless @algorithms.include?(algorithm)
          bytes = SIGNATURE_BYTES[@kind]
          return false if bytes && encoded.signature.bytesize != bytes
          encoded.valid_signature?(algorithm: algorithm, key: @material)
        rescue JWT::DecodeError, OpenSSL::OpenSSLError, ArgumentError
          false
        end

        # Equal keys are used in the same way: a set that is fetched again unchanged flushes nothing.
        def ==(other)
          other.is_a?(Key) && identity == other.identity
        end

        def inspect = "#<#{self.class} #{Algorithms::NAME.fetch(@kind)}, kid #{@kid.inspect}, #{@algorithms.join(" ")}>"
        alias_method :to_s, :inspect

        protected

        attr_reader :identity

        private

        def bytes
          case @material
          when String then @material
          when Ed25519::VerifyKey then @material.to_bytes
          else @material.public_to_der
          end
        end

        private_constant :CURVES, :SIGNATURE_BYTES, :MIN_RSA_BITS, :ED25519_PREFIX
      end

      # A JWK Set (RFC 7517) as trusted keys. Keys that are not for verifying signatures, or that the hub cannot use,
      # are skipped: a set is shared with other readers.
      class JwkSet
        # The text is not a JWK Set at all.
        class Malformed < StandardError
        end

        # So that a huge set cannot make every token expensive.
        MAX_KEYS = 100
        PUBLIC_MEMBERS = {"RSA" => %w[kty n e], "EC" => %w[kty crv x y], "OKP" => %w[kty crv x]}.freeze

        attr_reader :keys, :skipped

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

      # PEM text as trusted keys: public keys, private ones (their public half is used) and certificates, one or
      # several blocks, so that a key can be rotated without a JWK Set.
      module Pem
        BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----/m
        # Some tools write them before the key itself, which repeats them.
        PARAMETERS = "EC PARAMETERS"
        # OpenSSL asks at the terminal when an encrypted key comes without a password.
        NO_PASSWORD = ""

        class << self
          def like?(text) = text.include?("-----BEGIN ")

          def keys(text, configured:)
            # Environment variables and YAML often hold the line ends as \n.
            text = text.gsub("\\n", "\n") unless text.include?("\n")
            blocks = text.to_enum(:scan, BLOCK).map { Regexp.last_match }.reject { |block| block[1] == PARAMETERS }
            raise Key::Unusable, "the PEM text has no complete block" if blocks.empty?
            blocks.map { |block| Key.of_pkey(read(block[1], block[0]), configured: configured) }.freeze
          end

          private

          def read(label, pem)
            return OpenSSL::X509::Certificate.new(pem).public_key if label.end_with?("CERTIFICATE")
            OpenSSL::PKey.read(pem, NO_PASSWORD)
          rescue OpenSSL::OpenSSLError
            raise Key::Unusable, "the PEM block #{label} cannot be read (an encrypted key cannot be used)"
          end
        end

        private_constant :BLOCK, :PARAMETERS, :NO_PASSWORD
      end

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

      # Reads a JSON object the strict way: valid UTF-8, no member name twice (RFC 7515 section 4, RFC 7519
      # section 4), nothing after it, bounded depth, no number that is too large for a Float.
      module StrictJson
        # Deep enough for any payload, shallow enough for every parser and generator that sees it later.
        MAX_DEPTH = 64

        # Only these can become infinite, which no generator writes.
        LARGE = /\d[eE]|\d{300}/

        # Older versions of the json library keep the last of several members with one name, silently.
        class UniqueMembers < Hash
          def []=(name, value)
            raise JSON::ParserError, "a member name occurs twice" if key?(name)
            super
          end
        end

        def self.object(bytes)
          text = String.new(bytes, encoding: Encoding::UTF_8)
          return unless text.valid_encoding?
          JSON.parse(text, object_class: UniqueMembers, max_nesting: MAX_DEPTH)
          value = JSON.parse(text, max_nesting: MAX_DEPTH, freeze: true)
          value if value.is_a?(Hash) && (!LARGE.match?(text) || finite?(value))
        rescue JSON::JSONError
          nil
        end

        def self.finite?(value)
          case value
          when Float then value.finite?
          when Hash then value.each_value.all? { |member| finite?(member) }
          when Array then value.all? { |entry| finite?(entry) }
          else true
          end
        end

        private_class_method :finite?
        private_constant :LARGE, :UniqueMembers
      end
    end
  end
end
