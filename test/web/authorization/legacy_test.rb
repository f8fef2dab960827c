# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

# Mercure 0.x, section "Authorization", accepted beside the standard.
class LegacyAuthorizationTest < Minitest::Test
  include Tokens

  def hub(*issuers, **options) = authorization(*issuers, legacy: true, **options)

  def claim(publish: [], subscribe: [], **more) = {"mercure" => {"publish" => publish, "subscribe" => subscribe}.merge(more.transform_keys(&:to_s))}

  def void(claims, by: hub, **options)
    assert_raises(Hikyaku::InvalidToken, claims.inspect) { by.access(legacy(PUBLISHER_SECRET, claims, **options), :publisher) }.message
  end

  test "a 0.x token is refused unless 0.x is asked for" do
    assert_raises(Hikyaku::InvalidToken) { authorization.access(legacy(PUBLISHER_SECRET, claim(publish: ["*"])), :publisher) }
  end

  test "the claim mercure grants, without any other claim" do
    access = hub.access(legacy(PUBLISHER_SECRET, claim(publish: ["foo", "https://example.com/{id}"], subscribe: ["bar"])), :publisher)
    assert_predicate access, :legacy?
    assert access.publish?([topic("foo"), topic("https://example.com/1")])
    assert access.publish?([topic("https://example.com/{id}")])
    refute access.publish?([topic("bar")])
    assert access.subscribe?(topic("bar"))
    refute access.subscribe?(topic("foo"))
    assert_equal %w[uri_template], access.subscribe_matchers.map(&:type)
    assert_nil access.expires_at
  end

  test "the claim may be JSON text, or have the namespaced name, which goes first" do
    grant = {"publish" => ["a"], "subscribe" => []}
    [{"mercure" => JSON.generate(grant)}, {"https://mercure.rocks/" => grant}, {"https://mercure.rocks/" => JSON.generate(grant)},
      {"https://mercure.rocks/" => grant, "mercure" => {"publish" => ["b"]}}].each do |claims|
      access = hub.access(legacy(PUBLISHER_SECRET, claims), :publisher)
      assert access.publish?([topic("a")]), claims.inspect
      refute access.publish?([topic("b")]), claims.inspect
    end
  end

  test "a token without the claim, or without arrays, is valid and grants nothing" do
    [{}, {"mercure" => nil}, {"mercure" => {}}, claim, {"mercure" => {"publish" => nil, "subscribe" => nil}}].each do |claims|
      access = hub.access(legacy(PUBLISHER_SECRET, claims), :publisher)
      refute access.publish?([topic("a")]), claims.inspect
      refute access.subscribe?(topic("a")), claims.inspect
    end
  end

  test "the star grants all" do
    access = hub.access(legacy(PUBLISHER_SECRET, claim(publish: ["*"], subscribe: ["*"])), :publisher)
    assert access.publish?([topic("x")])
    assert access.subscribe?(topic("y"))
  end

  test "a malformed claim voids the token" do
    [{"mercure" => 1}, {"mercure" => []}, {"mercure" => "x"}, {"mercure" => "[]"}, {"mercure" => "{\"publish\":"}, {"mercure" => true},
      {"https://mercure.rocks/" => 1}, claim(publish: "*"), claim(publish: {}), claim(publish: [1]), claim(publish: [nil]),
      claim(publish: [["*"]]), claim(subscribe: "*"), claim(subscribe: [{}]), claim(publish: ["a\u0000"])].each { |claims| void(claims) }
  end

  test "limits hold for selectors too" do
    void(claim(publish: ["a"] * 101))
    assert_match(/at most 4/, void(claim(publish: ["abcde"]), by: hub(limits: {max_pattern_bytes: 4})))
    void(claim(subscribe: ["a"] * 101))
  end

  # Section "Payload".
  test "mercure.payload is the payload of every subscription" do
    access = hub.access(legacy(PUBLISHER_SECRET, claim(subscribe: ["a"], payload: {"user" => 1})), :publisher)
    assert_equal({"user" => 1}, access.payload(topic("a")))
    assert_equal({"user" => 1}, access.payload(topic("anything")))
    assert_equal [1], hub.access(legacy(PUBLISHER_SECRET, claim(payload: [1])), :publisher).payload(topic("a"))
    assert_nil hub.access(legacy(PUBLISHER_SECRET, claim(subscribe: ["*"])), :publisher).payload(topic("a"))
  end

  # As the hub in Go takes them.
  test "a selector may be a matcher of today, with a payload of its own" do
    entries = ["a{b}", {"match" => "c"}, {"match" => "/d/:e", "match_type" => "urlpattern"}, {"match" => "{f}", "match_type" => "exact", "payload" => {"g" => 1}}, {"match" => "*", "payload" => [2]}]
    access = hub.access(legacy(PUBLISHER_SECRET, claim(subscribe: entries, publish: entries.first(4), payload: "of all")), :publisher)
    types = %w[uri_template exact urlpattern exact exact]
    assert_equal [types, types.first(4)], [access.subscribe_matchers, access.publish_matchers].map { |matchers| matchers.map(&:type) }
    assert_equal ["of all", {"g" => 1}, [2]], ["c", "{f}", "else"].map { |name| access.payload(topic(name)) }
    assert_equal [true, true, true, false, false], ["ax", "c", "/d/1", "fx", "/d/1/2"].map { |name| access.publish?([topic(name)]) }
    assert hub.access(legacy(PUBLISHER_SECRET, JSON.parse(JSON.generate("mercure" => {"publish" => [{"match" => "*"}]}))), :publisher).publish?([topic("any")])
    [nil, ""].each { |type| assert_equal "exact", hub.access(legacy(PUBLISHER_SECRET, claim(publish: [{"match" => "c", "match_type" => type}])), :publisher).publish_matchers[0].type }
    [{}, {"match" => 1}, {"match" => nil}, {"match_type" => "exact"}, {"match" => "a", "match_type" => "regexp"}, {"match" => "a", "match_type" => 1}, {"match" => "a", "match_type" => "uri_template"},
      {"match" => "a", "match_type" => "URLPattern"}, {"match" => "a\u0000"}, {"match" => "https://[/", "match_type" => "urlpattern"}, [], ["a"], 1, nil, true].each do |entry|
      void(claim(publish: ["a", entry]))
      void(claim(subscribe: [entry]))
    end
  end

  # Section "Subscribers": exp, if there is one.
  test "exp and nbf are enforced when they are there" do
    access = hub.access(legacy(PUBLISHER_SECRET, {"exp" => NOW + 1, "nbf" => NOW - 1, "sub" => 42, "iat" => NOW - 9}), :publisher)
    assert_equal [NOW + 1, "42", NOW - 9], [access.expires_at, access.subject, access.issued_at]
    assert_match(/expired/, void({"exp" => NOW}))
    assert_match(/not valid yet/, void({"nbf" => NOW + 6}))
    assert_match(/iat lies 6 seconds in the future/, void({"iat" => NOW + 6}))
    void({"exp" => "soon"})
    void({"nbf" => "soon"})
    assert hub.access(legacy(PUBLISHER_SECRET, {"exp" => nil, "sub" => {}, "iat" => "x", "jti" => 1}), :publisher)
  end

  test "signature, algorithm, role and size hold as ever" do
    claims = claim(publish: ["*"])
    void(claims, header: {"alg" => "none"})
    void(claims, header: {"crit" => ["exp"]})
    assert_raises(Hikyaku::InvalidToken) { hub.access(legacy("another secret", claims), :publisher) }
    assert_raises(Hikyaku::InvalidToken) { hub.access(legacy(SUBSCRIBER_SECRET, claims), :publisher) }
    assert_raises(Hikyaku::InvalidToken) { hub.access(legacy(PUBLISHER_SECRET, claims, alg: "HS512"), :publisher) }
    pem = public_pem("RS256")
    assert_raises(Hikyaku::InvalidToken) { hub(issuer(publisher_key: pem)).access(legacy(pem, claims), :publisher) }
    assert hub(issuer(publisher_key: pem)).access(legacy(RSA, claims, alg: "RS256"), :publisher)
  end

  test "typ may be anything or absent" do
    ["JWT", "jwt", "", nil, 1, "jws"].each { |typ| assert hub.access(legacy(PUBLISHER_SECRET, {}, header: {"typ" => typ}), :publisher).legacy? }
  end

  test "a token that says it is an access token is judged as one" do
    assert hub.access(token, :publisher).expires_at
    refute hub.access(token, :publisher).legacy?
    %w[at+jwt AT+JWT application/at+jwt].each { |typ| assert_match(/no exp/, void(claim(publish: ["*"]).merge("iss" => ISSUER), header: {"typ" => typ})) }
    [{exp: :absent}, {aud: "x"}, {iss: :absent}, {exp: NOW}].each do |changes|
      assert_raises(Hikyaku::InvalidToken, changes.inspect) { hub.access(token(**changes), :publisher) }
    end
    refute hub.access(token(authorization_details: :absent, **claim(publish: ["*"]).transform_keys(&:to_sym)), :publisher).publish?([topic("a")])
  end

  test "authorization details grant nothing in a 0.x token" do
    refute hub.access(legacy(PUBLISHER_SECRET, claims), :publisher).publish?([topic("a")])
  end

  test "with several issuers a token without iss belongs to the first alone" do
    one, two = "1" * 32, "2" * 32
    by = hub(issuer(issuer: "https://one.example", publisher_key: one), issuer(issuer: "https://two.example", publisher_key: two))
    grant = claim(publish: ["*"])
    assert_equal "https://one.example", by.access(legacy(one, grant), :publisher).issuer
    assert_equal "https://one.example", by.access(legacy(one, grant.merge("iss" => "https://unknown.example")), :publisher).issuer
    assert_equal "https://two.example", by.access(legacy(two, grant.merge("iss" => "https://two.example")), :publisher).issuer
    [legacy(two, grant), legacy(two, grant.merge("iss" => "https://one.example")), legacy(one, grant.merge("iss" => "https://two.example")),
      legacy(two, grant.merge("iss" => "https://unknown.example"))].each do |wrong|
      assert_raises(Hikyaku::InvalidToken) { by.access(wrong, :publisher) }
    end
  end

  test "keys without an issuer serve 0.x tokens only" do
    by = hub(issuer(issuer: "https://two.example", publisher_key: "2" * 32), issuer(issuer: nil, publisher_key: PUBLISHER_SECRET))
    assert by.access(legacy(PUBLISHER_SECRET, {}), :publisher)
    assert_nil by.access(legacy(PUBLISHER_SECRET, {"iss" => "x"}), :publisher).issuer
    [:absent, nil, "x"].each { |iss| assert_raises(Hikyaku::InvalidToken) { by.access(token(iss: iss), :publisher) } }
    error = assert_raises(Hikyaku::ConfigError) { authorization(issuer(issuer: nil, publisher_key: PUBLISHER_SECRET)) }
    assert_match(/issuer/, error.message)
  end

  # What deployed 0.x hubs and their clients share: a short secret and hand-made tokens.
  test "a token of a deployed 0.x hub is accepted" do
    by = hub(issuer(publisher_key: "!ChangeMe!", subscriber_key: "!ChangeMe!"), weak_secrets: true)
    made = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjdXJlIjp7InB1Ymxpc2giOlsiKiJdfX0"
    signature = Base64.urlsafe_encode64(OpenSSL::HMAC.digest("SHA256", "!ChangeMe!", made), padding: false)
    assert by.access("#{made}.#{signature}", :publisher).publish?([topic("https://example.com/1")])
  end
end
