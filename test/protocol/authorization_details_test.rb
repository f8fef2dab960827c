# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, sections "Authorization Details" and "Topic Matcher List".
class Protocol::AuthorizationDetailsTest < Protocol::Test
  TYPE = AccessTokens::DETAIL_TYPE

  test "an action is granted where one detail has it and a matcher for the topic (Authorization Details)" do
    a, b = topic("a"), topic("b")
    cases = {
      [detail(a)] => [200, 403], [detail(a, b)] => [200, 200], [detail(a), detail(b)] => [200, 200], [detail("*")] => [200, 200],
      [detail(a, actions: ["publish"])] => [200, 403], [detail(a, actions: ["subscribe"])] => [403, 403],
      [detail(a, actions: ["subscribe"]), detail(b, actions: ["publish"])] => [403, 200], [detail({"match" => a, "match_type" => "exact"})] => [200, 403],
      [detail(urlpattern(a.sub(/a\z/, ":x")))] => [200, 200], [] => [403, 403]
    }
    cases.each do |details, statuses|
      assert_equal statuses, [a, b].map { |topic| post({"topic" => topic}, token: token(:publisher, details: details)).status }, details.inspect
    end
  end

  test "a token without the claim, or with an empty one, is valid and grants nothing (Authorization Details)" do
    [token(:publisher, details: []), token(:publisher, authorization_details: :absent)].each do |token|
      assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: token)
    end
  end

  test "actions that the hub does not know are ignored (Authorization Details, actions)" do
    assert_equal 200, post({"topic" => topic}, token: with(detail(topic, actions: %w[dance publish x:y]))).status
    assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: with(detail(topic, actions: %w[dance Publish PUBLISH])))
    assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: with(detail(topic, actions: [""])))
  end

  test "details of other types are others' business, whatever is in them (Authorization Details)" do
    foreign = [{"type" => "payment", "topics" => 5, "actions" => "x"}, {"type" => "#{TYPE}/", "actions" => [], "topics" => []}, {"type" => TYPE.upcase}, {"type" => "#{TYPE} "},
      {"type" => TYPE.sub("https", "http"), "actions" => ["publish"], "topics" => [{"match" => "*"}]}]
    foreign.each do |other|
      assert_equal 200, post({"topic" => topic}, token: with(other, detail(topic), other)).status, other.inspect
      assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: with(other)), other.inspect
    end
  end

  # Each is a defect of the token (Authorization Details; Topic Matcher List).
  BAD_DETAILS = {
    "no actions" => {"actions" => :absent}, "empty actions" => {"actions" => []}, "actions that are no array" => {"actions" => "publish"},
    "an action that is no string" => {"actions" => ["publish", 1]}, "a null action" => {"actions" => ["publish", nil]}, "actions null" => {"actions" => nil},
    "no topics" => {"topics" => :absent}, "empty topics" => {"topics" => []}, "topics that are no array" => {"topics" => {"match" => "*"}}, "topics null" => {"topics" => nil},
    "a payload that is no object" => {"payload" => "x"}, "a payload that is an array" => {"payload" => [1]}, "a payload null" => {"payload" => nil}
  }.freeze
  BAD_MATCHERS = {
    "a string" => "https://example.com", "null" => nil, "an array" => ["*"], "a number" => 1, "no match" => {}, "only a type" => {"match_type" => "exact"}, "match null" => {"match" => nil},
    "match a number" => {"match" => 1}, "match an object" => {"match" => {}}, "match empty" => {"match" => ""}, "an unknown type" => {"match" => "a", "match_type" => "regexp"},
    "a type in another case" => {"match" => "a", "match_type" => "Exact"}, "URLPattern" => {"match" => "a", "match_type" => "URLPattern"}, "a type empty" => {"match" => "a", "match_type" => ""},
    "a type null" => {"match" => "a", "match_type" => nil}, "a type that is no string" => {"match" => "a", "match_type" => ["exact"]}, "the type of 0.x" => {"match" => "a", "match_type" => "uri_template"},
    "an unknown type beside the wildcard" => {"match" => "*", "match_type" => "regexp"}, "a control character" => {"match" => "a\u0000b"}, "a line break" => {"match" => "a\nb"},
    "a format character" => {"match" => "a\u202Eb"}, "DEL" => {"match" => "a\u007F"}, "C1" => {"match" => "a\u0085"}, "no URL pattern" => {"match" => "https://example.com/(", "match_type" => "urlpattern"}
  }.freeze

  test "one defect in any Mercure detail voids the token, whatever the others grant (Authorization Details)" do
    good = detail("*")
    BAD_DETAILS.each do |name, change|
      bad = good.merge(change).reject { |_, value| value == :absent }
      [[bad], [good, bad], [bad, good]].each { |details| assert_challenge 401, "invalid_token", post({"topic" => topic}, token: with(*details)), name }
    end
  end

  test "so does a matcher that does not parse (Topic Matcher List)" do
    BAD_MATCHERS.each do |name, bad|
      [[bad], [{"match" => "*"}, bad], [bad, {"match" => "*"}]].each do |topics|
        assert_challenge 401, "invalid_token", post({"topic" => topic}, token: with(detail("*").merge("topics" => topics))), name
      end
      assert_challenge 401, "invalid_token", post({"topic" => topic}, token: with(detail("*"), detail("*", actions: ["dance"]).merge("topics" => [bad]))), "#{name}, where it would grant nothing"
      assert_challenge 401, "invalid_token", subscribe({"match" => topic}, token: token(:subscriber, details: [detail("*").merge("topics" => [bad])])), "#{name}, for a subscriber"
    end
  end

  test "the claim must be an array of objects (RFC 9396, section 2)" do
    ["x", {}, 1, detail("*"), [nil], ["x"], [[detail("*")]], [1, detail("*")], true].each do |claim|
      assert_challenge 401, "invalid_token", post({"topic" => topic}, token: token(:publisher, authorization_details: claim)), claim.inspect
    end
  end

  test "the wildcard is recognised before the type is looked at (Topic Matcher List; Matcher Types)" do
    [{"match" => "*"}, {"match" => "*", "match_type" => "exact"}, {"match" => "*", "match_type" => "urlpattern"}].each do |matcher|
      ["plain", topic, "urn:x:y", "http://["].each { |name| assert_equal 200, post({"topic" => name}, token: with(detail(matcher))).status, [matcher, name].inspect }
    end
  end

  test "an exact grant compares bytes, and is the default (Topic Matcher List)" do
    grant = with(detail("https://example.com/:id", "a*"))
    assert_equal [200, 200, 403, 403, 403], ["https://example.com/:id", "a*", "https://example.com/1", "https://example.com/:ID", "ab"].map { |name| post({"topic" => name}, token: grant).status }
  end

  test "members that the specification does not know are ignored" do
    assert_equal 200, post({"topic" => topic}, token: with(detail({"match" => topic, "note" => 1}, locations: ["x"], identifier: nil))).status
  end

  test "a token over a limit is refused as a whole (Authorization Details)" do
    start(max_token_details: 3, max_token_topics: 4, max_pattern_bytes: 100)
    ok = "https://example.com/".ljust(100, "x")
    within = [*[detail(ok, ok, ok, ok)] * 2, detail(topic)]
    assert_equal 200, post({"topic" => topic}, token: with(*within, {"type" => "foreign"}, {"type" => "foreign"})).status
    [[*within, detail("*")], [detail(*[topic] * 5)], [detail(topic, "#{ok}x")], [detail(topic), detail("*", actions: ["dance"]).merge("topics" => [{"match" => "*"}] * 5)]].each do |details|
      assert_challenge 401, "invalid_token", post({"topic" => topic}, token: with(*details))
    end
  end

  private

  def with(*details) = token(:publisher, details: details)
end
