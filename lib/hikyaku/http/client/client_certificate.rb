# frozen_string_literal: true

require "openssl"

module Hikyaku
  module HTTP
    class Client
      # Who this side of TLS is, for servers that ask: a certificate, those that vouch for it, and its key. RFC 8446, section 4.4.2.
      class ClientCertificate
        # What servers say to who does not show one: since TLS 1.3, and before it, when it may also mean something else.
        WANTED = /certificate required/
        PERHAPS_WANTED = /handshake failure/
        private_constant :WANTED, :PERHAPS_WANTED

        def self.advice(error)
          case error&.message
          when WANTED then "; the server wants to know who asks: give client_cert:"
          when PERHAPS_WANTED then "; it may be that the server wants to know who asks: client_cert:"
          end
        end

        def self.of(certificate, key, password)
          return new(certificate, key, password) if certificate
          raise ArgumentError, "client_key and client_key_password are of no use without client_cert" if key || password
        end

        def initialize(certificate, key, password)
          @certificate, *@chain = certificates(certificate)
          raise ArgumentError, "client_key is not given; with client_cert as an object it is an OpenSSL::PKey, or a file" if key.nil? && !path?(certificate)
          @key = key_of(key || certificate, key ? :client_key : :client_cert, password)
          raise ArgumentError, "client_key is not the key of client_cert" unless @certificate.check_private_key(@key)
        end

        def shown_by(context) = context.add_certificate(@certificate, @key, @chain)

        def inspect = "#<#{self.class} #{@certificate.subject}>"

        private

        def path?(given) = given.is_a?(String) || given.respond_to?(:to_path)

        def certificates(given)
          all = path?(given) ? OpenSSL::X509::Certificate.load(read(given, :client_cert)) : Array(given)
          return all if all.any? && all.all?(OpenSSL::X509::Certificate)
          raise ArgumentError, "client_cert is a file with a certificate as PEM, an OpenSSL::X509::Certificate, or an Array of such"
        rescue OpenSSL::X509::CertificateError
          raise ArgumentError, "client_cert #{given.to_s.inspect} has no certificate as PEM"
        end

        # Without a password OpenSSL would ask for one at the terminal.
        def key_of(given, name, password)
          key = path?(given) ? OpenSSL::PKey.read(read(given, name), password || "") : given
          return key if key.is_a?(OpenSSL::PKey::PKey) && key.private?
          raise ArgumentError, "#{name} #{"#{given.to_s.inspect} " if path?(given)}is no private key: it is a file as PEM, or an OpenSSL::PKey"
        rescue OpenSSL::PKey::PKeyError
          raise ArgumentError, "#{name} #{given.to_s.inspect} has no private key as PEM that can be read #{password ? "with this client_key_password" : "without client_key_password"}"
        end

        # Who gives the key itself in place of its path is not to find it in a log.
        def read(path, name)
          raise ArgumentError, "#{name} is PEM; it is the path of a file, or an object of OpenSSL" if path.to_s.include?("-----BEGIN")
          ::File.binread(path)
        rescue SystemCallError => error
          raise ArgumentError, "#{name} #{path.to_s.inspect} cannot be read (#{error.class}); it is a file as PEM"
        end
      end
    end
  end
end
