# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

# Mercure draft-08, sections "Authorization Details" and "Topic Matcher List": one bad Mercure detail voids the token.
class AuthorizationDetailsTest < Minitest::Test
  include Tokens

  GOOD = {"type" => Tokens::DETAIL_TYPE, "actions" => ["publish"], "topics" => [{"match" => "a"}]}.freeze

  def access(details, **options) = authorization(**options).access(token(authorization_details: details), :publisher)

  def void(details, **options)
    assert_raises(Hikyaku::InvalidToken, details.inspect) { access(details, **options) }.message
  end

  test "the good one is good" do
    assert access([GOOD]).publish?([topic("a")])
  end

  test "a claim that is not an array of objects voids the token" do
    [nil, "", "x", 1, true, {}, GOOD].each { |claim| assert_match(/not an array/, void(claim)) }
    [nil, "x", 1, [], [GOOD]].each { |entry| assert_match(/not an object/, void([GOOD, entry])) }
    [nil, 1, [Tokens::DETAIL_TYPE], {}].each { |type| assert_match(/type is not/, void([GOOD, GOOD.merge("type" => type)])) }
  end

  test "details of other types are ignored, whatever they hold" do
    ["mercure", "payment", "", "#{Tokens::DETAIL_TYPE}/", Tokens::DETAIL_TYPE.upcase, "http://mercure.rocks/authorization-detail"].each do |type|
      assert access([GOOD.merge("type" => type, "topics" => "*", "actions" => 1), GOOD]).publish?([topic("a")])
      refute access([GOOD.merge("type" => type)]).publish?([topic("a")])
    end
    assert access([GOOD.except("type"), GOOD]).publish?([topic("a")])
    refute access([GOOD.except("type")]).publish?([topic("a")])
  end

  test "malformed actions void the token, unknown ones do not" do
    [nil, [], "publish", {}, [1], ["publish", nil], ["publish", ["subscribe"]]].each do |actions|
      void([GOOD.merge("actions" => actions)])
      void([GOOD, GOOD.merge("actions" => actions)])
    end
    void([GOOD.except("actions")])
    access = access([GOOD.merge("actions" => %w[delete publish Subscribe])])
    assert access.publish?([topic("a")])
    refute access.subscribe?(topic("a"))
    refute access([GOOD.merge("actions" => ["PUBLISH"])]).publish?([topic("a")])
  end

  test "malformed topics void the token" do
    [nil, [], "a", {"match" => "a"}, ["a"], [nil], [1], [[]], [{}], [{"match" => nil}], [{"match" => 1}], [{"match" => ["a"]}],
      [{"match" => ""}], [{"Match" => "a"}], [{"match" => "a"}, {}], [{"match" => "a"}, "b"]].each do |topics|
      void([GOOD.merge("topics" => topics)])
      void([GOOD.merge("actions" => ["unknown"], "topics" => topics)])
    end
    void([GOOD.except("topics")])
  end

  test "an unknown match_type voids the token, also beside the wildcard" do
    ["", "Exact", "URLPattern", "urlpattern ", "regexp", "uri_template", "*", nil, 1, ["exact"]].each do |type|
      assert_match(/match_type/, void([GOOD.merge("topics" => [{"match" => "a", "match_type" => type}])]))
      assert_match(/match_type/, void([GOOD.merge("topics" => [{"match" => "*", "match_type" => type}])]))
    end
  end

  test "a matcher that is not valid voids the token" do
    ["a\u0000", "a\n", "\u001f", "a\u007f", "a\u0085", "a\u200Bb", "\u202Ea"].each { |match| assert_match(/not a valid/, void([GOOD.merge("topics" => [{"match" => match}])])) }
    assert_match(/not a valid urlpattern/, void([GOOD.merge("topics" => [{"match" => "https://a.example/[(", "match_type" => "urlpattern"}])]))
  end

  test "a payload that is not an object voids the token" do
    [nil, "x", 1, [], true].each { |payload| assert_match(/payload/, void([GOOD.merge("payload" => payload)])) }
    assert access([GOOD.merge("payload" => {})])
  end

  test "members that the hub does not know are ignored" do
    assert access([GOOD.merge("locations" => ["x"], "topics" => [{"match" => "a", "more" => 1}])]).publish?([topic("a")])
  end

  test "more than the limits voids the token" do
    limits = {max_token_details: 2, max_token_topics: 3, max_pattern_bytes: 4}
    assert access([GOOD, GOOD, {"type" => "other"}, {"type" => "other"}], limits: limits)
    assert_match(/at most 2/, void([GOOD, GOOD, GOOD], limits: limits))
    assert access([GOOD.merge("topics" => [{"match" => "a"}] * 3)] * 2, limits: limits)
    assert_match(/at most 3/, void([GOOD.merge("topics" => [{"match" => "a"}] * 4)], limits: limits))
    assert access([GOOD.merge("topics" => [{"match" => "a" * 4}])], limits: limits)
    assert_match(/at most 4/, void([GOOD.merge("topics" => [{"match" => "a" * 5}])], limits: limits))
    assert_match(/at most 4/, void([GOOD.merge("topics" => [{"match" => "é" * 3}])], limits: limits))
  end

  test "the limits are 100 details and 100 topics unless told" do
    assert access([GOOD] * 100)
    void([GOOD] * 101)
    assert access([GOOD.merge("topics" => [{"match" => "a"}] * 100)])
    void([GOOD.merge("topics" => [{"match" => "a"}] * 101)])
  end
end
