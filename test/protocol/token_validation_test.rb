# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Token Validation"; RFC 9068, section 4; RFC 8725.
class Protocol::TokenValidationTest < Protocol::Test
  test "typ must be at+jwt, with or without application/, in any case (Token Validation, typ)" do
    ["at+jwt", "application/at+jwt", "AT+JWT", "Application/At+Jwt"].each { |typ| accepted(header: {"typ" => typ}) }
    ["JWT", "jwt", "at+jwt ", "at-jwt", "application/jwt", "text/at+jwt", "application/application/at+jwt", "", nil, 1, ["at+jwt"], :absent, "dpop+jwt", "logout+jwt"].each do |typ|
      refused(header: {"typ" => typ})
    end
  end

  test "alg none is never accepted, however it is spelled (Token Validation, alg)" do
    %w[none None NONE nOnE].each do |alg|
      unsigned = raw({"typ" => "at+jwt", "alg" => alg}, good)[/\A.*\./]
      ["", "x", base64url("x"), raw({"alg" => alg}, good)[/[^.]*\z/]].each { |signature| refused(raw: "#{unsigned}#{signature}") }
    end
    refused(raw: JWT.encode(good, nil, "none", {"typ" => "at+jwt"}))
  end

  test "only the configured algorithm is accepted, whatever the token says (Token Validation, alg)" do
    %w[HS384 HS512].each { |alg| refused(alg: alg) }
    refused(key: OpenSSL::PKey::RSA.new(2048), alg: "RS256")
    refused(key: OpenSSL::PKey::EC.generate("prime256v1"), alg: "ES256")
    [nil, "", 1, ["HS256"], "hs256", "HMAC", "HS256 "].each { |alg| refused(raw: raw({"typ" => "at+jwt", "alg" => alg}, good)) }
    refused(raw: raw('{"typ":"at+jwt"}', good))
  end

  test "EdDSA, ES256 and RS256 tokens are accepted where they are configured, and a public key is no secret (Token Validation, alg)" do
    ed25519 = Ed25519::SigningKey.generate
    der = ["302a300506032b6570032100"].pack("H*") + ed25519.verify_key.to_bytes
    rsa = OpenSSL::PKey::RSA.new(2048)
    ec = OpenSSL::PKey::EC.generate("prime256v1")
    {
      "EdDSA" => [ed25519, "-----BEGIN PUBLIC KEY-----\n#{[der].pack("m0")}\n-----END PUBLIC KEY-----\n"],
      "RS256" => [rsa, rsa.public_to_pem], "ES256" => [ec, ec.public_to_pem]
    }.each do |alg, (private_key, pem)|
      @own&.stop
      start(publisher_key: pem, subscriber_key: pem, alg: alg)
      accepted(key: private_key, alg: alg)
      # Algorithm confusion: the public key as an HMAC secret.
      refused(key: pem, alg: "HS256")
      refused(key: pem.strip, alg: "HS256")
      refused
    end
  end

  test "a token with another key, or one byte changed, is refused (Token Validation)" do
    refused(key: "another secret of more than thirty-two bytes")
    token = make
    head, body, signature = token.split(".")
    changed = base64url(JSON.generate(good.merge("sub" => "admin")))
    ["#{head}.#{changed}.#{signature}", "#{head}.#{body}.#{signature[0..-3]}", "#{head}.#{body}.", "#{head}.#{body}", "#{head}..#{signature}", ".#{body}.#{signature}",
      "#{token}.", ".#{token}", "#{token}.x", "#{token}=", token.tr("A-Za-z", "N-ZA-Mn-za-m"), "#{token}~"].each { |raw| refused(raw: raw) }
  end

  test "each role has its key, and the other's is refused (Token Validation; Authorization)" do
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: token(:publisher, "*", key: AccessTokens::SECRETS[:subscriber]))
    assert_challenge 401, "invalid_token", subscribe({"match" => topic}, token: token(:subscriber, "*", key: AccessTokens::SECRETS[:publisher]))
  end

  test "a key that the token brings is never used (Token Validation: jwk, jku, x5u)" do
    rsa = OpenSSL::PKey::RSA.new(2048)
    jwk = JWT::JWK.new(rsa).export
    ["jwk", "jku", "x5u", "x5c", "kid"].zip([jwk, "http://127.0.0.1:#{server.port}/keys", "http://127.0.0.1:#{server.port}/cert", ["MIIB"], "../../dev/null"]).each do |name, value|
      refused(key: rsa, alg: "RS256", header: {name => value})
    end
    # Beside a good signature they do no harm.
    accepted(header: {"jwk" => jwk, "jku" => "https://evil.example/keys"})
    secret = "a secret that the token brings with it, 32 bytes"
    refused(key: secret, header: {"jwk" => {"kty" => "oct", "k" => base64url(secret)}})
  end

  test "an extension that must be understood is not (RFC 7515, section 4.1.11)" do
    refused(header: {"crit" => ["exp"]})
    refused(header: {"crit" => ["b64"], "b64" => false})
    refused(header: {"crit" => []})
  end

  test "exp is enforced, on the first request too, and must be there (Token Validation, exp)" do
    now = Time.now.to_i
    [:absent, nil, 0, now - 1, now, (now + 600).to_s, "never", {}, [], -1, true].each { |exp| refused(exp: exp) }
    [now + 30, now + 10**9, now + 30.5].each { |exp| accepted(exp: exp) }
  end

  test "nbf is enforced when it is there (Token Validation, nbf)" do
    now = Time.now.to_i
    accepted(nbf: now - 10)
    [now + 60, "soon", {}].each { |nbf| refused(nbf: nbf) }
  end

  test "a token from the future is refused, but for a few seconds that clocks may differ" do
    now = Time.now.to_i
    [now, now + 2, now - 10**9].each { |iat| accepted(iat: iat) }
    [now + 30, now + 10**9, now * 1_000].each { |iat| refused(iat: iat) }
  end

  test "aud must be the hub's resource identifier or an array with it (Token Validation, aud)" do
    [AccessTokens::HUB_URL, [AccessTokens::HUB_URL], ["https://other.example", AccessTokens::HUB_URL]].each { |aud| accepted(aud: aud) }
    [:absent, nil, "", [], "#{AccessTokens::HUB_URL}/", AccessTokens::HUB_URL.sub("https", "http"), AccessTokens::HUB_URL.upcase, "https://hub.example.com", "*",
      ["https://other.example"], {AccessTokens::HUB_URL => true}, [[AccessTokens::HUB_URL]], 1, [1, AccessTokens::HUB_URL]].each { |aud| refused(aud: aud) }
  end

  test "iss must be a configured issuer, exactly (Token Validation, iss)" do
    [:absent, nil, "", "#{AccessTokens::ISSUER}/", AccessTokens::ISSUER.upcase, "https://other.example", [AccessTokens::ISSUER], 1].each { |iss| refused(iss: iss) }
  end

  test "keys of several issuers are never pooled (Token Validation)" do
    other = "https://other.example"
    secrets = %w[publisher subscriber].to_h { |role| ["#{role}_key", "the other issuer's secret for a #{role}"] }
    start(issuers: [{"issuer" => other, "alg" => "HS256"}.merge(secrets)])
    accepted
    accepted(iss: other, key: secrets["publisher_key"])
    refused(iss: other)
    refused(key: secrets["publisher_key"])
    refused(iss: other, key: secrets["subscriber_key"])
    assert_equal 200, subscribe({"match" => topic}, token: token(:subscriber, topic, iss: other, key: secrets["subscriber_key"])).status
  end

  test "keys are rotated by kid, which only chooses (Token Validation, kid)" do
    old, new = OpenSSL::PKey::EC.generate("prime256v1"), OpenSSL::PKey::EC.generate("prime256v1")
    set = {"keys" => {"old" => old, "new" => new}.map { |kid, key| JWT::JWK.new(key, kid: kid).export.merge("use" => "sig", "alg" => "ES256") }}
    start(publisher_key: JSON.generate(set), subscriber_key: JSON.generate(set), alg: "ES256")
    accepted(key: old, alg: "ES256", header: {"kid" => "old"})
    accepted(key: new, alg: "ES256", header: {"kid" => "new"})
    accepted(key: new, alg: "ES256")
    refused(key: new, alg: "ES256", header: {"kid" => "old"})
    refused(key: OpenSSL::PKey::EC.generate("prime256v1"), alg: "ES256", header: {"kid" => "new"})
  end

  test "the claims that the hub does not rely on may be missing, but not be something else (Token Validation)" do
    %i[sub client_id iat jti].each { |claim| accepted(claim => :absent) }
    {sub: 1, client_id: [], iat: "yesterday", jti: {}}.each { |claim, value| refused(claim => value) }
    accepted(scope: "anything", foo: {"bar" => 1})
  end

  test "a token is one JWS in compact serialization, of JSON objects with each member once (RFC 7515; RFC 8725)" do
    text = JSON.generate(good)
    [text.sub("{", '{"iss":"x",'), "[]", "null", "\"x\"", "1", "{", "", "#{text}x", "\xFF".b, text.encode("UTF-16LE").b, "{}", "\uFEFF#{text}"].each do |payload|
      refused(raw: raw({"typ" => "at+jwt"}, payload))
    end
    ['{"alg":"HS256","typ":"at+jwt","alg":"none"}', '{"alg":"none","typ":"at+jwt","alg":"HS256"}', "[]", "{}", "x", ""].each { |header| refused(raw: raw(header, good)) }
    refused(raw: [base64url('{"alg":"dir","typ":"at+jwt"}'), "", "AA", "AA", "AA"].join("."))
    refused(raw: base64url(JSON.generate("payload" => base64url(text), "signatures" => [])))
  end

  test "a claim nested beyond all measure is refused" do
    deep = ("[" * 5_000) + ("]" * 5_000)
    refused(raw: raw({"typ" => "at+jwt"}, JSON.generate(good).sub("{", "{\"x\":#{deep},")))
  end

  test "a stream is closed no later than exp, with a time to come back (Subscribers)" do
    tokens = [1, 2].map { |seconds| Time.now.to_i + seconds }.to_h { |exp| [exp, subscriber(topic, exp: exp)] }
    streams = tokens.map { |exp, token| [exp, subscribe({"match" => topic}, token: token)] }
    streams.each do |exp, stream|
      next assert_equal(401, stream.status) unless stream.is_a?(EventStream) # its second was over already
      stream.rest
      # To the moment it is tested with a clock of its own (engine_contract); here the machine may be busy.
      assert_operator Time.now.to_f, :<, exp + 60
      assert_kind_of Integer, stream.retry_after
      sleep [exp - Time.now.to_f, 0].max
      assert_challenge 401, "invalid_token", subscribe({"match" => topic}, token: tokens[exp]), "a token that was good a moment ago"
    end
    assert(streams.any? { |_, stream| stream.is_a?(EventStream) })
  end

  test "a stream is closed after the longest lifetime, whatever exp says (Subscribers)" do
    start(max_lifetime: 0.5)
    [subscribe({"match" => topic}, token: subscriber(topic)), follow(topic)].each do |stream|
      stream.rest
      assert stream.ended?
      assert_kind_of Integer, stream.retry_after
    end
  end

  private

  def make(**changes) = token(:publisher, "*", **changes)

  def accepted(raw: nil, **changes)
    response = post({"topic" => topic}, token: raw || make(**changes))
    assert_equal 200, response.status, "#{changes}: #{response.body}"
  end

  def refused(raw: nil, **changes)
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: raw || make(**changes)), raw || changes.inspect[0, 300]
  end

  def good = claims([detail("*")])

  # Signed as a publisher's, whatever it is.
  def raw(header, claims) = sign(header, claims, AccessTokens::SECRETS[:publisher])
end
