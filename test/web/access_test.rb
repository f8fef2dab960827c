# frozen_string_literal: true

require "test_helper"
require_relative "authorization/tokens"

class AccessTest < Minitest::Test
  include Tokens

  BOOKS = "https://example.com/books/:id"

  def access(*details) = authorization.access(token(authorization_details: details), :publisher)

  def topics(*strings) = strings.map { |string| topic(string) }

  # Mercure draft-08, section "Publishers".
  test "publishing needs a grant for every topic" do
    access = access(detail("https://example.com/a", actions: ["publish"]), detail(BOOKS, type: "urlpattern", actions: ["publish"]))
    assert access.publish?(topics("https://example.com/a"))
    assert access.publish?(topics("https://example.com/books/1", "https://example.com/a"))
    refute access.publish?(topics("https://example.com/a", "https://example.com/b"))
    refute access.publish?(topics("https://example.com/b", "https://example.com/a"))
  end

  test "publishing and subscribing are granted apart" do
    access = access(detail("a", actions: ["publish"]), detail("b", actions: ["subscribe"]), detail("c"))
    assert_equal [true, false, true], %w[a b c].map { |name| access.publish?(topics(name)) }
    assert_equal [false, true, true], %w[a b c].map { |name| access.subscribe?(topic(name)) }
    assert_equal %w[b c], access.subscribe_matchers.map(&:pattern)
    assert_equal %w[a c], access.publish_matchers.map(&:pattern)
  end

  # Section "Topic Matcher List": exact unless told, byte for byte.
  test "a matcher without a type is exact" do
    access = access(detail(BOOKS))
    assert access.subscribe?(topic(BOOKS))
    refute access.subscribe?(topic("https://example.com/books/1"))
  end

  test "the wildcard grants every topic, whatever its type" do
    [nil, "exact", "urlpattern"].each do |type|
      access = access(detail("*", type: type))
      assert access.subscribe?(topic("anything")), type.inspect
      assert access.publish?(topics("anything", "https://example.com/")), type.inspect
    end
  end

  test "a relative pattern is resolved against the hub" do
    access = access(detail("/.well-known/mercure/subscriptions/*", type: "urlpattern"))
    assert access.subscribe?(topic("/.well-known/mercure/subscriptions/exact/a/b"))
    refute access.subscribe?(topic("https://other.example/.well-known/mercure/subscriptions/exact/a/b"))
  end

  # Section "Authorization Details": tokens with no Mercure detail grant nothing.
  test "a token without a detail is valid and grants nothing" do
    [:absent, [], [{"type" => "payment_initiation", "topics" => "x"}]].each do |details|
      access = authorization.access(token(authorization_details: details), :publisher)
      refute access.publish?(topics("a")), details.inspect
      refute access.subscribe?(topic("a")), details.inspect
      assert_nil access.payload(topic("a"))
    end
  end

  # Section "Payloads".
  test "the first subscribe detail that matches the subscription's own matcher gives the payload" do
    access = access(
      detail("https://example.com/foo", actions: ["publish"], payload: {"for" => "publishers"}),
      detail("https://example.com/foo", payload: {"custom" => 1}),
      detail(BOOKS, type: "urlpattern", payload: {"custom" => 2}),
      detail("https://example.com/none"),
      detail("*", payload: {"custom" => 3})
    )
    assert_equal({"custom" => 1}, access.payload(topic("https://example.com/foo")))
    assert_equal({"custom" => 2}, access.payload(topic(BOOKS)))
    assert_equal({"custom" => 2}, access.payload(topic("https://example.com/books/7")))
    assert_equal({"custom" => 3}, access.payload(topic("https://example.com/other")))
    assert_nil access.payload(topic("https://example.com/none")), "the first match decides although it has no payload"
  end

  test "a payload cannot be changed by who gets it" do
    payload = access(detail("*", payload: {"list" => [{"a" => "b"}]})).payload(topic("x"))
    assert_raises(FrozenError) { payload["list"][0]["a"] << "c" }
  end

  test "neither payloads nor claims are shown by inspect" do
    refute_includes access(detail("*", payload: {"k" => "hidden"})).inspect, "hidden"
  end
end
