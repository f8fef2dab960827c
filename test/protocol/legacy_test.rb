# frozen_string_literal: true

require "support/protocol_test"

# Clients of Mercure 0.x beside those of draft-08. Sections that are named are those of the 0.x specification.
class Protocol::LegacyTest < Protocol::Test
  settings legacy: true

  def publisher_claim(*topics) = legacy_token(:publisher, {"publish" => topics})

  def reader(*topics, **more) = legacy_token(:subscriber, {"subscribe" => topics}.merge(more.transform_keys(&:to_s)))

  test "topic= selects exactly or as a URI Template, and * everything (Topic Selectors; Subscription)" do
    {
      "https://example.com/books/{id}" => [%w[https://example.com/books/1 https://example.com/books/{id} https://example.com/books/], %w[https://example.com/books/1/2 https://example.org/books/1]],
      "https://example.com/a" => [%w[https://example.com/a], %w[https://example.com/A https://example.com/ab]], "plain" => [%w[plain], %w[plainer]],
      "https://example.com/users/foo/{?topic}" => [%w[https://example.com/users/foo/?topic=x https://example.com/users/foo/?topic=https%3A%2F%2Fexample.com%2Fbooks%2F1], %w[https://example.com/users/bar/?topic=x]],
      "https://example.com/{+path}" => [%w[https://example.com/a/b/c], %w[https://example.org/a]], "a{" => [%w[a{], %w[a]]
    }.each do |pattern, (matching, others)|
      stream = subscribe([["topic", pattern], ["match", mark = topic(pattern)]])
      assert_equal 200, stream.status, pattern
      (matching + others).each { |name| publish(name, name) }
      assert_equal matching, received(stream, mark), pattern
      stream.close
    end
    stream = subscribe("topic" => "*")
    publish(topic, "any")
    stream.next until stream.bytes.include?("data: any")
  end

  test "several topics, with matchers of draft-08 between them (Subscription)" do
    stream = subscribe([["topic", topic("a")], ["topic", topic("{b}/x")], ["match", topic("c")]])
    ["a", "b/x", "c", "d"].each { |name| publish(topic(name), name) }
    publish(topic("a"), "end")
    assert_equal %w[a b/x c], stream.until("end").map(&:data)
  end

  test "the limits and characters of matchers hold for topic= (draft-08, Subscription)" do
    ["a%00b", "%FF", "%E2%80%AE"].each { |value| assert_problem 400, subscribe("topic=#{value}") }
    assert_problem 400, subscribe([["topic", "x"]] * 101)
    assert_problem 400, subscribe("topic" => "x" * 4097)
  end

  test "a publisher's claim is an array of selectors, all topics must match (Publishers)" do
    assert_equal 200, post({"topic" => topic}, token: publisher_claim(topic)).status
    assert_equal 200, post([["topic", topic("1")], ["topic", topic("2")]], token: publisher_claim(topic("{n}"))).status
    assert_equal 200, post({"topic" => "anything"}, token: publisher_claim("*")).status
    [publisher_claim(topic("1")), publisher_claim, legacy_token(:publisher, {}), legacy_token(:publisher, {"subscribe" => ["*"]}), legacy_token(:publisher, :absent)].each do |token|
      assert_equal 403, post([["topic", topic("1")], ["topic", topic("2")]], token: token).status
    end
  end

  test "a subscriber's claim lets it read what is private (Subscribers)" do
    streams = [reader(topic), reader(topic.sub(/a\z/, "{x}")), reader("*"), reader("https://example.com/else"), reader, nil].map { |token| subscribe({"topic" => topic}, token: token) }
    publish(topic, "private", private: "on")
    publish(topic, "public")
    assert_equal [true, true, true, false, false, false], streams.map { |stream| stream.next.data == "private" }
  end

  test "the claim may be a JSON text, or have the name of a URL" do
    [legacy_token(:publisher, JSON.generate("publish" => ["*"])), legacy_token(:publisher, :absent, "https://mercure.rocks/": {"publish" => ["*"]})].each do |token|
      assert_equal 200, post({"topic" => topic}, token: token).status
    end
    [legacy_token(:publisher, "x"), legacy_token(:publisher, ["*"]), legacy_token(:publisher, {"publish" => "*"}), legacy_token(:publisher, {"publish" => [1]}), legacy_token(:publisher, {"publish" => ["a\0"]})].each do |token|
      assert_equal 401, post({"topic" => topic}, token: token).status
    end
  end

  test "neither exp nor aud nor iss is asked for, but exp is enforced, and so are key and algorithm (Authorization)" do
    assert_equal 200, post({"topic" => topic}, token: legacy_token(:publisher, {"publish" => ["*"]}, exp: Time.now.to_i + 60, aud: "x", iss: "me")).status
    [legacy_token(:publisher, {"publish" => ["*"]}, exp: Time.now.to_i - 1), legacy_token(:publisher, {"publish" => ["*"]}, key: "k" * 40), JWT.encode({"mercure" => {"publish" => ["*"]}}, nil, "none"),
      legacy_token(:publisher, {"publish" => ["*"]}, nbf: Time.now.to_i + 60)].each do |token|
      assert_challenge 401, "invalid_token", post({"topic" => topic}, token: token)
    end
  end

  test "a draft-08 token is judged by the rules of draft-08 (draft-08, Token Validation)" do
    assert_equal 200, post("topic" => topic).status
    [token(:publisher, "*", exp: :absent), token(:publisher, "*", aud: "x"), token(:publisher, "*", iss: "x"), token(:publisher, details: [], mercure: {"publish" => ["*"]})].zip([401, 401, 401, 403]).each do |token, status|
      assert_equal status, post({"topic" => topic}, token: token).status
    end
  end

  test "the cookie mercureAuthorization, with the check of the origin (Cookie)" do
    cookie = {"cookie" => "mercureAuthorization=#{publisher_claim("*")}"}
    assert_equal 400, post({"topic" => topic}, token: nil, headers: cookie).status
    assert_equal 200, post({"topic" => topic}, token: nil, headers: cookie.merge("origin" => "https://hub.example.com")).status
    stream = subscribe({"topic" => topic}, headers: {"cookie" => "mercureAuthorization=#{reader(topic)}"})
    publish(topic, "private", private: "on")
    assert_next "private", stream
  end

  test "the authorization query parameter, for reading alone; header first, then it, then the cookie (Authorization; URI Query Parameter)" do
    stream = subscribe({"topic" => topic, "authorization" => reader(topic)}, headers: {"cookie" => "mercureAuthorization=x"})
    publish(topic, "private", private: "on")
    assert_next "private", stream
    assert_equal 401, subscribe("topic" => topic, "authorization" => "x").status
    assert_equal 200, subscribe({"topic" => topic, "authorization" => "x"}, token: reader(topic)).status
    assert_equal 401, client.request("POST", "#{server.path}?authorization=#{publisher_claim("*")}", headers: {"content-type" => "application/x-www-form-urlencoded"}, body: "topic=a").status
    assert_equal 401, client.request("DELETE", "#{server.path}/subscribers/x?authorization=#{publisher_claim("*")}").status
  end

  test "the cursor as lastEventID or Last-Event-ID in the query, answered with Last-Event-ID too (Reconnection)" do
    ids = Array.new(3) { |i| publish(topic, i.to_s) }
    %w[lastEventID Last-Event-ID last_event_id].each do |name|
      stream = subscribe("topic" => topic, name => ids[0])
      assert_equal [ids[0], ids[0]], [stream["last-event-id"], stream["mercure-last-event-id"]], name
      assert_equal %w[1 2], stream.take(2).map(&:data)
      stream.close
    end
    stream = subscribe({"topic" => topic, "lastEventID" => ids[0]}, headers: {"last-event-id" => ids[1]})
    assert_equal ids[1], stream["last-event-id"]
    assert_equal "earliest", subscribe("topic" => topic, "lastEventID" => "urn:unknown")["last-event-id"]
  end

  test "subscription events have the form of 0.x, as messages (Subscription Events)" do
    watcher = subscribe({"topic" => "#{server.path}/subscriptions/{topic}/{subscriber}"}, token: reader("#{server.path}/subscriptions/{topic}/{subscriber}", payload: nil))
    stream = subscribe({"topic" => topic("{x}")}, token: reader(topic, payload: {"user" => 1}))
    event = watcher.next until event && JSON.parse(event.data)["topic"] == topic("{x}")
    document = JSON.parse(event.data)
    assert_equal "message", event.type
    assert_equal %W[https://mercure.rocks/ Subscription #{topic("{x}")}], document.values_at("@context", "type", "topic")
    assert_equal [true, {"user" => 1}], document.values_at("active", "payload")
    assert_equal "#{server.path}/subscriptions/#{URI.encode_www_form_component(topic("{x}"))}/#{document["subscriber"].gsub(":", "%3A")}", document["id"]
    refute document.key?("match")
    stream.close
    ended = JSON.parse(watcher.next.data)
    assert_equal document.merge("active" => false), ended
  end

  test "the subscription API of 0.x (Subscription API)" do
    subscribe({"topic" => topic}, token: reader(topic, payload: [1, 2]))
    token = reader("#{server.path}/subscriptions{/topic}{/subscriber}")
    collection = "#{server.path}/subscriptions/#{URI.encode_www_form_component(topic)}"
    response = get(collection, token: token)
    assert_equal [200, "application/ld+json"], [response.status, response["content-type"]]
    document = response.json
    assert_equal ["https://mercure.rocks/", collection, "Subscriptions", hub.last_event_id], document.values_at("@context", "id", "type", "lastEventID")
    assert_equal [["Subscription", topic, true, [1, 2]]], document["subscriptions"].map { |one| one.values_at("type", "topic", "active", "payload") }
    one = get(document["subscriptions"].first["id"], token: token)
    assert_equal [200, "application/ld+json", document["subscriptions"].first.merge("@context" => "https://mercure.rocks/", "lastEventID" => hub.last_event_id)], [one.status, one["content-type"], one.json]
    assert_equal 404, get("#{collection}/urn%3Ax", token: token).status
    assert_equal 403, get(collection, token: reader(topic)).status
  end

  test "the collection of all, asked for with a token of 0.x, has its form (Subscription API)" do
    subscribe({"topic" => topic})
    subscribe({"match" => topic})
    response = get("#{server.path}/subscriptions", token: reader("#{server.path}/subscriptions"))
    assert_equal [200, "application/ld+json"], [response.status, response["content-type"]]
    document = response.json
    assert_equal ["https://mercure.rocks/", "Subscriptions", hub.last_event_id], document.values_at("@context", "type", "lastEventID")
    mine = document["subscriptions"].select { |one| one["topic"] == topic }
    assert_equal [["Subscription", true]], mine.map { |one| one.values_at("type", "active") }.uniq
    assert_equal 2, mine.size, "those of draft-08 are among them"
    modern = get("#{server.path}/subscriptions", token: subscriber("*"))
    assert_equal ["application/json", "subscriptions"], [modern["content-type"], modern.json["type"]]
    refute modern.json.key?("lastEventID")
  end

  test "without the setting, nothing of it is accepted (draft-08, appendix on changes)" do
    start(legacy: false)
    assert_problem 400, subscribe("topic" => topic)
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: publisher_claim("*"))
    assert_equal 401, post({"topic" => topic}, token: nil, headers: {"cookie" => "mercureAuthorization=#{publisher_claim("*")}", "origin" => "https://hub.example.com"}).status
    publish(topic, "x")
    stream = subscribe("match" => topic, "lastEventID" => "earliest", "authorization" => "x")
    assert_nil stream["last-event-id"]
    stream = subscribe("match" => topic, "last_event_id" => "earliest")
    assert_nil stream["last-event-id"]
    assert_problem 404, get("#{server.path}/subscriptions/a", token: subscriber("*"))
  end
end
