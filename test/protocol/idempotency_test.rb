# frozen_string_literal: true

require "support/protocol_test"

# Publishing again what may have been published already: docs/decisions/005. Not part of the Mercure protocol, which
# names the danger in "Publish Request Replay".
class Protocol::IdempotencyTest < Protocol::Test
  test "the same key with the same update is answered with the first id and publishes once" do
    stream = follow(topic)
    answers = Array.new(3) { publish_with("key-1", "topic" => topic, "data" => "x", "private" => "") }
    assert_equal [200], answers.map(&:status).uniq
    assert_equal 1, answers.map(&:body).uniq.size
    stream.close
    stream = follow(topic, token: subscriber(topic), headers: {"last-event-id" => "earliest"})
    assert_equal ["x"], received(stream, topic)
  end

  test "another key, or none, publishes again" do
    ids = [publish_with("a", "topic" => topic), publish_with("b", "topic" => topic), publish_with(nil, "topic" => topic), publish_with(nil, "topic" => topic)].map(&:body)
    assert_equal 4, ids.uniq.size
  end

  test "the same key with another update is 422, whatever differs" do
    update = {"topic" => topic, "data" => "x", "type" => "t", "retry" => "5", "id" => "urn:#{topic}"}
    first = publish_with("k", update)
    {"topic" => topic("b"), "data" => "y", "type" => "u", "retry" => "6", "id" => "urn:other", "private" => "on"}.each do |name, value|
      assert_problem 422, publish_with("k", update.merge(name => value)), name
    end
    assert_problem 422, publish_with("k", update.to_a + [["topic", topic("b")]])
    assert_equal first.body, publish_with("k", update.merge("unknown" => "field")).body
  end

  test "a key belongs to its publisher: issuer and subject" do
    ids = [publisher, token(:publisher, "*", sub: "user-2"), token(:publisher, "*", sub: :absent)].map { |token| publish_with("shared", {"topic" => topic}, token: token).body }
    assert_equal 3, ids.uniq.size
    assert_equal ids.first, publish_with("shared", {"topic" => topic}, token: token(:publisher, topic)).body, "another token of the same subject"
  end

  test "what was refused is not remembered" do
    assert_equal 400, publish_with("later", "topic" => topic, "type" => "mercure").status
    assert_equal 403, publish_with("later", {"topic" => topic}, token: token(:publisher, "else")).status
    assert_equal 200, publish_with("later", "topic" => topic, "data" => "x").status
  end

  test "a token is looked at before a key: nobody learns an id by repeating" do
    publish_with("mine", "topic" => topic)
    assert_equal 401, publish_with("mine", {"topic" => topic}, token: nil).status
    assert_equal 403, publish_with("mine", {"topic" => topic}, token: token(:publisher, "else")).status
  end

  test "requests with one key at once publish once" do
    stream = follow(topic)
    own = publisher
    place = topic
    ids = Array.new(8) { Thread.new { publish_with("at once", {"topic" => place, "data" => "x"}, token: own).body } }.map(&:value)
    assert_equal 1, ids.uniq.size
    assert_equal ["x"], received(stream, topic)
  end

  test "a key has 1 to 255 bytes" do
    assert_equal 200, publish_with("k" * 255, "topic" => topic).status
    ["k" * 256, ""].each { |key| assert_problem 400, publish_with(key, "topic" => topic), key.size }
  end

  private

  def publish_with(key, fields = nil, token: publisher, **named)
    post((fields || named).to_a, token: token, headers: key ? {"idempotency-key" => key} : {})
  end
end
