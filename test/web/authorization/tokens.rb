# frozen_string_literal: true

require "base64"
require "json"
require "jwt"
require "jwt/eddsa"
require "openssl"
require "hikyaku/hub/topics"
require "hikyaku/web/authorization"

# Makes tokens, right and wrong, and what verifies them.
module Tokens
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  ISSUER = "https://issuer.example.com"
  NOW = 1_800_000_000.0
  PUBLISHER_SECRET = "publisher secret of thirty-two bytes or more"
  SUBSCRIBER_SECRET = "subscriber secret of thirty-two bytes or more"
  DETAIL_TYPE = "https://mercure.rocks/authorization-detail"

  Issuer = Struct.new(:issuer, :alg, :publisher_alg, :subscriber_alg, :publisher_key, :subscriber_key, :jwks,
    keyword_init: true)

  # Keys are slow to make: once for all tests.
  RSA = OpenSSL::PKey::RSA.new(2048)
  P256 = OpenSSL::PKey::EC.generate("prime256v1")
  P384 = OpenSSL::PKey::EC.generate("secp384r1")
  P521 = OpenSSL::PKey::EC.generate("secp521r1")
  ED25519 = Ed25519::SigningKey.generate
  PRIVATE = {
    "RS256" => RSA, "RS384" => RSA, "RS512" => RSA, "PS256" => RSA, "PS384" => RSA, "PS512" => RSA,
    "ES256" => P256, "ES384" => P384, "ES512" => P521, "EdDSA" => ED25519
  }.freeze

  class Logger
    attr_reader :lines

    def initialize = @lines = []

    def warn(line) = @lines << line
  end

  module_function

  def issuer(**settings)
    plain = {issuer: ISSUER}
    plain.update(publisher_key: PUBLISHER_SECRET, subscriber_key: SUBSCRIBER_SECRET) if settings.empty? || settings.keys == [:issuer]
    Issuer.new(**plain, **settings)
  end

  def authorization(*issuers, **options)
    issuers = [issuer] if issuers.empty?
    Hikyaku::Web::Authorization.new(issuers: issuers, resource_identifier: HUB_URL, hub_url: HUB_URL,
      clock: -> { NOW }, **options)
  end

  def detail(*patterns, actions: %w[publish subscribe], type: nil, **more)
    topics = patterns.map { |pattern| {"match" => pattern, "match_type" => type}.compact }
    {"type" => DETAIL_TYPE, "actions" => actions, "topics" => topics}.merge(more.transform_keys(&:to_s))
  end

  def claims(**changes)
    {
      "iss" => ISSUER, "aud" => HUB_URL, "sub" => "user-1", "client_id" => "client-1", "iat" => NOW.to_i - 10,
      "exp" => NOW.to_i + 300, "jti" => "token-1", "authorization_details" => [detail("*")]
    }.merge(changes.transform_keys(&:to_s)).reject { |_, value| value == :absent }
  end

  # A well-made token; claims are changed by keyword, header members by `header:`.
  def token(key = PUBLISHER_SECRET, alg: "HS256", header: {}, **changes)
    signed(JSON.generate({"alg" => alg, "typ" => "at+jwt"}.merge(header).reject { |_, value| value == :absent }),
      JSON.generate(claims(**changes)), key, alg)
  end

  # A token with these very bytes as header and claims.
  def signed(header, payload, key = PUBLISHER_SECRET, alg = "HS256")
    input = [header, payload].map { |part| encode(part) }.join(".")
    "#{input}.#{encode(JWT::JWA.resolve(alg).sign(data: input, signing_key: key))}"
  end

  def legacy(key = PUBLISHER_SECRET, claims = {}, header: {}, alg: "HS256")
    signed(JSON.generate({"alg" => alg, "typ" => "JWT"}.merge(header)), JSON.generate(claims), key, alg)
  end

  def encode(bytes) = Base64.urlsafe_encode64(bytes, padding: false)

  def topic(string) = (@topics ||= Hikyaku::Hub::Topics.new(hub_url: HUB_URL))[string]

  def public_pem(alg)
    key = PRIVATE.fetch(alg)
    return key.public_to_pem unless key.is_a?(Ed25519::SigningKey)
    der = ["302a300506032b6570032100"].pack("H*") + key.verify_key.to_bytes
    "-----BEGIN PUBLIC KEY-----\n#{Base64.strict_encode64(der)}\n-----END PUBLIC KEY-----\n"
  end

  # The public key as a JWK; members are changed or added by keyword.
  def jwk(key, **members)
    key = OpenSSL::PKey.read(key.public_to_pem) if key.is_a?(OpenSSL::PKey::RSA)
    JWT::JWK.new(key).export.transform_keys(&:to_s).except("kid").merge(members.transform_keys(&:to_s)).reject { |_, value| value == :absent }
  end

  def jwks(*keys) = JSON.generate("keys" => keys)
end
