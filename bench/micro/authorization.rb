# frozen_string_literal: true

# The CPU of the authorization of a request, by algorithm: with a token that the hub remembers (the path of every publish), and with one
# that it sees for the first time.

require "base64"
require "json"
require "jwt"
require "jwt/eddsa"
require "openssl"
require_relative "../../lib/hikyaku/web/authorization"
require_relative "../harness/measure"

rounds, seconds = Measure.options(rounds: 7, seconds: 0.2)

URL = "https://hub.example.com/.well-known/mercure"
SECRET = "a secret of thirty-two bytes or more"
RSA = OpenSSL::PKey::RSA.new(2048)
EC = OpenSSL::PKey::EC.generate("prime256v1")
ED = Ed25519::SigningKey.generate
Issuer = Struct.new(:issuer, :publisher_key, :alg, :publisher_alg, :subscriber_alg, :subscriber_key, :jwks)

def claims
  now = Time.now.to_i
  topics = [{match: "https://example.com/books/1"}, {match: "https://example.com/users/1"}]
  {iss: "issuer", aud: URL, sub: "user-1", client_id: "app", iat: now, exp: now + 3600, jti: "6f0a",
   authorization_details: [{type: "https://mercure.rocks/authorization-detail", actions: %w[publish], topics: topics}]}
end

def authorization(key, limits = {})
  Hikyaku::Web::Authorization.new(issuers: [Issuer.new("issuer", key)], resource_identifier: URL, hub_url: URL, limits: limits)
end

def ed25519_set
  JSON.generate(keys: [JWT::JWK.new(ED.verify_key).export])
end

keys = {"HS256" => [SECRET, SECRET], "ES256" => [EC, EC.public_to_pem], "RS256" => [RSA, RSA.public_to_pem], "EdDSA" => [ED, ed25519_set]}
work = {}
tokens = {}
keys.each do |alg, (signing, verifying)|
  tokens[alg] = token = JWT.encode(claims, signing, alg, typ: "at+jwt")
  remembering = authorization(verifying)
  forgetting = authorization(verifying, max_verdict_bytes: 0)
  work["#{alg}, remembered"] = -> { remembering.access(token, :publisher) }
  work["#{alg}, for the first time"] = -> { forgetting.access(token, :publisher) }
end
work["the clock alone"] = -> { Time.now.to_f }
work["nothing"] = -> {}

puts "Ruby #{RUBY_VERSION}, OpenSSL #{OpenSSL::OPENSSL_LIBRARY_VERSION[/[\d.]+/]}, a token of #{tokens["HS256"].bytesize} bytes (HS256)", ""
Measure.print(Measure.rounds(work, rounds, seconds))
