# frozen_string_literal: true

require "json"
require_relative "access_tokens"

# JWK Sets, as an issuer publishes them (RFC 7517, section 5).
module KeySets
  # @param key [OpenSSL::PKey::EC] on P-256
  # @param kid [String]
  # @return [String] JSON
  def key_set(key, kid)
    point = key.public_key.to_octet_string(:uncompressed)
    x, y = [point[1, 32], point[33, 32]].map { |part| AccessTokens.base64url(part) }
    JSON.generate(keys: [{kty: "EC", crv: "P-256", kid: kid, alg: "ES256", use: "sig", x: x, y: y}])
  end
end
