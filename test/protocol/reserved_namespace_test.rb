# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, sections "Publication" (topic) and "Reserved Hub Namespace".
class Protocol::ReservedNamespaceTest < Protocol::Test
  RESERVED = [
    "/.well-known/mercure", "/.well-known/mercure/", "/.well-known/mercure/subscriptions", "/.well-known/mercure/x?y#z", "/.well-known/mercure?x",
    "/.well-known/mercure#x", "mercure", "mercure/subscriptions/foo", "./mercure/x", "../.well-known/mercure/x", "", "?x", "#x", "subscriptions/../mercure",
    "https://hub.example.com/.well-known/mercure", "https://hub.example.com/.well-known/mercure/subscriptions/exact/a/b",
    # any scheme, any authority
    "http://other.example/.well-known/mercure/x", "https://user:pass@example.org:8443/.well-known/mercure", "//other.example/.well-known/mercure/x",
    "ftp://example.com/.well-known/mercure", "custom://example.com/.well-known/mercure/x", "file:///.well-known/mercure/x", "HTTPS://HUB.EXAMPLE.COM/.well-known/mercure",
    # dot segments
    "/.well-known/mercure/../mercure/x", "/.well-known/./mercure/x", "/a/../.well-known/mercure", "/.well-known/%2e/mercure", "/a/%2E%2e/.well-known/mercure",
    # percent-encoded unreserved characters
    "/.well-known/%6Dercure/x", "/.well-known/%6dercure", "/%2Ewell-known/mercure", "/.well%2Dknown/mercure/x", "/.well-known/me%72cure/x",
    "https://example.com/%2e%77%65%6c%6c%2d%6b%6e%6f%77%6e/%6d%65%72%63%75%72%65",
    # empty segments, which servers and proxies drop
    "/.well-known//mercure", "/.well-known//mercure/x", "/.well-known///mercure//x", "https://example.com//.well-known/mercure", "https://example.com//.well-known//mercure/x",
    "/.well-known/./" + "/mercure/x", "/.well-known/%2e//mercure/x", "/.well-known\\\\mercure\\x", ".//mercure/x", "/.well-known//%6Dercure", "///example.com//.well-known//mercure",
    "https:////hub.example.com//.well-known//mercure/x", "custom://a//.well-known//mercure", "/a/..//.well-known/mercure",
    "/a//../.well-known/mercure/x", "https://example.com/.well-known/a//%2e%2e/mercure",
    # what the URL parser makes of it
    "\\.well-known\\mercure\\x", "https://example.com\\.well-known\\mercure", "https:/.well-known/mercure", "  /.well-known/mercure  ", "https:mercure/x"
  ].freeze
  OTHERS = [
    "/.well-known/mercurex", "/.well-known/mercure-dashboard", "/.well-known/Mercure", "/.well-known/mercur", "/foo/.well-known/mercure/bar", "subscriptions/foo",
    "https://example.com/.well-known/mercureXXX", "https://example.com/foo/.well-known/mercure", "../mercure/x", "/.well-known/mercure/../x",
    "/.well-known//mercurex", "//.well-known/mercure", "https://example.com//a//.well-known//mercure", "custom:/a/.well-known//mercure",
    "/.well-known%2Fmercure/x", "/.well-known/mercure%2Fx", "/.well-known/%256Dercure/x", "urn:example:mercure", "mailto:.well-known/mercure", "https://example.com/?/.well-known/mercure",
    "https://example.com/#/.well-known/mercure", "a topic with spaces", "http://[/.well-known/mercure", "https://exa mple.com/.well-known/mercure", "xmercure", "mercurex"
  ].freeze

  test "no topic may lie in the hub's namespace, however it is written (Publication, topic)" do
    RESERVED.each do |name|
      assert_problem 400, post("topic" => name), name.inspect
    end
  end

  test "neither may an alternate, wherever it stands (Publication, topic)" do
    RESERVED.each do |name|
      assert_problem 400, post([["topic", topic], ["topic", name], ["topic", topic(2)]]), name.inspect
    end
  end

  test "what only looks like it is not refused (Publication, topic)" do
    OTHERS.each { |name| assert_equal 200, post("topic" => name).status, name.inspect }
  end

  test "it is 400 whatever the token grants (Publication, topic)" do
    [token(:publisher, "/.well-known/mercure/x"), token(:publisher, "https://example.com/other"), token(:publisher, details: []), publisher].each do |token|
      assert_problem 400, post({"topic" => "/.well-known/mercure/x"}, token: token)
    end
  end

  test "an update that is refused reaches nobody" do
    stream = subscribe([["match", "*"]], token: subscriber("*"))
    post([["topic", topic], ["topic", "/.well-known/mercure/x"], ["data", "forged"]])
    publish(topic, "next")
    assert_equal ["next"], [stream.next, stream.next].map(&:data) & %w[forged next]
  end

  test "the namespace follows the hub's URL (Publication, topic; Discovery)" do
    start(path: "/live/hub", resource_identifier: "https://hub.example.com/live/hub")
    publisher = token(:publisher, "*", aud: "https://hub.example.com/live/hub")
    ["/live/hub", "/live/hub/subscriptions", "hub/x", "https://example.com/live/%68ub", "/live/x/../hub", ""].each { |name| assert_problem 400, post({"topic" => name}, token: publisher), name }
    ["/.well-known/mercure", "/.well-known/mercure/subscriptions/exact/a/b", "/live/hubs", "/live", "hubx"].each { |name| assert_equal 200, post({"topic" => name}, token: publisher).status, name }
  end
end
