# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

class ExplanationTest < Minitest::Test
  include Tokens

  CHECKS = %w[size form header type algorithm extensions claims issuer signature lifetime audience identity grants].freeze

  def explain(token, role = :publisher, **options) = authorization(**options).explain(token, role)

  def failed(explanation) = explanation[:checks].reject { |check| check[:ok] != false }.map { |check| check[:check] }

  test "a valid token passes every check, in order, and shows what it permits" do
    explanation = explain(token(authorization_details: [detail("a", actions: ["publish"]), detail("/b/:id", type: "urlpattern", actions: ["subscribe"], payload: {"x" => 1})]))
    assert explanation[:valid]
    assert_equal [:publisher, false], explanation.values_at(:role, :legacy)
    assert_equal CHECKS, explanation[:checks].map { |check| check[:check] }
    assert(explanation[:checks].all? { |check| check[:ok] == true && check[:message].match?(/\A[A-Z0].*\.\z/) })
    assert_equal "at+jwt", explanation[:header]["typ"]
    assert_equal "user-1", explanation[:claims]["sub"]
    assert_equal({
      publish: [{type: "exact", pattern: "a"}],
      subscribe: [{type: "urlpattern", pattern: "/b/:id", payload: {"x" => 1}}]
    }, explanation[:permits])
  end

  test "every check that fails is shown, not only the first" do
    explanation = explain(token("wrong", exp: NOW - 1, aud: "x", header: {"typ" => "JWT"}))
    refute explanation[:valid]
    assert_equal %w[type signature lifetime audience], failed(explanation)
    assert_equal "x", explanation[:claims]["aud"]
    assert_equal "The token has expired.", explanation[:checks].find { |check| check[:check] == "lifetime" }[:message]
    assert_equal [{type: "exact", pattern: "*"}], explanation[:permits][:publish], "what it would permit"
  end

  test "a malformed grant is explained with its reason" do
    explanation = explain(token(authorization_details: [detail("https://a.example/[(", type: "urlpattern")]))
    assert_equal %w[grants], failed(explanation)
    assert_includes explanation[:checks].last[:message], "authorization_details[0].topics[0].match"
    assert_equal({publish: [], subscribe: []}, explanation[:permits])
  end

  test "hopeless garbage is explained too" do
    ["", "x", "a.b.c", "\xFF\xFE", "." * 100_000, " ", "e30.e30.e30", "bnVsbA.bnVsbA.bnVsbA", "\0"].each do |garbage|
      explanation = explain(garbage)
      refute explanation[:valid], garbage[0, 20].inspect
      assert_equal CHECKS, explanation[:checks].map { |check| check[:check] }
      refute_empty failed(explanation)
      assert JSON.generate(explanation)
    end
    claims_alone = explain("#{encode("{")}.#{token.split(".", 2).last}")
    assert_equal [%w[header], "user-1"], [failed(claims_alone), claims_alone[:claims]["sub"]]
    too_long = explain("." * 100_000)
    assert_equal [false] + [nil] * 12, too_long[:checks].map { |check| check[:ok] }
    assert_equal [nil, nil], too_long.values_at(:header, :claims)
  end

  test "it agrees with what the hub does" do
    [token, token(exp: NOW), token("wrong"), token(sub: 1), token(header: {"crit" => []}), legacy(PUBLISHER_SECRET, {}), "x"].each do |one|
      [true, false].each do |legacy|
        hub = authorization(legacy: legacy)
        accepted = begin
          hub.access(one, :publisher)
        rescue Hikyaku::InvalidToken
          false
        end
        assert_equal (accepted ? true : false), hub.explain(one, :publisher)[:valid]
      end
    end
  end

  test "tokens that are damaged anywhere are refused and explained alike, and nothing else happens" do
    random = Random.new(20_260_101)
    hubs = [authorization, authorization(legacy: true), authorization(issuer(jwks: jwks(jwk(RSA), jwk(P256), jwk(ED25519.verify_key))))]
    tokens = [token, token(P256, alg: "ES256"), token(RSA, alg: "RS256"), token(ED25519, alg: "EdDSA"), legacy(PUBLISHER_SECRET, {})]
    300.times do
      damaged = tokens.sample(random: random).b
      random.rand(1..3).times { damaged.setbyte(random.rand(damaged.bytesize), (random.rand < 0.2) ? random.rand(256) : "ABCxyz09-_.".bytes.sample(random: random)) }
      hubs.each do |hub|
        accepted = begin
          !hub.access(damaged, :publisher).nil?
        rescue Hikyaku::InvalidToken
          false
        end
        explanation = hub.explain(damaged, :publisher)
        assert_equal accepted, explanation[:valid], damaged
        refute accepted && !tokens.include?(damaged), damaged
      end
    end
  end

  test "a 0.x token is explained by its own rules" do
    explanation = explain(legacy(PUBLISHER_SECRET, {"mercure" => {"publish" => ["/{x}"], "payload" => 1}}), legacy: true)
    assert explanation[:valid]
    assert explanation[:legacy]
    assert_equal [{type: "uri_template", pattern: "/{x}"}], explanation[:permits][:publish]
  end

  test "nothing of a key is shown" do
    text = JSON.generate([explain(token), explain(token("wrong")), explain(token(SUBSCRIBER_SECRET))])
    [PUBLISHER_SECRET, SUBSCRIBER_SECRET, encode(PUBLISHER_SECRET)].each { |secret| refute_includes text, secret }
    refute_includes text, token.split(".").last
  end
end
