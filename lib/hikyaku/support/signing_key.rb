# frozen_string_literal: true

require "jwt/eddsa"
require "openssl"
require_relative "../error"
require_relative "secret"

module Hikyaku
  # Reads keys that tokens are signed with. What the hub takes for a public key, a JWK Set or a file is never taken for a secret: everybody knows it.
  module SigningKey
    CURVES = {"prime256v1" => :p256, "secp384r1" => :p384, "secp521r1" => :p521}.freeze
    # PKCS #8 of an Ed25519 key (RFC 8410): Ruby 3.1's OpenSSL cannot take the 32 bytes of the key out of it.
    ED25519_PREFIX = ["302e020100300506032b657004220420", "3051020101300506032b657004220420"].map { |hex| [hex].pack("H*") }.freeze
    private_constant :CURVES, :ED25519_PREFIX

    class << self
      def read(key)
        case key
        when String then of_text(content(key.b))
        when OpenSSL::PKey::PKey then of_pkey(key)
        when Ed25519::SigningKey then [:ed25519, key]
        else raise ConfigError, "the key must be a secret, a private key or its PEM text, not #{key.class}"
        end
      end

      private

      def content(key)
        raise ConfigError, "keys at a URL verify tokens only: to sign, give the private key" if key.match?(%r{\Ahttps?://}i)
        return key unless key.match?(/\A(?:file:|@)/i)
        path = key.sub(%r{\A(?:file:(?://(?=/))?|@)}i, "")
        raise Errno::ENOENT if path.include?("\0")
        File.binread(path).chomp
      rescue SystemCallError => error
        # After @ the path may be a secret that happens to begin so.
        raise ConfigError, "the key file #{path if key.match?(/\Afile:/i)} cannot be read (#{error.class})".squeeze(" ")
      end

      def of_text(text)
        raise ConfigError, "the key is empty" if Secret.empty?(text)
        return of_pkey(private_key(text)) if text.include?("-----BEGIN ")
        raise ConfigError, "a JWK Set verifies tokens only: to sign, give a secret or a private key as PEM" if text.lstrip.start_with?("{")
        [:secret, text]
      end

      def private_key(text)
        # Variables and YAML often hold the line ends as \\n.
        text = text.gsub("\\n", "\n") unless text.include?("\n")
        block = text[/-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----.*?-----END \1-----/m] or
          raise ConfigError, "a public key verifies tokens only: to sign, give the private key"
        # A password is never asked for at the terminal.
        OpenSSL::PKey.read(block, "")
      rescue OpenSSL::PKey::PKeyError
        raise ConfigError, "the private key cannot be read: it is damaged or needs a password"
      end

      def of_pkey(key)
        case key
        when OpenSSL::PKey::RSA then [:rsa, key]
        when OpenSSL::PKey::EC then [CURVES[key.group.curve_name] || unusable, key]
        else [:ed25519, ed25519(key)]
        end
      end

      def ed25519(key)
        der = key.private_to_der
        unusable unless der.start_with?(*ED25519_PREFIX)
        Ed25519::SigningKey.new(der.byteslice(16, 32))
      rescue OpenSSL::PKey::PKeyError
        unusable
      end

      def unusable = raise(ConfigError, "the private key is none of RSA, EC on P-256, P-384 or P-521, and Ed25519")
    end
  end
end
