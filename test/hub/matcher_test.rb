# frozen_string_literal: true

require_relative "../test_helper"
require "hikyaku/hub/matcher"
require "hikyaku/hub/topics"

class MatcherTest < Minitest::Test
  Matcher = Hikyaku::Hub::Matcher
  HUB = "https://hub.example.com/.well-known/mercure"

  test "exact matchers compare bytes, without resolving or normalising (draft-08 Exact Matching)" do
    {"/a" => "/a", "é" => "é", "https://example.com/{id}" => "https://example.com/{id}", "" => "", "http://[" => "http://["}.each do |pattern, topic|
      assert match?("exact", pattern, topic), pattern
    end
    {"/a" => "https://hub.example.com/a", "https://example.com" => "https://example.com/", "é" => "e\u0301", "/A" => "/a", "/%61" => "/a", "**" => "a"}.each do |pattern, topic|
      refute match?("exact", pattern, topic), pattern
    end
  end

  test "* matches every topic whatever the type, those that are no URL too (draft-08 Matcher Types)" do
    %w[exact urlpattern uri_template].each do |type|
      matcher = build(type, "*")
      assert_equal [:all], matcher.anchor
      ["/a", "a b", "http://[", "urn:x", ""].each { |topic| assert matcher.match?(topics[topic]), [type, topic].inspect }
    end
    assert_equal [:exact, "a"], build("exact", "a").anchor
  end

  test "URL patterns and topics are resolved against the hub's URL (draft-08 URL Pattern)" do
    [["/books/:id", "https://hub.example.com/books/1"], ["https://hub.example.com/books/:id", "/books/1"], ["books/:id", "books/1"],
      ["/.well-known/mercure/subscriptions/exact/:topic/:subscriber", "/.well-known/mercure/subscriptions/exact/%2Fa/urn%3Auuid%3A1"],
      ["https://EXAMPLE.com/a", "https://example.COM/a"], ["https://example.com/*", "https://example.com/é"], ["https://example.com/é", "https://example.com/%C3%A9"],
      ["urn\\:books\\:*", "urn:books:1"], ["foo://h/:a", "foo://h/1"]].each do |pattern, topic|
      assert match?("urlpattern", pattern, topic), [pattern, topic].inspect
    end
    [["/books/:id", "/books/1/2"], ["/books/:id", "https://example.com/books/1"], ["/Books", "/books"], ["/books", "/books?x"].take(1) + ["/book"],
      ["https://example.com/a", "http://example.com/a"], ["https://example.com/a", "https://example.com:8443/a"]].each do |pattern, topic|
      refute match?("urlpattern", pattern, topic), [pattern, topic].inspect
    end
  end

  test "a topic that cannot be parsed is matched by no URL pattern (draft-08 URL Pattern)" do
    ["*://*/*", "/*", ":x(.*)"].each { |pattern| refute match?("urlpattern", pattern, "http://["), pattern }
    refute build("urlpattern", "*://*:*/*").match?(topics["https://a b/"])
  end

  test "URL patterns that are not well-formed are refused with a reason (draft-08 Subscription)" do
    ["/:", "/{a", "/(", "/(a", "/()", "/a{{b}}", "/:a/:a", "https://[::/", "/(a(b))", "/+", "/(?=a)", "/(\\b)", "/([a)", "\\"].each do |pattern|
      error = assert_raises(Hikyaku::InvalidMatcher, pattern) { build("urlpattern", pattern) }
      assert_match(/\A\S.*\z/, error.message)
    end
  end

  test "legacy matchers are the text itself or a URI Template (0.x Topic Selectors)" do
    [["https://example.com/{id}", "https://example.com/1"], ["https://example.com/{id}", "https://example.com/{id}"], ["{invalid", "{invalid"], ["/a", "/a"],
      ["a b", "a b"], ["/{a} b", "/{a} b"]].each { |pattern, topic| assert match?("uri_template", pattern, topic), [pattern, topic].inspect }
    [["https://example.com/{id}", "https://example.com/1/2"], ["{invalid", "x"], ["/a", "https://hub.example.com/a"], ["/{a} b", "/x b"]].each do |pattern, topic|
      refute match?("uri_template", pattern, topic), [pattern, topic].inspect
    end
  end

  test "control and format characters and overlong patterns are refused (draft-08 Subscription)" do
    %w[exact urlpattern uri_template].each do |type|
      ["a\n", "a\u200B", "\xFF", nil, 1].each { |pattern| assert_raises(Hikyaku::InvalidMatcher, pattern.inspect) { build(type, pattern) } }
      assert_raises(Hikyaku::LimitExceeded) { Matcher.build(type: type, pattern: "/#{"a" * 20}", base: HUB, max_bytes: 20) }
      assert Matcher.build(type: type, pattern: "/#{"a" * 19}", base: HUB, max_bytes: 20)
    end
  end

  test "a type that is not known is refused" do
    ["", "Exact", "regexp", nil].each { |type| assert_raises(Hikyaku::InvalidMatcher, type.inspect) { build(type, "/a") } }
  end

  test "matchers of same type and pattern are equal" do
    assert_equal build("exact", "/a"), build("exact", "/a")
    assert_equal 1, [build("urlpattern", "/a"), build("urlpattern", "/a")].uniq.size
    refute_equal build("exact", "/a"), build("urlpattern", "/a")
    refute_equal build("exact", "/a"), build("exact", "/b")
  end

  ANCHORS = {
    ["exact", "/a/b"] => [:exact, "/a/b"],
    ["urlpattern", "/books/:id"] => [:url, "https://hub.example.com", "/books/"],
    ["urlpattern", "https://example.com:8443/books/1?x"] => [:url, "https://example.com:8443", "/books/"],
    ["urlpattern", "https://example.com/bo*"] => [:url, "https://example.com", "/"],
    ["urlpattern", "https://example.com/books/new-:id"] => [:url, "https://example.com", "/books/"],
    ["urlpattern", "https://example.com"] => [:url, "https://example.com", "/"],
    ["urlpattern", "https://example.com/books/:id?"] => [:url, "https://example.com", "/"],
    ["urlpattern", "https://*.example.com/a/b/*"] => [:url, nil, "/a/b/"],
    ["urlpattern", "http{s}?://example.com/a/:b"] => [:url, nil, "/a/"],
    ["urlpattern", "*://*:*/*"] => [:url, nil, "/"],
    ["urlpattern", ":scheme\\:*"] => [:url, nil, nil],
    ["urlpattern", "urn\\:books\\:*"] => [:url, "urn://", nil],
    ["uri_template", "/books/{id}"] => [:text, "/books/"],
    ["uri_template", "/é/{id}"] => [:text, "/"],
    ["uri_template", "{id}"] => [:text, ""],
    ["uri_template", "/books"] => [:exact, "/books"],
    ["uri_template", "{broken"] => [:exact, "{broken"]
  }.freeze

  test "anchors say where a matcher is to be looked for" do
    ANCHORS.each { |(type, pattern), anchor| assert_equal anchor, build(type, pattern).anchor, pattern }
  end

  test "whatever a matcher selects is found under its anchor" do
    list = ["/", "/a", "/a/b", "/books/1", "/books", "/books/", "/books/new-1", "https://example.com/books/2?x", "https://a.example.com/a/b/c", "http://example.com/a/b",
      "urn:books:1", "https://example.com", "https://example.com:8443/books/1?x", "foo:bar", "/é/1", "/%C3%A9/1", "{id}", "/books/{id}", "books", "//h/a/x", "ws://h:1/q"].map { |topic| topics[topic] }
    found = ANCHORS.keys.sum do |type, pattern|
      matcher = build(type, pattern)
      list.count do |topic|
        next unless matcher.match?(topic)
        assert under?(matcher.anchor, topic), [pattern, topic].inspect
        true
      end
    end
    assert_operator found, :>, 30
  end

  private

  def topics = @topics ||= Hikyaku::Hub::Topics.new(hub_url: HUB)

  def build(type, pattern) = Matcher.build(type: type, pattern: pattern, base: HUB)

  def match?(type, pattern, topic) = build(type, pattern).match?(topics[topic])

  def under?(anchor, topic)
    case anchor
    in [:all] then true
    in [:exact, string] then string == topic.value
    in [:text, prefix] then topic.value.start_with?(prefix)
    in [:url, origin, path] then (origin.nil? || origin == topic.url.origin) && topic.url.pathname.start_with?(path.to_s)
    end
  end
end
