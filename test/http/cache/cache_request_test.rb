# frozen_string_literal: true

require "test_helper"
require_relative "scenario"

# RFC 9111, section 4.1: which requests a stored response answers.
class HTTPCacheRequestTest < Minitest::Test
  include CacheScenario

  FRESH = "cache-control: max-age=60"
  private_constant :FRESH

  # What came with this Vary for the first request is, or is not, an answer to the second.
  MATCHES = [
    ["accept", ["accept: a"], ["accept: a"], true], ["accept", ["accept: a"], ["accept: b"], false], ["accept", ["accept: a"], [], false],
    ["accept", [], ["accept: a"], false], ["accept", [], [], true], ["accept", ["accept: "], [], false], ["accept", ["accept: a"], ["accept: A"], false],
    ["Accept", ["accept: a", "referer: 1"], ["accept: a", "referer: 2"], true], ["ACCEPT , x-y", ["accept: a", "x-y: 1"], ["x-y: 1", "accept: a"], true],
    ["accept, x-y", ["accept: a", "x-y: 1"], ["accept: a", "x-y: 2"], false], ["accept, x-y", ["accept: a"], ["accept: a"], true],
    ["accept, x-y", ["accept: a"], ["accept: a", "x-y: 2"], false], ["", ["accept: a"], ["accept: b"], true], [", ,", ["accept: a"], ["accept: b"], true],
    # white space, and fields in one or several lines
    ["accept", ["accept: a,b"], ["accept:  a , \tb "], true], ["accept", ["accept: a, b"], ["accept: a", "accept: b"], true],
    ["accept", ["accept: a", "accept: b"], ["accept: b", "accept: a"], false], ["accept", ["accept: a  b"], ["accept: a b"], true],
    ["accept", ["accept: a b"], ["accept: ab"], false], ["accept", ["accept: \"a, b\""], ["accept: \"a,b\""], false],
    ["accept", ["accept: \"a\\\", b\", c"], ["accept: \"a\\\", b\",c"], true], ["accept", ["accept: \"a\\\", b\""], ["accept: \"a\\\",b\""], false],
    ["accept", ["accept: \"a  b"], ["accept: \"a b"], false],
    # "*" answers nobody, and neither does what cannot be compared
    ["*", [], [], false], ["accept, *", ["accept: a"], ["accept: a"], false], ["*, *", [], [], false], [", *", [], [], false], ["a b", [], [], false],
    ["a=b", [], [], false], [(1..33).map { |n| "x-#{n}" }.join(","), [], [], false], [(1..32).map { |n| "x-#{n}" }.join(","), [], [], true],
    ["x" * 5000, [], [], false]
  ].freeze
  private_constant :MATCHES

  test "a response answers requests that are alike in the fields it varies by" do
    MATCHES.each do |vary, first, second, fresh|
      another_cache
      answer(FRESH, "vary: #{vary}", request: first)
      assert_equal fresh ? :fresh : :miss, kind(ask(*second)), [vary[0, 80], first, second].inspect
    end
  end

  test "Vary may stand in several fields" do
    answer(FRESH, "vary: accept", "vary: x-y", request: ["accept: a", "x-y: 1"])
    assert_equal %i[fresh miss], [kind(ask("accept: a", "x-y: 1")), kind(ask("accept: a", "x-y: 2"))]
    another_cache
    answer(FRESH, "vary: accept", "vary: *", request: ["accept: a"])
    assert_equal 0, cache.size
  end

  test "several variants of a URL are kept" do
    %w[en de fr].each { |language| answer(FRESH, "vary: accept-language", request: ["accept-language: #{language}"], body: language) }
    %w[fr en de].each { |language| assert_equal language, body_of(ask("accept-language: #{language}")) }
    assert_equal :miss, kind(ask("accept-language: it"))
    answer(FRESH, "vary: accept-language", request: ["accept-language: de"], body: "neu")
    assert_equal [3, "neu", "en"], [cache.size, body_of(ask("accept-language: de")), body_of(ask("accept-language: en"))]
  end

  test "of several that match, that of the latest date is used" do
    answer(FRESH, "vary: accept", request: ["accept: a"], body: "newer")
    answer(FRESH, "date: #{date(-10)}", "vary: x-y", request: ["accept: b"], at: 1, body: "older")
    assert_equal 2, cache.size
    assert_equal "newer", body_of(ask("accept: a"))
    assert_equal "older", body_of(ask("accept: c"))
  end

  test "a new answer replaces what answered its request, whatever that varied by" do
    answer(FRESH, "vary: accept", request: ["accept: a"], body: "old")
    answer(FRESH, "vary: accept", request: ["accept: b"], body: "other")
    answer(FRESH, "vary: x-y", request: ["accept: a"], body: "new", at: 1)
    assert_equal 2, cache.size
    assert_equal "new", body_of(ask("accept: a", at: 2))
  end

  # Fields that may name a user: they are not known to name none.
  IDENTIFYING = %w[authorization cookie x-api-key api-key x-auth-token x-csrf-token x-session-id x-user-id x-tenant x-amz-security-token x-amz-date proxy-authorization
    from forwarded x-forwarded-for x-forwarded-user x-real-ip cf-access-jwt-assertion x-goog-api-key private-token baggage dpop signature sec-websocket-protocol
    hx-current-url sec-channel-token sec-fetched-by x-anything].freeze
  # Fields that name none.
  ANONYMOUS = %w[accept accept-language accept-encoding user-agent referer origin dnt priority save-data upgrade-insecure-requests sec-fetch-mode sec-ch-ua
    sec-ch-ua-platform sec-gpc sec-purpose x-requested-with x-request-id traceparent via].freeze
  private_constant :IDENTIFYING, :ANONYMOUS

  IDENTIFYING.each do |name|
    test "what came for a request with #{name} is for requests with the same, unless it is public" do
      [FRESH, "#{FRESH}, private"].each do |control|
        another_cache
        answer(control, "etag: \"a\"", request: ["#{name}: one"])
        assert_equal %i[fresh miss miss], [kind(ask("#{name}: one")), kind(ask("#{name}: two")), kind(ask)]
        assert_equal %i[miss miss], (IDENTIFYING - [name]).first(2).map { |other| kind(ask("#{other}: one")) }
        assert_equal :miss, kind(ask("#{name}: one", "x-second: 1"))
        assert_equal [:stale, :miss], [kind(ask("#{name}: one", at: 61)), kind(ask("#{name}: two", at: 61))], "nor is its tag sent by another"
      end
      answer("#{FRESH}, public", request: ["#{name}: one"])
      assert_equal %i[fresh fresh fresh], [kind(ask("#{name}: one")), kind(ask("#{name}: two")), kind(ask)]
    end
  end

  test "what came for a request that names nobody is for those that name nobody" do
    answer(FRESH)
    assert_equal [:fresh, *ANONYMOUS.map { :fresh }], [kind(ask), *ANONYMOUS.map { |name| kind(ask("#{name}: a")) }]
    IDENTIFYING.each { |name| assert_equal :miss, kind(ask("#{name}: one")), name }
  end

  test "the order of fields is no difference between users, and no secret is kept" do
    answer(FRESH, request: ["cookie: secret", "x-api-key: key"])
    assert_equal %i[fresh miss], [kind(ask("x-api-key: key", "cookie: secret")), kind(ask("x-api-key: secret", "cookie: key"))]
    refute_includes Marshal.dump(cache), "secret"
  end

  test "the order of one field's values is a difference: a server may take the first or the last of them" do
    answer(FRESH, request: ["x-user: one", "x-user: two"])
    assert_equal %i[fresh miss], [kind(ask("x-user: one", "x-user: two")), kind(ask("x-user: two", "x-user: one"))]
  end

  test "what says that it is public and private is private" do
    answer("#{FRESH}, public, private", request: ["x-user: one"])
    assert_equal %i[fresh miss], [kind(ask("x-user: one")), kind(ask("x-user: two"))]
  end

  test "nothing of an answer to one user comes to what is for everybody" do
    %w[en de].each { |language| answer("#{FRESH}, public", "vary: accept-language", "etag: \"a\"", request: ["accept-language: #{language}"]) }
    found = ask("accept-language: en", "x-user: one", at: 61)
    not_modified(found, "cache-control: private, max-age=60", "etag: \"a\"", "x-of-user: one", at: 61)
    assert_equal %i[fresh stale stale], [kind(ask("accept-language: en", "x-user: one", at: 62)), kind(ask("accept-language: de", at: 62)), kind(ask("accept-language: de", "x-user: one", at: 62))]
    refute_includes ask("accept-language: de", at: 62).stored.headers.map(&:first), "x-of-user"
  end

  test "two users of one URL do not push each other out" do
    answer(FRESH, "etag: \"one\"", request: ["authorization: one"], body: "of one")
    answer(FRESH, "etag: \"two\"", request: ["authorization: two"], body: "of two")
    assert_equal ["of one", "of two"], [body_of(ask("authorization: one")), body_of(ask("authorization: two"))]
  end

  test "ten thousand variants of a URL come to a few, those of use last" do
    answer(FRESH, "vary: x", request: ["x: kept"], body: "kept")
    10_000.times do |number|
      answer(FRESH, "vary: x", request: ["x: #{number}"])
      ask("x: kept") if (number % 20).zero?
    end
    assert_equal 32, cache.size
    assert_equal [:fresh, :fresh, :miss], [kind(ask("x: kept")), kind(ask("x: 9999")), kind(ask("x: 1"))]
  end
end
