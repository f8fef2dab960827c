# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/publisher/token_mint"
require "tmpdir"

class PublisherTokenMintTest < Minitest::Test
  M = Hikyaku::Publisher::TokenMint
  SECRET = "0123456789abcdef0123456789abcdef"

  def mint(**settings)
    M.new(key: SECRET, issuer: "https://shop.example.com", audience: "https://hub.example.com/h", **settings)
  end

  def decode(token, key = SECRET, alg = "HS256")
    JWT.decode(token, key, true, algorithms: [alg], verify_expiration: false)
  end

  # Mercure draft-08, section "Authorization"; RFC 9068 sections 2.1 and 2.2.
  test "a token carries everything that the access token profile requires" do
    claims, header = decode(mint(clock: -> { 1000.7 }).call)
    assert_equal({"typ" => "at+jwt", "alg" => "HS256"}, header)
    assert_match(/\Aurn:uuid:\h{8}-/, claims.delete("jti"))
    assert_equal({
      "iss" => "https://shop.example.com", "aud" => "https://hub.example.com/h", "sub" => "https://shop.example.com",
      "client_id" => "https://shop.example.com", "iat" => 1000.7, "exp" => 1300.7,
      "authorization_details" => [
        {"type" => "https://mercure.rocks/authorization-detail", "actions" => ["publish"], "topics" => [{"match" => "*"}]}
      ]
    }, claims)
  end

  test "no two tokens have the same id" do
    maker = mint
    refute_equal decode(maker.call).first["jti"], decode(maker.call).first["jti"]
  end

  test "subject, key id and lifetime are what was asked for" do
    claims, header = decode(mint(subject: "worker", kid: "k1", lifetime: 60, clock: -> { 5 }).call)
    assert_equal ["worker", 65, "k1"], [claims["sub"], claims["exp"], header["kid"]]
  end

  # Mercure 0.x, section "Authorization".
  test "hubs of Mercure 0.x find their claim if that is wanted, and need no issuer" do
    claims, = decode(mint(legacy: true).call)
    assert_equal({"publish" => ["*"]}, claims["mercure"])
    refute_nil claims["authorization_details"]
    claims, = decode(M.new(key: SECRET, issuer: nil, audience: nil, legacy: true).call)
    assert_equal [nil, {"publish" => ["*"]}], claims.values_at("iss", "mercure")
  end

  test "the algorithm follows from the key" do
    rsa = OpenSSL::PKey::RSA.new(2048)
    p256 = OpenSSL::PKey::EC.generate("prime256v1")
    p384 = OpenSSL::PKey::EC.generate("secp384r1")
    ed = OpenSSL::PKey.generate_key("ED25519")
    ed_public = Ed25519::VerifyKey.new(ed.public_to_der[-32..])
    [[rsa, rsa.public_key, "RS256"], [p256, p256, "ES256"], [p384, p384, "ES384"], [ed, ed_public, "EdDSA"]].each do |key, public_key, alg|
      [key, key.private_to_pem].each do |form|
        _, header = decode(mint(key: form).call, public_key, alg)
        assert_equal alg, header["alg"]
      end
    end
    signing = Ed25519::SigningKey.generate
    assert_equal "EdDSA", decode(mint(key: signing).call, signing.verify_key, "EdDSA").last["alg"]
    assert_equal "HS512", decode(mint(alg: "HS512").call, SECRET, "HS512").last["alg"]
    assert_equal "PS256", decode(mint(key: rsa, alg: "PS256").call, rsa.public_key, "PS256").last["alg"]
  end

  test "the key may stand in a file, and a PEM text in one line" do
    rsa = OpenSSL::PKey::RSA.new(2048)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/secret", "#{SECRET}\n")
      File.write("#{folder}/key.pem", rsa.private_to_pem)
      assert decode(mint(key: "file:#{folder}/secret").call)
      ["file:#{folder}/key.pem", "file://#{folder}/key.pem", rsa.private_to_pem.gsub("\n", "\\n")].each do |key|
        assert decode(mint(key: key).call, rsa.public_key, "RS256")
      end
      error = assert_raises(Hikyaku::ConfigError) { mint(key: "file:#{folder}/none") }
      assert_match(/cannot be read/, error.message)
    end
  end

  test "settings that cannot sign are refused at once, without showing the key" do
    rsa = OpenSSL::PKey::RSA.new(2048)
    pem = rsa.private_to_pem
    [{key: ""}, {key: " \n"}, {key: "\0" * 40}, {key: "\u00A0" * 40}, {key: "\u200B\u3000\uFEFF" * 20}, {key: 7}, {key: '{"kty":"oct","k":""}'}, {key: %( {"kty":"oct","k":"czNjcmV0"})}, {key: '{"keys":[]}'}, {key: "{"},
      {key: "https://id.example/s3cret"}, {key: "@/s3cret"}, {key: "file:a\0b"}, {key: OpenSSL::PKey::EC.generate("secp256k1")}, {key: OpenSSL::PKey::DSA.new(1024)}, {key: "-----BEGIN PRIVATE KEY-----\ns3cret\n"}, {key: SECRET, alg: "RS256"}, {key: pem, alg: "ES256"},
      {key: rsa.public_key.to_pem}, {key: OpenSSL::PKey.generate_key("X25519")}, {alg: "none"}, {alg: "HS1"}, {issuer: nil}, {issuer: ""},
      {audience: nil}, {lifetime: 0}, {lifetime: "x"}].each do |settings|
      error = assert_raises(Hikyaku::ConfigError, settings.inspect) { mint(**settings) }
      refute_match(/s3cret|#{SECRET}/o, error.message)
      refute_includes error.message, pem.lines[1]
    end
  end

  test "inspect does not show the key" do
    refute_includes mint.inspect, SECRET
  end
end
