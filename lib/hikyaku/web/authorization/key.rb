# frozen_string_literal: true

require "jwt"
require "jwt/eddsa"
require "openssl"
require_relative "../../support/secret"
require_relative "algorithms"

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

        attr_reader :kid
        attr_reader :kind
        attr_reader :algorithms

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
    end
  end
end
