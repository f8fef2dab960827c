# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"
require "support/access_tokens"

class WebSubscriptionReaderTest < Minitest::Test
  HEADER = "HTTP_LAST_EVENT_ID"

  def reader(**settings)
    config = Hikyaku::Config.new(anonymous: true, engine: "ruby", **settings)
    Hikyaku::Web.new(config).instance_variable_get(:@reader)
  end

  def cursor(reader, query, body = [], header: nil)
    env = {"QUERY_STRING" => "match=/a#{"&#{query}" unless query.empty?}", HEADER => header}.compact
    reader.read(Hikyaku::Web::Request.new(env), body).last
  end

  test "the header beats the query component, which beats the body, unless they are empty (draft-08, Reconnection)" do
    reader = self.reader
    body = [%w[last_event_id body]]
    2.times do
      assert_equal "header", cursor(reader, "last_event_id=query", body, header: "header")
      assert_equal "query", cursor(reader, "last_event_id=query", body, header: "")
      assert_equal "query", cursor(reader, "last_event_id=query", body)
      assert_equal "body", cursor(reader, "last_event_id=", body)
      assert_equal "body", cursor(reader, "", body)
      assert_equal "header", cursor(reader, "", header: "header")
      assert_equal ["", "", ""], [cursor(reader, "", header: ""), cursor(reader, "last_event_id="), cursor(reader, "", [["last_event_id", ""]])]
      assert_nil cursor(reader, "")
      assert_nil cursor(reader, "Last-Event-ID=x")
    end
  end

  test "clients of 0.x have names of their own for it, after that of today" do
    reader = self.reader(legacy: true)
    assert_equal "x", cursor(reader, "Last-Event-ID=y&lastEventID=x")
    assert_equal "z", cursor(reader, "Last-Event-ID=y&last_event_id=z")
    assert_equal "y", cursor(reader, "Last-Event-ID=y&last_event_id=", [%w[last_event_id body]])
  end

  test "who sends the same again shares the grant, whatever event it has" do
    reader = self.reader
    grant = ->(query, header = nil) { reader.read(Hikyaku::Web::Request.new({"QUERY_STRING" => query, HEADER => header}.compact), []).first }
    first = grant.call("match=/a&match=%2Fb")
    assert_same first, grant.call("match=/a&match=%2Fb", "x")
    assert_same first, grant.call("match=%2Fa&last_event_id=y&match=/b")
    assert_equal %w[/a /b], first.matchers.map(&:pattern)
    refute_same first, grant.call("match=/b&match=/a")
  end

  # What a token permits is kept as long as a decision that rests on it.
  test "decisions are bounded by what their tokens take, too" do
    reader = self.reader(issuer: AccessTokens::ISSUER, publisher_key: AccessTokens::SECRETS[:publisher], subscriber_key: AccessTokens::SECRETS[:subscriber],
      resource_identifier: AccessTokens::HUB_URL)
    topics = Array.new(100) { |number| "/things/#{number}/#{"x" * 40}" }
    least = topics.sum { |topic| 3 * topic.bytesize + 200 }
    150.times do |user|
      given = AccessTokens.token(:subscriber, *topics, sub: "user-#{user}")
      reader.read(Hikyaku::Web::Request.new({"QUERY_STRING" => "match=/a", "HTTP_AUTHORIZATION" => "Bearer #{given}"}), [])
    end
    assert_operator reader.grants.size, :>, 10
    assert_operator reader.grants.size * least, :<=, 4 << 20
  end

  test "what is refused is refused again" do
    reader = self.reader
    2.times do
      assert_equal 400, assert_raises(Hikyaku::Web::Problem) { reader.read(Hikyaku::Web::Request.new({"QUERY_STRING" => "matches=/a"}), []) }.status
      assert_equal 400, assert_raises(Hikyaku::Web::Problem) { reader.read(Hikyaku::Web::Request.new({"QUERY_STRING" => ""}), []) }.status
    end
  end
end
