# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

class TokenCacheTest < Minitest::Test
  include Tokens

  # Counts how often tokens are validated: each validation asks for the time of day through a new Verification.
  def hub(**options)
    @now ||= NOW
    @hub ||= authorization(clock: -> { @now }, **options)
  end

  def valid?(token, role = :publisher)
    hub.access(token, role) && true
  rescue Hikyaku::InvalidToken
    false
  end

  test "a valid token is validated once for a role" do
    one = token(exp: NOW + 100)
    assert_same hub.access(one, :publisher), hub.access(one.dup, :publisher)
    assert_same hub.access(one, :publisher), hub.access(one.b, :publisher)
    refute_same hub.access(one, :publisher), hub.access(token(exp: NOW + 101), :publisher)
  end

  test "what a token permits in one role it does not in the other" do
    same = authorization(issuer(publisher_key: "k" * 32, subscriber_key: "k" * 32))
    one = token("k" * 32)
    refute_same same.access(one, :publisher), same.access(one, :subscriber)
    assert valid?(token, :publisher)
    refute valid?(token, :subscriber)
  end

  # Section "Token Validation": exp is enforced on every request.
  test "the clock is looked at every time" do
    one = token(exp: NOW + 10, nbf: NOW - 10)
    assert valid?(one)
    {9.9 => true, -15.1 => false, -15 => true, 10 => false, 9 => true}.each do |seconds, valid|
      @now = NOW + seconds
      assert_equal valid, valid?(one), seconds
    end
    @now = NOW + 10
    assert_match(/expired/, assert_raises(Hikyaku::InvalidToken) { hub.access(one, :publisher) }.message)
  end

  test "a 0.x token without expiry stays valid, one with expiry does not" do
    hub(legacy: true)
    for_ever = legacy(PUBLISHER_SECRET, {})
    short = legacy(PUBLISHER_SECRET, {"exp" => NOW + 1})
    assert valid?(for_ever)
    assert valid?(short)
    @now += 1e9
    assert valid?(for_ever)
    refute valid?(short)
  end

  test "refusals are not kept" do
    early = token(nbf: NOW + 6, exp: NOW + 100)
    refute valid?(early)
    @now += 1
    assert valid?(early)
  end

  test "the token is compared whole" do
    one = token
    assert valid?(one)
    [one[0..-2], "#{one}A", one.sub(/\A./, "f"), one.swapcase, one[1..], ""].each { |other| refute valid?(other) }
  end

  test "the cache of tokens is bounded in bytes" do
    hub(limits: {max_token_cache_bytes: 50_000})
    first = token(sub: "first")
    kept = hub.access(first, :publisher)
    100.times { |number| hub.access(token(sub: "user-#{number}"), :publisher) }
    refute_same kept, hub.access(first, :publisher)
  end

  test "many threads get right answers" do
    hub(limits: {max_token_cache_bytes: 60_000})
    good = Array.new(20) { |n| token(sub: "user-#{n}") }
    threads = Array.new(4) do |n|
      Thread.new { 200.times.map { |i| hub.access(good[(i * (n + 1)) % 20], :publisher).subject == "user-#{(i * (n + 1)) % 20}" }.all? }
    end
    assert threads.all?(&:value)
  end
end
