# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, sections "Publishers", "Subscribers" and "Private Update Audience".
class Protocol::PrivateUpdatesTest < Protocol::Test
  test "a publisher needs a grant for every topic, canonical and alternate (Publishers)" do
    a, b, c = topic("a"), topic("b"), topic("c")
    token = token(:publisher, a, b)
    [[a], [b], [a, b], [b, a, b]].each { |topics| assert_equal 200, post(topics.map { |topic| ["topic", topic] }, token: token).status }
    [[c], [a, c], [c, a], [a, b, c]].each do |topics|
      assert_challenge 403, "insufficient_scope", post(topics.map { |topic| ["topic", topic] }, token: token)
      assert_challenge 403, "insufficient_scope", post(topics.map { |topic| ["topic", topic] } + [%w[private on]], token: token)
    end
  end

  test "the grants of several details add up (Publishers)" do
    a, b = topic("a"), topic("b")
    assert_equal 200, post([["topic", a], ["topic", b]], token: token(:publisher, details: [detail(a, actions: ["publish"]), detail(b, actions: ["publish"])])).status
  end

  test "of an update that is not permitted nothing is dispatched, not even where it would be (Publishers)" do
    a, b = topic("a"), topic("b")
    stream = follow(a, b)
    assert_equal 403, post([["topic", a], ["topic", b], ["data", "no"]], token: token(:publisher, a)).status
    publish(a, "yes")
    assert_next "yes", stream
    assert_equal [], subscribe([["match", b], ["last_event_id", "earliest"]]).then { |again| received(again, b) }
  end

  test "a grant to read is none to publish, and the other way round (Authorization Details)" do
    assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: token(:publisher, details: [detail("*", actions: ["subscribe"])]))
    stream = follow(topic, token: token(:subscriber, details: [detail("*", actions: ["publish"])]))
    publish(topic, "private", private: "on")
    assert_equal [], received(stream, topic)
  end

  test "a private update reaches those whose token grants one of its topics, by whichever topic they listen (Subscribers)" do
    book, user, other = topic("books/1"), topic("users/42/books/1"), topic("else")
    cases = {
      [[book], [book]] => true, [[book], [user]] => true, [[user], [book]] => true, [[book, user], [user]] => true, [[book], ["*"]] => true,
      [[book], [other]] => false, [[book], []] => false, [[other], [book, user]] => false, [[book, other], [other]] => false
    }
    streams = cases.keys.map { |listens, reads| follow(*listens, token: reads.empty? ? subscriber(details: []) : subscriber(*reads)) }
    streams << (anonymous = follow(book, user, other))
    publish([book, user], "private", private: "on")
    publish([book, user, other], "public")
    streams.zip([*cases.to_a, [[[], []], false]]).each do |stream, (plan, allowed)|
      assert_equal allowed ? %w[private public] : %w[public], stream.take(allowed ? 2 : 1).map(&:data), plan.inspect
    end
    refute_includes anonymous.bytes, "private"
  end

  test "what a subscriber asks for never widens what it may read (Subscribers; Private Update Audience)" do
    mine, other = topic("books/1"), topic("books/2")
    stream = subscribe([["match", "*"], ["match", mine], ["match", other], ["match_urlpattern", topic("books/:id")]], token: subscriber(mine))
    publish(other, "not mine", private: "on")
    publish(mine, "mine", private: "on")
    assert_equal ["mine"], received(stream, mine).grep_v(/\A{/)
  end

  test "the specification's example: a narrow grant by an alternate topic (Subscribers)" do
    stream = subscribe({"match_urlpattern" => "https://example.com/books/:id"}, token: subscriber(urlpattern("https://example.com/users/42/*")))
    publish(["https://example.com/books/1", "https://example.com/users/42/books/1"], "for 42", private: "on")
    publish(["https://example.com/books/2", "https://example.com/users/43/books/2"], "for 43", private: "on")
    publish("https://example.com/books/3", "for nobody", private: "on")
    publish("https://example.com/books/4", "for all")
    assert_equal ["for 42", "for all"], stream.take(2).map(&:data)
  end

  test "private and public updates keep their order" do
    stream = follow(topic, token: subscriber(topic))
    expected = Array.new(20) { |i| publish(topic, i.to_s, **(i.odd? ? {private: "on"} : {})).then { i.to_s } }
    assert_equal expected, received(stream, topic)
  end

  test "readers with different tokens on one topic get what each may have" do
    a, b = topic("a"), topic("b")
    plans = {subscriber(a) => %w[ab a public], subscriber(b) => %w[ab b public], subscriber(a, b) => %w[ab a b public], nil => %w[public]}
    both = plans.keys.map { |token| follow(a, b, token: token) }
    publish([a, b], "ab", private: "on")
    publish(a, "a", private: "on")
    publish(b, "b", private: "on")
    publish([b, a], "public")
    assert_equal plans.values, both.map { |stream| received(stream, a) }
  end
end
