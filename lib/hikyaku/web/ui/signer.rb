# frozen_string_literal: true

require "jwt"
require "jwt/eddsa"
require "openssl"
require_relative "../authorization/algorithms"

module Hikyaku
  class Web
    class Ui
      # An issuer's key that can sign: a secret or a private key. Never shows it.
      class Signer
        # PKCS #8 of an Ed25519 key: a fixed prefix, then the seed (RFC 8410). Ruby's OpenSSL has no class for it.
        ED25519_PREFIX = ["302e020100300506032b657004220420"].pack("H*").freeze
        CURVES = {"prime256v1" => :p256, "secp384r1" => :p384, "secp521r1" => :p521}.freeze
        private_constant :ED25519_PREFIX, :CURVES

        # @param issuer [String] the tokens' iss
        # @param algorithm [String, nil] nil: what the kind of key is used with when nobody says
        # @param text [String, nil] a secret or PEM text
        # @return [Signer, nil] nil where the text is no key that can sign with this algorithm
        def self.of(issuer, algorithm, text)
          kind, key = text.to_s.include?("-----BEGIN ") ? pem(text) : secret(text)
          return unless key

          algorithm ||= Authorization::Algorithms::DEFAULT.fetch(kind).first
          new(issuer: issuer, algorithm: algorithm, key: key) if Authorization::Algorithms::KIND[algorithm] == kind
        end

        def self.secret(text) = text.to_s.empty? ? nil : [:secret, text]

        def self.pem(text)
          pkey = OpenSSL::PKey.read(text.include?("\n") ? text : text.gsub("\\n", "\n"), "")
          case pkey
          when OpenSSL::PKey::RSA then [:rsa, pkey] if pkey.private?
          when OpenSSL::PKey::EC then [CURVES[pkey.group.curve_name], pkey] if pkey.private?
          else edwards(pkey.private_to_der)
          end
        rescue OpenSSL::OpenSSLError
          nil
        end

        def self.edwards(der)
          [:ed25519, Ed25519::SigningKey.new(der.byteslice(ED25519_PREFIX.bytesize, 32))] if der.start_with?(ED25519_PREFIX)
        end
        private_class_method :secret, :pem, :edwards

        # @return [String] the tokens' iss
        attr_reader :issuer

        def initialize(issuer:, algorithm:, key:)
          @issuer = issuer
          @algorithm = algorithm
          @key = key
        end

        # @param claims [Hash]
        # @param type [String] the token's typ
        # @return [String] the signed token
        def sign(claims, type:) = JWT.encode(claims, @key, @algorithm, {typ: type})

        # @return [Boolean] whether the two sign alike
        def ==(other) = other.is_a?(Signer) && identity == other.identity

        # @return [String] without the key
        def inspect = "#<#{self.class.name} #{@issuer} #{@algorithm}>"

        protected

        def identity
          bytes =
            case @key
            when String then @key
            when OpenSSL::PKey::PKey then @key.to_der
            else @key.to_bytes
            end
          [@issuer, @algorithm, bytes]
        end
      end
      private_constant :Signer
    end
  end
end
