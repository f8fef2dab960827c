# frozen_string_literal: true

require "openssl"
require_relative "key"

module Hikyaku
  class Web
    class Authorization
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
    end
  end
end
