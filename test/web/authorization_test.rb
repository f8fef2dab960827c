# frozen_string_literal: true

require "test_helper"
require_relative "authorization/tokens"

# Mercure draft-08, section "Token Validation", and what stands behind it: RFC 9068, RFC 7519, RFC 7515, RFC 8725.
class AuthorizationTest < Minitest::Test
  include Tokens

  InvalidToken = Hikyaku::InvalidToken

  def refused(token, role = :publisher, by: authorization)
    error = assert_raises(InvalidToken) { by.access(token, role) }
    refute_match(/[\r\n]/, error.message)
    error.message
  end

  test "a token of the trusted issuer says who and until when" do
    access = authorization.access(token, :publisher)
    assert_equal [ISSUER, "user-1", "token-1"], [access.issuer, access.subject, access.token_id]
    assert_equal [NOW + 300, NOW - 10], [access.expires_at, access.issued_at]
    refute access.legacy?
    assert_predicate access, :frozen?
  end

  # Section "Token Validation": typ, by RFC 7515 section 4.1.9.
  test "typ is at+jwt in any case, with or without application" do
    ["at+jwt", "AT+JWT", "At+Jwt", "application/at+jwt", "Application/AT+JWT"].each do |typ|
      assert authorization.access(token(header: {"typ" => typ}), :publisher), typ
    end
  end

  test "a token of any other type is refused, so that an ID token publishes nothing" do
    ["JWT", "jwt", "", "at+jwt ", " at+jwt", "at+jwt\n", "xat+jwt", "at+jwts", "text/at+jwt", "application/application/at+jwt",
      :absent, nil, 1, ["at+jwt"], {"at+jwt" => 1}].each do |typ|
      assert_match(/typ/, refused(token(header: {"typ" => typ})), typ.inspect)
    end
  end

  # RFC 7515 section 3.1: compact serialization only.
  test "what is not a JWS in compact serialization is refused" do
    good = token
    head, body, signature = good.split(".")
    {
      "nothing" => "", "a word" => "token", "dots" => "..", "two parts" => "#{head}.#{body}", "unsigned" => "#{head}.#{body}.",
      "four parts" => "#{good}.#{signature}", "JWE" => "#{good}.a.b", "empty header" => ".#{body}.#{signature}",
      "empty claims" => "#{head}..#{signature}", "leading space" => " #{good}", "line break" => "#{good}\n",
      "line break inside" => "#{head}.\n#{body}.#{signature}", "tab" => "#{head}.#{body}.#{signature}\t", "NUL" => "#{good}\0",
      "padding" => "#{head}==.#{body}.#{signature}", "plain base64" => "#{head}.#{body}.ab+/#{signature}",
      "JSON serialization" => JSON.generate("payload" => body, "protected" => head, "signature" => signature),
      "UTF-8" => "é.é.é", "broken UTF-8" => "\xFF.\xFF.\xFF", "list" => "#{good},#{good}", "scheme" => "Bearer #{good}"
    }.each { |name, text| assert_match(/compact/, refused(text), name) }
    assert_match(/base64url/, refused("#{head}.#{body}.abcde"))
  end

  test "a token has one spelling: stray bits at the end of a part are refused" do
    alphabet = [*"A".."Z", *"a".."z", *"0".."9", "-", "_"]
    head, body, signature = token.split(".")
    twin = "#{signature[0..-2]}#{alphabet[alphabet.index(signature[-1]) ^ 1]}"
    assert_equal signature.tr("-_", "+/").unpack1("m"), twin.tr("-_", "+/").unpack1("m")
    assert_match(/base64url/, refused("#{head}.#{body}.#{twin}"))
  end

  test "a header or claims that are not one JSON object with each member once are refused" do
    good = [JSON.generate("alg" => "HS256", "typ" => "at+jwt"), JSON.generate(claims)]
    deep = "#{"[" * 70}#{"]" * 70}"
    {
      "garbage" => "\x00\x01", "text" => "\"at+jwt\"", "array" => "[]", "null" => "null", "number" => "1", "empty" => " ",
      "trailing" => "%s x", "two objects" => "%s%s", "trailing comma" => "{\"a\":1,}", "byte order mark" => "\xEF\xBB\xBF%s",
      "broken UTF-8" => "{\"a\":\"\xFF\"}", "NaN" => "{\"a\":NaN}", "unquoted" => "{a:1}", "single quotes" => "{'a':1}"
    }.each do |name, shape|
      2.times do |part|
        parts = good.dup
        parts[part] = shape.b.gsub("%s", parts[part])
        assert_match(/JSON object/, refused(signed(*parts)), "#{name}, part #{part}")
      end
    end
    {
      "twice" => [good[0].sub("{", "{\"typ\":\"at+jwt\","), good[1]], "twice in claims" => [good[0], good[1].sub("{", "{\"iss\":\"x\",")],
      "twice by escape" => [good[0].sub("{", "{\"\\u0061lg\":\"none\","), good[1]],
      "twice inside" => [good[0], good[1].sub("{", "{\"x\":{\"a\":1,\"a\":2},")],
      "deep header" => [good[0].sub("{", "{\"x\":#{deep},"), good[1]], "deep claims" => [good[0], good[1].sub("{", "{\"x\":#{deep},")]
    }.each { |name, parts| assert_match(/JSON object/, refused(signed(*parts)), name) }
  end

  # A payload with such a number could not be written into a subscription's document.
  test "a number that is too large for JSON's readers is refused" do
    ["1e999", "-1e999", "[1E999]", "[[{\"a\":1e+999}]]", "1#{"0" * 400}.5"].each do |number|
      [claims(x: "%"), claims(authorization_details: [detail("*", payload: {"x" => "%"})])].each do |wrong|
        parts = [JSON.generate("alg" => "HS256", "typ" => "at+jwt"), JSON.generate(wrong).sub("\"%\"", number)]
        assert_match(/JSON object/, refused(signed(*parts)), number)
      end
    end
    assert authorization.access(token(x: [1e300, 10**400]), :publisher)
  end

  test "a token longer than the limit is refused before anything is parsed" do
    by = authorization(limits: {max_token_bytes: 600})
    assert by.access(token, :publisher)
    assert_match(/at most 600/, refused("#{token}#{"x" * 600}", by: by))
    assert_match(/at most 16384/, refused("." * 16_385))
    assert_match(/compact/, refused("." * 16_384))
  end

  # Section "Token Validation": an explicit allowlist, never none, never from the token.
  test "alg none is refused in every spelling, signed or not" do
    %w[none None NONE nOnE].each do |alg|
      header = encode(JSON.generate("alg" => alg, "typ" => "at+jwt"))
      body = encode(JSON.generate(claims))
      ["", encode("x"), token.split(".").last].each do |signature|
        refused("#{header}.#{body}.#{signature}")
      end
      assert_match(/none/, refused("#{header}.#{body}.#{encode("x")}"))
    end
  end

  test "an alg that the hub does not know is refused" do
    ["hs256", "HS256 ", "HS1", "ES256K", "RSA1_5", "dir", "", 256, nil, :absent, ["HS256"]].each do |alg|
      assert_match(/alg is not an algorithm that the hub knows/, refused(token(header: {"alg" => alg})), alg.inspect)
    end
  end

  test "an alg that the key is not for is refused although the signature is right" do
    %w[HS384 HS512].each { |alg| assert_match(/allowlist/, refused(token(alg: alg))) }
    by = authorization(issuer(publisher_key: public_pem("RS256")))
    assert by.access(token(RSA, alg: "RS256"), :publisher)
    %w[RS384 RS512 PS256].each { |alg| assert_match(/allowlist/, refused(token(RSA, alg: alg), by: by)) }
  end

  test "a key itself refuses an algorithm that it is not for" do
    key = Hikyaku::Web::Authorization::Key.of_secret(PUBLISHER_SECRET, configured: ["HS256"])
    assert key.signed?(JWT::EncodedToken.new(token), "HS256")
    refute key.signed?(JWT::EncodedToken.new(token(alg: "HS512")), "HS512")
  end

  test "a public key cannot be used as the secret of HMAC" do
    %w[RS256 ES256 EdDSA].each do |alg|
      pem = public_pem(alg)
      by = authorization(issuer(publisher_key: pem))
      assert by.access(token(PRIVATE[alg], alg: alg), :publisher)
      [pem, pem.strip, pem.delete("\n"), Base64.decode64(pem.lines[1..-2].join)].each do |secret|
        assert_match(/allowlist/, refused(token(secret, alg: "HS256"), by: by))
      end
    end
  end

  test "a signature is checked with the curve of its algorithm alone" do
    by = authorization(issuer(jwks: jwks(jwk(P256, kid: "k"), jwk(P384, kid: "k"))))
    assert by.access(token(P256, alg: "ES256", header: {"kid" => "k"}), :publisher)
    assert by.access(token(P384, alg: "ES384", header: {"kid" => "k"}), :publisher)
    input = token(P384, alg: "ES384", header: {"alg" => "ES256", "kid" => "k"})
    refused(input, by: by)
    assert_match(/allowlist/, refused(token(P384, alg: "ES384"), by: authorization(issuer(publisher_key: public_pem("ES256")))))
  end

  test "each algorithm is accepted with its key, given as PEM or as a JWK, and no other signature" do
    PRIVATE.each do |alg, key|
      public_jwk = jwk(key.is_a?(Ed25519::SigningKey) ? key.verify_key : key)
      [public_pem(alg), jwks(public_jwk)].each do |given|
        by = authorization(issuer(publisher_key: given, alg: alg))
        good = token(key, alg: alg)
        assert by.access(good, :publisher), alg
        head, body, signature = good.split(".")
        assert_match(/signature/, refused("#{head}.#{encode(JSON.generate(claims(sub: "root")))}.#{signature}", by: by), alg)
        raw = Base64.urlsafe_decode64(signature)
        [raw[0..-2], raw + "\0", "\0" + raw, "\0" * raw.bytesize, raw[0], raw * 2].each do |wrong|
          assert_match(/signature/, refused("#{head}.#{body}.#{encode(wrong)}", by: by), alg)
        end
      end
    end
    {"HS256" => 32, "HS384" => 48, "HS512" => 64}.each do |alg, bytes|
      by = authorization(issuer(publisher_key: "s" * bytes, alg: alg))
      assert by.access(token("s" * bytes, alg: alg), :publisher)
      assert_match(/signature/, refused(token("t" * bytes, alg: alg), by: by))
    end
  end

  test "an EC signature with a longer second half is not another spelling of the same" do
    by = authorization(issuer(publisher_key: public_pem("ES256")))
    head, body, signature = token(P256, alg: "ES256").split(".")
    raw = Base64.urlsafe_decode64(signature)
    refused("#{head}.#{body}.#{encode(raw[0, 32] + "\0" + raw[32, 32])}", by: by)
  end

  # Section "Token Validation": key material in the token is never used.
  test "keys that a token brings are ignored" do
    attacker = OpenSSL::PKey::EC.generate("prime256v1")
    by = authorization(issuer(publisher_key: public_pem("ES256")))
    {
      "jwk" => jwk(attacker), "jku" => "https://attacker.example/jwks", "x5u" => "https://attacker.example/cert",
      "x5c" => [Base64.strict_encode64(attacker.public_to_der)], "kid" => "../../../../dev/null"
    }.each do |member, value|
      assert_match(/signature/, refused(token(attacker, alg: "ES256", header: {member => value}), by: by), member)
      assert by.access(token(P256, alg: "ES256", header: {member => value}), :publisher), member
    end
  end

  # RFC 7515 section 4.1.11, RFC 7797 section 7.
  test "a token that needs an extension is refused" do
    [["b64"], ["exp"], [], "exp", nil, {}].each do |crit|
      assert_match(/crit/, refused(token(header: {"crit" => crit, "exp" => NOW.to_i + 9})), crit.inspect)
    end
    [false, nil, "false", 0].each { |b64| assert_match(/b64/, refused(token(header: {"b64" => b64}))) }
    assert authorization.access(token(header: {"b64" => true}), :publisher)
  end

  test "a payload that is not encoded is refused even when the signature covers it" do
    header = encode(JSON.generate("alg" => "HS256", "typ" => "at+jwt", "b64" => false, "crit" => ["b64"]))
    body = "abc"
    signature = encode(OpenSSL::HMAC.digest("SHA256", PUBLISHER_SECRET, "#{header}.#{body}"))
    refused("#{header}.#{body}.#{signature}")
  end

  test "kid is text or absent" do
    [1, [], {}, true].each { |kid| assert_match(/kid/, refused(token(header: {"kid" => kid}))) }
    assert authorization.access(token(header: {"kid" => "unknown"}), :publisher)
  end

  # Section "Token Validation": exp is mandatory and enforced on the first request too.
  test "a token is void from exp on, and without exp" do
    assert authorization.access(token(exp: NOW.to_i + 1), :publisher)
    assert authorization.access(token(exp: NOW + 0.5), :publisher)
    [NOW.to_i, NOW, NOW.to_i - 1, 0, -1, NOW - 0.5].each { |exp| assert_match(/expired/, refused(token(exp: exp)), exp.inspect) }
    [:absent, nil].each { |exp| assert_match(/no exp/, refused(token(exp: exp)), exp.inspect) }
    [(NOW.to_i + 300).to_s, true, [], {}].each { |exp| assert_match(/exp is not/, refused(token(exp: exp)), exp.inspect) }
    assert_match(/exp is not/, refused(token(exp: 10**400)))
  end

  test "a token is void before nbf" do
    [NOW.to_i, NOW - 0.5, 0, nil].each { |nbf| assert authorization.access(token(nbf: nbf), :publisher) }
    # Clocks differ by a few seconds.
    [NOW.to_i + 5, NOW + 5].each { |nbf| assert authorization.access(token(nbf: nbf), :publisher) }
    [NOW.to_i + 6, NOW + 5.5].each { |nbf| assert_match(/not valid yet/, refused(token(nbf: nbf))) }
    ["0", true, []].each { |nbf| assert_match(/nbf is not/, refused(token(nbf: nbf))) }
  end

  test "a token that says it was made in the future is void: it would outlive any revocation" do
    [NOW.to_i, NOW + 5, 0, -1].each { |iat| assert authorization.access(token(iat: iat), :publisher) }
    {NOW + 5.5 => 6, NOW + 3_600 => 3_600, NOW * 1_000 => nil}.each { |iat, seconds| assert_match(/iat lies #{seconds}.*seconds in the future/, refused(token(iat: iat))) }
    outcome = authorization.explain(token(iat: NOW + 60), :publisher)
    refute outcome[:valid]
    assert_match(/\AThe token's iat lies 60 seconds in the future: the issuer's clock/, outcome[:checks].find { |check| check[:check] == "lifetime" }[:message])
  end

  test "aud is the resource identifier or an array with it" do
    [HUB_URL, [HUB_URL], ["https://other.example", HUB_URL]].each { |aud| assert authorization.access(token(aud: aud), :publisher) }
    [:absent, nil, "", [], 1, {}, "https://hub.example.com", "#{HUB_URL}/", HUB_URL.upcase, "#{HUB_URL} x",
      ["https://other.example"], [[HUB_URL]], [HUB_URL, 1], [HUB_URL, nil]].each do |aud|
      assert_match(/aud/, refused(token(aud: aud)), aud.inspect)
    end
  end

  test "on this machine aud is the resource identifier by any of the machine's names, at the same port and path" do
    names = %w[localhost 127.0.0.1 [::1]]
    names.each do |name|
      by = Hikyaku::Web::Authorization.new(issuers: [issuer], resource_identifier: "http://#{name}:3001/hub", hub_url: HUB_URL, clock: -> { NOW })
      names.each { |other| assert by.access(token(aud: "http://#{other}:3001/hub"), :publisher) }
      %w[http://localhost:3000/hub https://localhost:3001/hub http://localhost:3001/ http://localhost.example:3001/hub http://127.0.0.2:3001/hub http://example.com:3001/hub].each do |aud|
        assert_match(/aud/, refused(token(aud: aud), by: by), aud)
      end
    end
    by = Hikyaku::Web::Authorization.new(issuers: [issuer], resource_identifier: "https://localhost.example/hub", hub_url: HUB_URL, clock: -> { NOW })
    assert_match(/aud/, refused(token(aud: "https://127.0.0.1.example/hub"), by: by))
  end

  test "aud is the resource identifier that is configured, not the hub's URL" do
    by = Hikyaku::Web::Authorization.new(issuers: [issuer], resource_identifier: "urn:hub", hub_url: HUB_URL, clock: -> { NOW })
    assert by.access(token(aud: "urn:hub"), :publisher)
    assert_match(/aud/, refused(token, by: by))
    by = Hikyaku::Web::Authorization.new(issuers: [issuer], resource_identifier: nil, hub_url: HUB_URL, clock: -> { NOW })
    assert by.access(token, :publisher)
  end

  test "iss is exactly one of the configured issuers" do
    [:absent, nil, "", 1, [ISSUER], "#{ISSUER}/", ISSUER.upcase, "https://other.example"].each do |iss|
      assert_match(/iss/, refused(token(iss: iss)), iss.inspect)
    end
  end

  test "the other claims may be absent, and are what they should be when present" do
    bare = %i[sub client_id iat jti].to_h { |name| [name, :absent] }
    access = authorization.access(token(**bare), :publisher)
    assert_equal [nil, nil, nil], [access.subject, access.token_id, access.issued_at]
    %i[sub client_id jti].each { |name| assert_match(/#{name}/, refused(token(name => 1))) }
    assert_match(/iat/, refused(token(iat: "now")))
  end

  # Section "Token Validation": never a pooled set spanning issuers.
  test "a token is checked with the keys of the issuer that it names alone" do
    one = "https://one.example"
    two = "https://two.example"
    by = authorization(issuer(issuer: one, publisher_key: "1" * 32), issuer(issuer: two, publisher_key: "2" * 32))
    assert_equal one, by.access(token("1" * 32, iss: one), :publisher).issuer
    assert_equal two, by.access(token("2" * 32, iss: two), :publisher).issuer
    assert_match(/signature/, refused(token("2" * 32, iss: one), by: by))
    assert_match(/signature/, refused(token("1" * 32, iss: two), by: by))
    assert_match(/iss/, refused(token("1" * 32, iss: "https://three.example"), by: by))
  end

  test "a token signed by the subscriber key does not publish, nor the other way round" do
    assert authorization.access(token(SUBSCRIBER_SECRET), :subscriber)
    assert_match(/signature/, refused(token(SUBSCRIBER_SECRET), :publisher))
    assert_match(/signature/, refused(token(PUBLISHER_SECRET), :subscriber))
  end

  test "an issuer without a key for a role lets nobody in by that role" do
    by = authorization(issuer(subscriber_key: SUBSCRIBER_SECRET))
    assert_match(/no publisher key/, refused(token(SUBSCRIBER_SECRET), by: by))
    assert_equal [false, true], [by.publisher_configured?, by.subscriber_configured?]
    by = authorization(issuer(publisher_key: PUBLISHER_SECRET))
    assert_equal [true, false], [by.publisher_configured?, by.subscriber_configured?]
    by = authorization(issuer(jwks: jwks(jwk(P256))))
    assert_equal [true, true], [by.publisher_configured?, by.subscriber_configured?]
  end

  test "a key of its own goes before the key set of the issuer" do
    by = authorization(issuer(publisher_key: PUBLISHER_SECRET, jwks: jwks(jwk(P256))))
    assert by.access(token, :publisher)
    assert by.access(token(P256, alg: "ES256"), :subscriber)
    refused(token(P256, alg: "ES256"), :publisher, by: by)
  end

  # Section "Token Validation": rotated keys, kid as a hint.
  test "kid chooses among the issuer's keys; without it all that go with the algorithm are tried" do
    old = OpenSSL::PKey::EC.generate("prime256v1")
    by = authorization(issuer(jwks: jwks(jwk(old, kid: "old"), jwk(RSA, kid: "rsa"), jwk(P256, kid: "new"))))
    [[old, "old"], [P256, "new"]].each do |key, kid|
      assert by.access(token(key, alg: "ES256", header: {"kid" => kid}), :publisher)
      assert by.access(token(key, alg: "ES256"), :publisher)
    end
    assert_match(/signature/, refused(token(P256, alg: "ES256", header: {"kid" => "old"}), by: by))
    assert_match(/kid/, refused(token(P256, alg: "ES256", header: {"kid" => "gone"}), by: by))
    assert_match(/allowlist/, refused(token(P256, alg: "ES256", header: {"kid" => "rsa"}), by: by))
  end

  test "without kid a bounded number of keys is tried" do
    keys = Array.new(9) { OpenSSL::PKey::EC.generate("prime256v1") }
    by = authorization(issuer(jwks: jwks(*keys.map { |key| jwk(key) })))
    assert by.access(token(keys[7], alg: "ES256"), :publisher)
    refused(token(keys[8], alg: "ES256"), by: by)
  end

  test "no message shows anything of the token" do
    secret = "s3cr3tvalue"
    tokens = [token(iss: secret), token(aud: secret), token(header: {"typ" => secret}), token(header: {"alg" => secret}),
      token(header: {"kid" => [secret]}), token(exp: secret), token(sub: [secret]),
      token(authorization_details: [detail("#{secret}\u0000")]), token(authorization_details: [detail("a", type: secret)])]
    tokens.each { |one| refute_includes refused(one), secret }
    refute_includes authorization.inspect, PUBLISHER_SECRET
  end
end
