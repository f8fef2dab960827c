# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Matcher Types".
class Protocol::MatchersTest < Protocol::Test
  test "an exact matcher compares bytes: no case folding, no normalization, no resolution (Exact Matching)" do
    others = {
      "https://EXAMPLE.com/é" => ["https://example.com/é", "https://EXAMPLE.com/e\u0301", "https://EXAMPLE.com/%C3%A9", "https://EXAMPLE.com/é/", "HTTPS://EXAMPLE.com/é"],
      "/books/1" => ["https://hub.example.com/books/1", "books/1", "//books/1", "/books/01"],
      "a/../b" => ["b", "a/b"],
      "https://example.com" => ["https://example.com/", "https://example.com:443"],
      "topic" => ["Topic", " topic", "topic ", "topics", "topi"]
    }
    others.each do |name, near|
      stream = follow(name)
      near.each { |topic| publish(topic, "near: #{topic}") }
      publish(name, "it")
      assert_next "it", stream
      stream.close
    end
  end

  test "an exact matcher does not interpret what other types do (Exact Matching)" do
    ["https://example.com/:id", "https://example.com/*", "https://example.com/{id}", "https://example.com/(a|b)"].each do |name|
      stream = follow(name)
      publish("https://example.com/a", "no")
      publish(name, "it")
      assert_next "it", stream
      stream.close
    end
  end

  test "the wildcard selects every topic, whatever the type that it comes with (Matcher Types)" do
    %w[match match_exact match_urlpattern].each do |name|
      stream = subscribe(name => "*")
      topics = [topic, "plain", "urn:isbn:1", "木", "http://[", "/relative"]
      topics.each { |topic| publish(topic, topic) }
      data = topics.map { stream.next.data } until data&.include?(topics.last)
      assert_equal topics, data, name
      stream.close
    end
  end

  test "two stars, or a star with something, are no wildcard (Matcher Types)" do
    ["**", "* ", "/*"].each do |pattern|
      stream = follow(pattern)
      publish(topic, "no")
      publish(pattern, "it")
      assert_next "it", stream
      stream.close
    end
  end

  test "the topic * cannot be published, be it alone, an alternate, or permitted (Matcher Types; Publication, topic)" do
    ["*", "%2A"].each { |star| assert_problem 400, post("topic=#{star}&data=x") }
    assert_problem 400, post([["topic", topic], ["topic", "*"]])
    assert_problem 400, post({"topic" => "*"}, token: token(:publisher, topic)), "whatever the token grants"
  end

  # In order: a pattern, topics that it matches, topics that it does not.
  PATTERNS = {
    "https://example.com/books/:id" => [%w[https://example.com/books/1 https://example.com:443/books/1 HTTPS://EXAMPLE.COM/books/x https://example.com/a/../books/1],
      %w[https://example.com/books/ https://example.com/books/1/2 https://example.com/books https://example.org/books/1 http://example.com/books/1 https://example.com/Books/1]],
    "https://example.com/*" => [%w[https://example.com/ https://example.com https://example.com/a/b/c], %w[https://example.org/ https://www.example.com/ books]],
    "https://*.example.com/a" => [%w[https://www.example.com/a https://a.b.example.com/a], %w[https://example.com/a https://www.example.com/b]],
    "https://example.com/books/:id(\\d+)" => [%w[https://example.com/books/42], %w[https://example.com/books/x https://example.com/books/4x]],
    "https://example.com/{books/}?:id" => [%w[https://example.com/1 https://example.com/books/1], %w[https://example.com/films/1]],
    "/books/:id" => [%w[/books/1 https://hub.example.com/books/1 ../books/1], %w[https://example.com/books/1 books/1 /.well-known/books/1]],
    "books/:id" => [%w[books/1 /.well-known/books/1 https://hub.example.com/.well-known/books/1], %w[/books/1]],
    "https://example.com/a?q=:q" => [%w[https://example.com/a?q=1], %w[https://example.com/a https://example.com/a?p=1]],
    "https://example.com/été" => [%w[https://example.com/été https://example.com/%C3%A9t%C3%A9], %w[https://example.com/ete]],
    ":scheme://example.com/a" => [%w[https://example.com/a http://example.com/a ws://example.com/a], %w[https://example.org/a]],
    "*://*/a" => [%w[https://example.com/a http://example.org/a], %w[https://example.com/b]]
  }.freeze

  test "URL patterns select by the URL Pattern standard, relative ones and relative topics from the hub's URL (URL Pattern)" do
    PATTERNS.each do |pattern, (matching, others)|
      stream = subscribe([["match_urlpattern", pattern], ["match", mark = topic(pattern)]])
      assert_equal 200, stream.status, pattern
      (matching + others).each { |name| publish(name, name) }
      assert_equal matching, received(stream, mark), pattern
      stream.close
    end
  end

  test "case counts in a URL pattern, except in the host (URL Pattern: no ignoreCase)" do
    stream = subscribe([["match_urlpattern", "https://EXAMPLE.com/Books/:id"], ["match", topic]])
    ["https://example.com/Books/1", "https://example.COM/Books/2", "https://example.com/books/3", "https://example.com/BOOKS/4"].each { |name| publish(name, name) }
    assert_equal ["https://example.com/Books/1", "https://example.COM/Books/2"], received(stream, topic)
  end

  test "a topic that cannot be parsed as a URL matches no URL pattern (URL Pattern)" do
    stream = subscribe([["match_urlpattern", "*://*:*/*"], ["match_urlpattern", "/*"], ["match_urlpattern", ":x(.*)"], ["match", topic]])
    ["http://[", "https://exa mple.com/", "https://example.com:99999/", "http://"].each { |name| publish(name, name) }
    assert_equal [], received(stream, topic)
  end

  test "what is no URL pattern is refused (Subscription; URL Pattern)" do
    ["https://example.com/(", "https://example.com/:", "https://example.com/{a", "https://example.com/(?:x)", "https://example.com/:id:id/:id",
      "https://example.com/{a}}", "https://example.com/:id/:id", "https://[/", "https://exa mple.com/", "https://example.com/(é)", "https://example.com/(?=a)"].each do |pattern|
      detail = assert_problem(400, subscribe("match_urlpattern" => pattern), pattern)
      assert_operator detail.size, :<, 500
    end
  end

  test "a pattern made to backtrack costs no more than another (URL Pattern: linear time)" do
    ["https://example.com/(a+)+b", "https://example.com/(a|a)*b", "https://example.com/(.*)(.*)(.*)(.*)(.*)(.*)b", "https://example.com/:a*:b*:c*x", "https://example.com/(a?){50}a{50}"].each do |pattern|
      stream = subscribe([["match_urlpattern", pattern], ["match", topic]])
      next assert_problem(400, stream, pattern) unless stream.is_a?(EventStream)
      publish("https://example.com/#{"a" * 4000}", "evil")
      received(stream, topic) # within the client's patience
      stream.close
    end
  end

  test "a URL pattern may be in a token, for publishing and for reading (URL Pattern; Topic Matcher List)" do
    pattern = urlpattern("#{topic("books")}/:id")
    assert_equal 200, post({"topic" => "#{topic("books")}/1"}, token: token(:publisher, pattern)).status
    assert_challenge 403, "insufficient_scope", post({"topic" => topic("films")}, token: token(:publisher, pattern))
    stream = subscribe([["match", "#{topic("books")}/1"], ["match", "#{topic("books")}/1/2"]], token: subscriber(pattern))
    publish("#{topic("books")}/1/2", "not granted", private: "on")
    publish("#{topic("books")}/1", "granted", private: "on")
    assert_next "granted", stream
  end
end
