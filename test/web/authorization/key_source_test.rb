# frozen_string_literal: true

require "test_helper"
require "tempfile"
require_relative "tokens"

# What a key setting may hold, and what is refused before the hub starts.
class KeySourceTest < Minitest::Test
  include Tokens

  def file(content)
    Tempfile.create("key") do |temp|
      temp.binmode
      temp.write(content)
      temp.close
      yield temp.path
    end
  end

  def accepts?(value, key, alg, by: issuer(publisher_key: value), **options)
    authorization(by, **options).access(token(key, alg: alg), :publisher)
    true
  rescue Hikyaku::InvalidToken
    false
  end

  def refused(value = nil, **settings)
    settings = {publisher_key: value} if value
    error = assert_raises(Hikyaku::ConfigError, value.inspect) { authorization(issuer(**settings)) }
    refute_match(/[\r\n]/, error.message)
    error.message
  end

  def certificate(key)
    OpenSSL::X509::Certificate.new.tap do |made|
      made.version = 2
      made.serial = 1
      made.subject = made.issuer = OpenSSL::X509::Name.parse("/CN=issuer")
      made.public_key = key
      made.not_before = Time.at(0)
      made.not_after = Time.at(1)
      made.sign(key, "SHA256")
    end.to_pem
  end

  test "PEM text may be a public key, a private one or a certificate" do
    [public_pem("RS256"), RSA.to_pem, RSA.public_key.to_pem, certificate(RSA), "\n\n#{certificate(RSA)}\n"].each { |pem| assert accepts?(pem, RSA, "RS256"), pem[0, 40] }
    parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    [public_pem("ES256"), P256.to_pem, certificate(P256), parameters + P256.to_pem].each { |pem| assert accepts?(pem, P256, "ES256"), pem[0, 40] }
    seed = ["302e020100300506032b657004220420"].pack("H*") + ED25519.to_bytes
    private_pem = "-----BEGIN PRIVATE KEY-----\n#{Base64.strict_encode64(seed)}\n-----END PRIVATE KEY-----\n"
    [public_pem("EdDSA"), private_pem].each { |pem| assert accepts?(pem, ED25519, "EdDSA"), pem[0, 40] }
  end

  test "PEM text may have its line ends escaped, as environment variables do" do
    assert accepts?(public_pem("ES256").gsub("\n", "\\n"), P256, "ES256")
  end

  test "several PEM keys may be given while one is replaced by another" do
    both = public_pem("ES256") + public_pem("RS256") + OpenSSL::PKey::EC.generate("prime256v1").public_to_pem
    assert accepts?(both, P256, "ES256")
    assert accepts?(both, RSA, "RS256")
  end

  test "PEM text that cannot be used is refused, and never becomes a secret" do
    pem = public_pem("ES256")
    [pem.sub("MF", "!!"), pem.lines.first, pem.sub("-----END PUBLIC KEY-----", ""), "x -----BEGIN y",
      "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"].each do |wrong|
      assert_match(/\Apublisher_key of issuer .*PEM/, refused(wrong))
    end
    assert_match(/encrypted/, refused(P256.private_to_pem(OpenSSL::Cipher.new("aes-128-cbc"), "password")))
  end

  test "weak and unusual keys are refused" do
    assert_match(/1024 bits/, refused(OpenSSL::PKey::RSA.new(1024).public_to_pem))
    assert_match(/curve/, refused(OpenSSL::PKey::EC.generate("secp256k1").public_to_pem))
    x25519 = ["302a300506032b656e032100"].pack("H*") + ("\x09" + "\0" * 31)
    assert_match(/no RSA, EC or Ed25519/, refused("-----BEGIN PUBLIC KEY-----\n#{Base64.strict_encode64(x25519)}\n-----END PUBLIC KEY-----\n"))
  end

  test "an algorithm that does not go with the key is refused" do
    assert_match(/HS256 cannot be used with an EC key/, refused(publisher_key: public_pem("ES256"), alg: "HS256"))
    assert_match(/RS256 cannot be used with a secret/, refused(publisher_key: PUBLISHER_SECRET, alg: "RS256"))
    assert_match(/ES384 cannot be used with an EC key on P-256/, refused(publisher_key: public_pem("ES256"), alg: "ES384"))
    assert_match(/HS256 cannot be used with a JWK Set at a URL/, refused(jwks: "https://issuer.example/jwks", alg: "HS256"))
  end

  test "an algorithm that the hub does not know is refused" do
    %w[none None HS128 ES256K x].each { |alg| assert_match(/\Aalg of issuer .*not a signature algorithm/, refused(publisher_key: PUBLISHER_SECRET, alg: alg)) }
    assert_match(/\Asubscriber_alg of issuer/, refused(subscriber_key: PUBLISHER_SECRET, subscriber_alg: "none"))
  end

  test "the algorithm of a role goes before the common one" do
    secret = PUBLISHER_SECRET * 2
    by = issuer(publisher_key: secret, alg: "RS256", publisher_alg: "HS512")
    assert accepts?(nil, secret, "HS512", by: by)
    refute accepts?(nil, secret, "HS256", by: by)
    assert accepts?(nil, secret, "HS384", by: issuer(publisher_key: secret, alg: "hs256, HS384"))
  end

  test "any text is a secret, but an empty one" do
    ["!ChangeMe!", "x", " padded ", "é", "\xFF\xFE", "a.b.c", "key=@file", "[1]", "none"].each do |secret|
      assert accepts?(secret, secret.b, "HS256", weak_secrets: true), secret.inspect
      assert accepts?(secret * 32, secret.b * 32, "HS256"), secret.inspect
    end
    # An HMAC fills its key up with zero bytes: they alone are the empty one, however many.
    ["", " " * 32, "\t\n" * 32, "\0" * 32, "\0" * 64, "\u00A0" * 32, "\u200B" * 32].each do |empty|
      assert_match(/empty/, assert_raises(Hikyaku::Web::Authorization::Key::Unusable) { Hikyaku::Web::Authorization::Key.of_secret(empty, configured: nil, weak: true) }.message, empty.inspect)
      assert_match(/the secret is empty/, file(jwks("kty" => "oct", "k" => encode(empty))) { |path| refused(jwks: "file:#{path}") })
    end
    assert_match(/empty/, refused(publisher_key: ""))
    assert_match(/must be text, not Integer/, refused(publisher_key: 5))
  end

  # RFC 7518 section 3.2.
  test "a secret that is shorter than its algorithm's hash is refused, without showing it" do
    {nil => 32, "HS256" => 32, "HS384" => 48, "HS512" => 64}.each do |alg, least|
      [1, least - 1].each do |size|
        message = refused(publisher_key: "x" * size, alg: alg)
        assert_match(/\Apublisher_key of issuer .*: the secret has #{size} bytes, and #{alg || "HS256"} needs at least #{least}/, message)
        assert_includes message, "openssl rand -hex 32"
        refute_includes message, "xx"
        file("#{"x" * size}\n") { |path| assert_match(/has #{size} bytes/, refused(publisher_key: "file:#{path}", alg: alg)) }
        assert_match(/\Ajwks of issuer .*has #{size} bytes/, file(jwks("kty" => "oct", "k" => encode("x" * size))) { |path| refused(jwks: "file:#{path}", alg: alg) })
      end
      assert authorization(issuer(publisher_key: "x" * least, alg: alg))
    end
    assert_match(/needs at least 64/, refused(publisher_key: jwks("kty" => "oct", "k" => encode("x" * 63), "alg" => "HS512")))
    assert_match(/needs at least 64/, refused(publisher_key: "x" * 63, alg: "HS256 HS512"))
  end

  test "in developer mode a short secret works and is warned about, without showing it" do
    logger = Tokens::Logger.new
    assert accepts?("!ChangeMe!", "!ChangeMe!", "HS256", logger: logger, weak_secrets: true)
    assert_equal 1, logger.lines.size
    assert_match(/publisher_key of issuer .* 10 bytes, and HS256 needs at least 32/, logger.lines[0])
    refute_includes logger.lines[0], "ChangeMe"
    authorization(issuer(publisher_key: "x" * 32), logger: logger, weak_secrets: true)
    assert_equal 1, logger.lines.size
    authorization(issuer(publisher_key: "x" * 32, alg: "HS512"), logger: logger, weak_secrets: true)
    assert_equal 2, logger.lines.size
  end

  test "a key of a set that is too short is not used, and named in the log" do
    logger = Tokens::Logger.new
    set = jwks(jwk(P256), {"kty" => "oct", "k" => encode("x" * 31)})
    assert accepts?(set, P256, "ES256", logger: logger)
    refute accepts?(set, "x" * 31, "HS256")
    assert_match(/key 1: the secret has 31 bytes/, logger.lines.join)
  end

  test "a file holds PEM text, a JWK Set or a secret" do
    file(public_pem("ES256")) { |path| ["file:#{path}", "@#{path}", "file://#{path}", "FILE:#{path}"].each { |value| assert accepts?(value, P256, "ES256"), value } }
    file(jwks(jwk(P256))) { |path| assert accepts?("file:#{path}", P256, "ES256") }
    file("#{PUBLISHER_SECRET}\n") { |path| assert accepts?("@#{path}", PUBLISHER_SECRET, "HS256") }
    file("https://issuer.example.com/jwks") { |path| assert accepts?("@#{path}", "https://issuer.example.com/jwks", "HS256", weak_secrets: true) }
  end

  test "a file that cannot be read is refused, and what may be a secret is not shown" do
    assert_match(%r{the file /nowhere/key cannot be read}, refused("file:/nowhere/key"))
    refute_includes refused("@hidden-secret"), "hidden"
    assert_match(/JWK Set/, refused("@hidden-secret"))
    assert_match(/cannot be read/, refused("file:/nowhere\0/key"))
    file("\n") { |path| assert_match(/empty/, refused("file:#{path}")) }
    assert_match(/cannot be read/, refused("file:/"))
  end

  # RFC 7517.
  test "a JWK Set may be given as JSON or as a mapping, and a single key too" do
    set = jwks(jwk(P256))
    [set, "  #{set}", JSON.generate(jwk(P256)), JSON.parse(set), {keys: [jwk(P256).transform_keys(&:to_sym)]}].each do |value|
      assert accepts?(value, P256, "ES256"), value.inspect
    end
    assert accepts?(jwks("kty" => "oct", "k" => encode("@a secret that looks like a file")), "@a secret that looks like a file", "HS256")
    assert accepts?(jwks("kty" => "oct", "k" => encode("s" * 64), "alg" => "HS512"), "s" * 64, "HS512")
    refute accepts?(jwks("kty" => "oct", "k" => encode("s" * 64), "alg" => "HS512"), "s" * 64, "HS256")
  end

  test "the private members of a key are not needed and not kept" do
    whole = JWT::JWK.new(P256).export(include_private: true).transform_keys(&:to_s)
    assert accepts?(jwks(whole), P256, "ES256")
    [whole, JWT::JWK.new(RSA).export(include_private: true).transform_keys(&:to_s)].each do |key|
      set = Hikyaku::Web::Authorization::JwkSet.new(jwks(key), configured: nil, secrets: true)
      refute_predicate set.keys[0].instance_variable_get(:@material), :private?
    end
    refute_predicate Hikyaku::Web::Authorization::Pem.keys(RSA.to_pem, configured: nil)[0].instance_variable_get(:@material), :private?
  end

  # RFC 7517 sections 4.2, 4.3 and 4.4.
  test "use, key_ops and alg of a key are obeyed" do
    [{use: "sig"}, {key_ops: ["verify"]}, {key_ops: %w[sign verify]}, {alg: "ES256"}].each { |more| assert accepts?(jwks(jwk(P256, **more)), P256, "ES256"), more.inspect }
    [{use: "enc"}, {use: nil}, {key_ops: ["sign"]}, {key_ops: []}, {key_ops: ["encrypt"]}, {alg: "ES384"}, {alg: "RS256"}, {alg: "HS256"},
      {alg: "none"}, {alg: "ECDH-ES"}, {alg: nil}].each do |more|
      assert_match(/no usable key/, refused(jwks: jwks(jwk(P256, **more))), more.inspect)
    end
    assert accepts?(jwks(jwk(RSA, alg: "PS256")), RSA, "PS256")
    refute accepts?(jwks(jwk(RSA, alg: "PS256")), RSA, "RS256")
    assert accepts?(nil, RSA, "PS384", by: issuer(jwks: jwks(jwk(RSA)), alg: "PS384"))
    assert_match(/allowlist/, refused(jwks: jwks(jwk(RSA, alg: "RS256")), alg: "PS384"))
  end

  test "unusable keys of a set are skipped" do
    bad = [nil, 1, "x", [], {}, {"kty" => "RSA"}, {"kty" => "RSA", "n" => 1, "e" => "AQAB"}, {"kty" => "RSA", "n" => "!!", "e" => "AQAB"},
      {"kty" => "EC", "crv" => "P-256", "x" => "AA", "y" => "AA"}, {"kty" => "EC", "crv" => "P-999", "x" => "AA", "y" => "AA"},
      {"kty" => "OKP", "crv" => "Ed25519", "x" => "AA"}, jwk(ED25519.verify_key, crv: "X25519"), {"kty" => "oct"}, {"kty" => "oct", "k" => ""},
      {"kty" => "oct", "k" => 1}, {"kty" => "AKP"}, {"kty" => ["EC"]}, jwk(OpenSSL::PKey::RSA.new(1024)), jwk(OpenSSL::PKey::EC.generate("secp256k1"))]
    assert accepts?(jwks(*bad, jwk(P256)), P256, "ES256")
    bad.each { |one| assert_match(/no usable key \(key 0: /, refused(jwks: jwks(one)), one.inspect) }
  end

  test "what begins like a JWK Set and is none is refused, and never becomes a secret" do
    ["{", "{}", "{\"keys\":1}", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[],\"keys\":[]}", jwks(jwk(P256))[0..-2], "{secret}", {}, {"keys" => nil}].each do |value|
      assert_match(/JWK Set/, refused(publisher_key: value), value.inspect)
    end
    assert_match(/more than 100/, refused(jwks: jwks(*[jwk(P256)] * 101)))
  end

  test "URLs that no key set may be fetched from are refused" do
    {"http://issuer.example/jwks" => /https/, "https://user:pass@issuer.example/" => /user name/, "https://" => /URL/, "https:// x" => /URL/,
     "http://10.0.0.1/jwks" => /https/}.each do |url, reason|
      message = refused(jwks: url)
      assert_match(reason, message)
      refute_includes message, "pass@"
    end
    %w[https://issuer.example/jwks HTTPS://issuer.example/ http://127.0.0.1:1/ http://[::1]/jwks http://localhost/jwks].each { |url| assert authorization(issuer(jwks: url)) }
  end

  test "an issuer is configured once" do
    assert_match(/twice/, assert_raises(Hikyaku::ConfigError) { authorization(issuer, issuer) }.message)
  end
end
