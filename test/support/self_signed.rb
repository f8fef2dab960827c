# frozen_string_literal: true

require "openssl"
require "puma"
require "puma/minissl"

# A certificate for localhost that nobody has vouched for.
module SelfSigned
  module_function

  # @return [Array(OpenSSL::PKey::EC, OpenSSL::X509::Certificate)]
  def pair
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate.public_key = OpenSSL::PKey::EC.new(key.public_to_pem)
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    certificate.sign(key, "SHA256")
    [key, certificate]
  end

  # @return [Puma::MiniSSL::Context]
  def context
    key, certificate = pair
    Puma::MiniSSL::Context.new.tap do |context|
      context.key_pem = key.to_pem
      context.cert_pem = certificate.to_pem
      context.verify_mode = Puma::MiniSSL::VERIFY_NONE
    end
  end
end
