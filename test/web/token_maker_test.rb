# frozen_string_literal: true

require "test_helper"
require "base64"
require "tempfile"
require "hikyaku/config"
require "hikyaku/hub/topics"
require "hikyaku/web/authorization"
require "hikyaku/web/token_maker"

class WebTokenMakerTest < Minitest::Test
  Config = Hikyaku::Config
  TokenMaker = Hikyaku::Web::TokenMaker
  SECRET = "s3cret-of-the-tests-that-is-long-enough"
  URL = "https://hub.example/.well-known/mercure"
  ED25519 = <<~PEM
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
    -----END PRIVATE KEY-----
  PEM
  # RFC 8032, section 7.1, test 1.

  def config(**settings) = Config.new(resource_identifier: URL, legacy: true, **settings)

  def access(config, token, role = :publisher)
    Hikyaku::Web::Authorization.new(issuers: config.issuer_list, resource_identifier: config.resource_identifier, hub_url: config.hub_url, legacy: config.legacy)
      .access(token, role)
  end

  def topics(*names)
    table = Hikyaku::Hub::Topics.new(hub_url: URL)
    names.map { |name| table[name] }
  end

  def claims(token) = JSON.parse(Base64.urlsafe_decode64(token.split(".")[1]))

  def header(token) = JSON.parse(Base64.urlsafe_decode64(token.split(".")[0]))

  def rsa = @rsa ||= OpenSSL::PKey::RSA.new(2048)

  test "section Authorization: a token has the type and every claim that RFC 9068 requires" do
    maker = TokenMaker.new(issuer: "https://app.example", key: SECRET, audience: URL, clock: -> { 1_000 })
    token = maker.call(publish: ["*"], expires_in: 60)
    assert_equal({"alg" => "HS256", "typ" => "at+jwt"}, header(token))
    claims = claims(token)
    assert_equal ["https://app.example", URL, "https://app.example", 1_000, 1_060], claims.values_at("iss", "aud", "client_id", "iat", "exp")
    assert_match(/\Aurn:uuid:\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/, claims["jti"])
    assert_match(/\Aurn:uuid:/, claims["sub"])
    refute_equal claims["jti"], claims(maker.call(publish: ["*"]))["jti"]
  end

  test "section Authorization Details: topics, matchers and payload stand where they belong" do
    maker = TokenMaker.new(issuer: "app", key: SECRET, audience: URL)
    token = maker.call(publish: ["/a"], subscribe: [{"match" => "/b/:id", "match_type" => "urlpattern"}, {match: "/c", match_type: "exact"}],
      payload: {"n" => 1}, subject: "ann", client_id: "shop", key_id: "k1")
    type = "https://mercure.rocks/authorization-detail"
    assert_equal [
      {"type" => type, "actions" => ["publish"], "topics" => [{"match" => "/a"}]},
      {"type" => type, "actions" => ["subscribe"], "topics" => [{"match" => "/b/:id", "match_type" => "urlpattern"}, {"match" => "/c"}], "payload" => {"n" => 1}}
    ], claims(token)["authorization_details"]
    assert_equal %w[ann shop], claims(token).values_at("sub", "client_id")
    assert_equal "k1", header(token)["kid"]
  end

  test "the hub accepts tokens of every kind of key" do
    keys = {
      SECRET => "HS256", OpenSSL::PKey::EC.generate("prime256v1").to_pem => "ES256", OpenSSL::PKey::EC.generate("secp384r1").to_pem => "ES384",
      OpenSSL::PKey::EC.generate("secp521r1").to_pem => "ES512", rsa.to_pem => "RS256", ED25519 => "EdDSA"
    }
    keys.each do |key, alg|
      config = config(publisher_key: key, anonymous: true)
      maker = TokenMaker.for(config, role: :publisher)
      assert_equal alg, maker.alg
      access = access(config, maker.call(publish: ["/a"]))
      assert access.publish?(topics("/a")), alg
      refute access.publish?(topics("/b")), alg
    end
  end

  test "the algorithm of the configuration is used where the key allows it" do
    config = config(publisher_key: SECRET * 2, publisher_alg: "HS512", anonymous: true)
    maker = TokenMaker.for(config, role: :publisher)
    assert_equal "HS512", maker.alg
    assert access(config, maker.call(publish: ["*"])).publish?(topics("/a"))
    assert_equal "PS256", TokenMaker.for(config(publisher_key: rsa.to_pem, alg: "PS256", anonymous: true), role: :publisher).alg
    error = assert_raises(Hikyaku::ConfigError) { TokenMaker.new(issuer: "a", key: SECRET, alg: "RS256", audience: URL) }
    assert_equal "RS256 cannot be used with a secret", error.message
  end

  test "a key is read from a file, with escaped line ends too" do
    Tempfile.create("key") do |file|
      file.write(SECRET, "\n")
      file.close
      config = config(publisher_key: "file:#{file.path}", anonymous: true)
      assert access(config, TokenMaker.for(config, role: :publisher).call(publish: ["*"])).publish?(topics("/a"))
    end
    assert_equal "EdDSA", TokenMaker.new(issuer: "a", key: ED25519.gsub("\n", "\\n"), audience: URL).alg
  end

  test "a token for both roles takes one key" do
    config = config(publisher_key: SECRET, subscriber_key: SECRET)
    token = TokenMaker.for(config).call(publish: ["*"], subscribe: ["/a"])
    assert access(config, token, :publisher).publish?(topics("/b"))
    assert access(config, token, :subscriber).subscribe?(topics("/a").first)
    error = assert_raises(Hikyaku::ConfigError) { TokenMaker.for(config(publisher_key: SECRET, subscriber_key: "other")) }
    assert_includes error.message, "different keys"
    assert_raises(Hikyaku::ConfigError) { TokenMaker.for(config(publisher_key: SECRET, subscriber_key: SECRET, subscriber_alg: "HS384")) }
  end

  test "the page's tokens are signed with the key that their grants need" do
    config = config(publisher_key: SECRET, subscriber_key: "another secret of the tests, long enough")
    mint = TokenMaker.mint(config)
    assert access(config, mint.call(publish: ["*"], subscribe: [], expires_in: 5, legacy: false, payload: nil)).publish?(topics("/a"))
    assert access(config, mint.call(subscribe: ["*"]), :subscriber).subscribe?(topics("/a").first)
    assert_raises(Hikyaku::ConfigError) { mint.call(publish: ["*"], subscribe: ["*"]) }
    assert_nil TokenMaker.mint(config(jwks: "https://id.example/keys"))
    assert_nil TokenMaker.mint(config(publisher_key: rsa.public_to_pem, anonymous: true))
  end

  test "one of several issuers is chosen by name" do
    config = config(publisher_key: SECRET, issuer: "own", issuers: [{issuer: "other", publisher_key: "the secret of another issuer, long"}])
    assert_equal "own", claims(TokenMaker.for(config, role: :publisher).call(publish: ["*"]))["iss"]
    token = TokenMaker.for(config, role: :publisher, issuer: "other").call(publish: ["*"])
    assert_equal "other", access(config, token).issuer
    assert_raises(Hikyaku::ConfigError) { TokenMaker.for(config, role: :publisher, issuer: "none") }
    only = Config.new(issuers: [{issuer: "only", publisher_key: SECRET}])
    assert_equal "only", claims(TokenMaker.for(only, role: :publisher).call(publish: ["*"]))["iss"]
  end

  test "Mercure 0.x, section Authorization: a legacy token carries the claim mercure" do
    config = config(publisher_key: SECRET, subscriber_key: SECRET)
    token = TokenMaker.for(config).call(publish: ["*"], subscribe: ["https://a.example/{id}"], payload: {"x" => 1}, legacy: true)
    assert_equal({"publish" => ["*"], "subscribe" => ["https://a.example/{id}"], "payload" => {"x" => 1}}, claims(token)["mercure"])
    assert_equal "JWT", header(token)["typ"]
    assert access(config, token, :subscriber).subscribe?(topics("https://a.example/1").first)
    refute claims(TokenMaker.for(config).call(subscribe: ["a"], legacy: true))["mercure"].key?("publish")
  end

  test "keys that cannot sign are refused without being shown" do
    {
      OpenSSL::PKey::EC.generate("prime256v1").public_to_pem => "public key", rsa.public_to_pem => "public key",
      "https://id.example/keys" => "at a URL", '{"keys": []}' => "JWK Set", "file:/does/not/exist" => "cannot be read",
      "@/does/not/exist" => "cannot be read", "file:#{__dir__}" => "cannot be read",
      "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----" => "damaged",
      rsa.to_pem(OpenSSL::Cipher.new("aes-128-cbc"), "password") => "password",
      OpenSSL::PKey::EC.generate("secp256k1").to_pem => "none of RSA", "" => "empty", " \n" => "empty", "\0" * 40 => "empty", "\u00A0\u200B" * 20 => "empty"
    }.each do |key, reason|
      error = assert_raises(Hikyaku::ConfigError, reason) { TokenMaker.new(issuer: "a", key: key, audience: URL) }
      assert_includes error.message, reason
      refute_includes error.message, key[30, 20] if key.include?("BEGIN")
    end
    error = assert_raises(Hikyaku::ConfigError) { TokenMaker.for(config(publisher_key: SECRET), role: :subscriber) }
    assert_includes error.message, "no subscriber_key"
    assert_raises(Hikyaku::ConfigError) { TokenMaker.for(Config.new(anonymous: true), role: :publisher) }
  end

  test "inspect does not show the key" do
    refute_includes TokenMaker.new(issuer: "a", key: SECRET, audience: URL).inspect, SECRET
  end
end
