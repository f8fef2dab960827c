# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

class VerdictsTest < Minitest::Test
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

  test "a verdict for one role is none for the other" do
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

  test "verdicts take a bounded number of bytes; what is asked for stays" do
    verdicts = Hikyaku::Web::Authorization::Verdicts.new(max_bytes: 100_000)
    access = hub.access(token, :publisher)
    kept = "kept"
    verdicts.store(kept, access, 0)
    1_000.times do |n|
      verdicts.store("token #{n} #{"x" * 300}", access, 0)
      assert verdicts[kept], n
    end
    assert_operator verdicts.size, :<, 30
    assert_operator verdicts.size, :>, 5
    assert_nil verdicts["token 1 #{"x" * 300}"]
    assert_same access, verdicts["token 999 #{"x" * 300}"]
  end

  test "a verdict larger than all is not kept" do
    verdicts = Hikyaku::Web::Authorization::Verdicts.new(max_bytes: 100_000)
    verdicts.store("x" * 20_000, hub.access(token, :publisher), 0)
    assert_equal 0, verdicts.size
    many = hub.access(token(authorization_details: [detail(*["a" * 100] * 30)]), :publisher)
    verdicts.store("many", many, 0)
    assert_equal 0, verdicts.size
  end

  test "a verdict that is stored twice or taken back is counted once" do
    verdicts = Hikyaku::Web::Authorization::Verdicts.new(max_bytes: 100_000)
    access = hub.access(token, :publisher)
    verdicts.store("other", access, 0)
    200.times { verdicts.store("same", access, 0) }
    100.times do
      verdicts.delete("same")
      verdicts.store("same", access, 0)
    end
    assert verdicts["other"]
    assert_equal 2, verdicts.size
    100.times { verdicts.delete("absent") }
    verdicts.clear
    assert_equal 0, verdicts.size
    refute_includes verdicts.inspect, "same"
  end

  test "many threads get right answers" do
    hub(limits: {max_verdict_bytes: 60_000})
    good = Array.new(20) { |n| token(sub: "user-#{n}") }
    threads = Array.new(4) do |n|
      Thread.new { 200.times.map { |i| hub.access(good[(i * (n + 1)) % 20], :publisher).subject == "user-#{(i * (n + 1)) % 20}" }.all? }
    end
    assert threads.all?(&:value)
  end
end
