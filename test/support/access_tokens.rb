# frozen_string_literal: true

require "json"
require "jwt"
require "jwt/eddsa"
require "openssl"

# Makes access tokens as an issuer would (RFC 9068), and as nobody should.
module AccessTokens
  ISSUER = "https://issuer.example.com"
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  SECRETS = {
    publisher: "the publishers' secret has 32 bytes and more",
    subscriber: "the subscribers' secret has 32 bytes and more"
  }.freeze
  DETAIL_TYPE = "https://mercure.rocks/authorization-detail"

  module_function

  # @param role [Symbol] whose key signs, and the action that is granted
  # @param topics [Array<String, Hash>] exact matchers, or matcher objects
  # @param claims [Hash] :absent takes one away
  def token(role, *topics, key: SECRETS.fetch(role), alg: "HS256", header: {}, details: nil, payload: nil, **claims)
    action = {publisher: "publish", subscriber: "subscribe"}.fetch(role)
    details ||= [detail(*topics, actions: [action], payload: payload)]
    header = {"typ" => "at+jwt"}.merge(header).reject { |_, value| value == :absent }
    sign(header, claims(details).merge(claims.transform_keys(&:to_s)).reject { |_, value| value == :absent }, key, alg)
  end

  # A JWS, without a look at what it says.
  #
  # @param header [Hash, String] a String goes in as it is
  # @param claims [Hash, String]
  def sign(header, claims, key, alg = "HS256")
    header = {"alg" => alg}.merge(header) if header.is_a?(Hash)
    data = [header, claims].map { |part| base64url(part.is_a?(String) ? part : JSON.generate(part)) }.join(".")
    "#{data}.#{base64url(JWT::JWA.resolve(alg).sign(data: data, signing_key: key))}"
  end

  def base64url(bytes) = [bytes].pack("m0").tr("+/", "-_").delete("=")

  def claims(details)
    now = Time.now.to_i
    {"iss" => ISSUER, "aud" => HUB_URL, "sub" => "user-1", "client_id" => "client-1", "iat" => now, "exp" => now + 600,
     "jti" => "token-1", "authorization_details" => details}
  end

  # @return [Hash] a Mercure authorization detail
  def detail(*topics, actions: %w[publish subscribe], payload: nil, **more)
    topics = topics.map { |topic| topic.is_a?(String) ? {"match" => topic} : topic }
    {"type" => DETAIL_TYPE, "actions" => actions, "topics" => topics, "payload" => payload}.compact.merge(more.transform_keys(&:to_s))
  end

  def urlpattern(pattern) = {"match" => pattern, "match_type" => "urlpattern"}

  # A token of Mercure 0.x.
  def legacy_token(role, mercure, key: SECRETS.fetch(role), header: {}, **claims)
    sign({"typ" => "JWT"}.merge(header).reject { |_, value| value == :absent },
      {"mercure" => mercure}.merge(claims.transform_keys(&:to_s)).reject { |_, value| value == :absent }, key)
  end
end
