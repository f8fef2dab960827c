# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, sections "Subscription Events", "Payloads" and "Subscriber Identifier Assignment".
class Protocol::SubscriptionEventsTest < Protocol::Test
  UUID = /\Aurn:uuid:\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/

  test "an event tells of each subscription that begins and ends (Subscription Events)" do
    watcher = watch
    stream = follow(topic("x"))
    first = told(watcher)
    stream.close
    second = told(watcher)
    assert_equal "#{server.path}/subscriptions/exact/#{URI.encode_www_form_component(topic("x"))}/#{first["subscriber"].gsub(":", "%3A")}", first["id"]
    assert_equal({"type" => "subscription", "match_type" => "exact", "match" => topic("x"), "active" => true}, first.slice("type", "match_type", "match", "active"))
    assert_match UUID, first["subscriber"]
    assert_equal first.merge("active" => false), second
    refute first.key?("payload")
  end

  test "the topic of the event is its id; an exact matcher finds it (Subscription Events)" do
    watcher = watch
    stream = follow(topic("x"))
    document = told(watcher)
    one = subscribe({"match" => document["id"]}, token: subscriber(document["id"]))
    stream.close
    assert_equal document.merge("active" => false), JSON.parse(one.next.data)
  end

  test "one event for each matcher, all with the connection's identifier (Subscription Events)" do
    watcher = watch
    stream = subscribe([["match", topic("x")], ["match_urlpattern", topic(":y")], ["match_exact", topic("z")]])
    documents = told(watcher, 3)
    assert_equal [["exact", topic("x")], ["urlpattern", topic(":y")], ["exact", topic("z")]].sort, documents.map { |document| document.values_at("match_type", "match") }.sort
    assert_equal 1, documents.map { |document| document["subscriber"] }.uniq.size
    stream.close
    assert_equal documents.map { |document| document.merge("active" => false) }.sort_by(&:to_s), told(watcher, 3).sort_by(&:to_s)
  end

  test "identifiers are random for each connection, whatever the client says of itself (Subscriber Identifier Assignment)" do
    watcher = watch
    token = subscriber(topic, sub: "urn:uuid:bb3de268-05b0-4c65-b44e-8f9acefc29d6")
    3.times { subscribe({"match" => topic, "subscriber" => "urn:me", "sub" => "me"}, token: token, headers: {"x-subscriber" => "me", "subscriber" => "me"}) }
    ids = told(watcher, 3).map { |document| document["subscriber"] }
    assert_equal 3, ids.uniq.size
    ids.each { |id| assert_match UUID, id }
    refute_includes ids, "urn:uuid:bb3de268-05b0-4c65-b44e-8f9acefc29d6"
  end

  test "the matcher is percent-encoded once, as a whole (Subscription Events; RFC 6570, section 3.2.2)" do
    {
      "https://example.com/%7Euser/ü?a=b&c=d#e" => "https%3A%2F%2Fexample.com%2F%257Euser%2F%C3%BC%3Fa%3Db%26c%3Dd%23e", "a b+c" => "a%20b%2Bc", "*" => "%2A",
      "-._~AZaz09" => "-._~AZaz09", "!$'()" => "%21%24%27%28%29", "木" => "%E6%9C%A8", "%25" => "%2525"
    }.each do |pattern, segment|
      watcher = watch
      stream = follow(pattern)
      document = told(watcher, of: [pattern])
      assert_equal "#{server.path}/subscriptions/exact/#{segment}", document["id"][%r{\A.*(?=/)}], pattern
      assert_equal pattern, document["match"]
      [stream, watcher].each(&:close)
    end
  end

  test "events are private (Subscription Events)" do
    all = "#{server.path}/subscriptions/:type/:match/:subscriber"
    strangers = [nil, subscriber(topic), token(:subscriber, details: [detail("*", actions: ["publish"])])].map { |token| subscribe([["match_urlpattern", all], ["match", "*"]], token: token) }
    watcher = watch
    follow(topic("x"))
    told(watcher)
    strangers.each do |stream|
      publish(topic, mark = "mark #{rand}")
      assert_empty stream.until(mark).select { |event| event.type == "mercure" }
      assert_empty stream.bytes.scan("subscriptions")
    end
  end

  test "a subscriber learns of its own subscription, which is announced once it exists (Subscription Events)" do
    stream = subscribe({"match_urlpattern" => "#{server.path}/subscriptions/:type/:match/:subscriber"}, token: subscriber("*"))
    document = JSON.parse(stream.next.data)
    assert_equal [true, "#{server.path}/subscriptions/:type/:match/:subscriber"], document.values_at("active", "match")
  end

  test "a request that is refused is announced to nobody (Subscription Events)" do
    start(max_connections: 2)
    watcher = watch
    subscribe("match_foo" => "x")
    subscribe({"match" => topic("refused")}, token: "x")
    get("#{server.path}?match=#{topic("head")}", method: "HEAD")
    follow(topic("last"))
    assert_problem 429, subscribe("match" => topic("too many"))
    documents = [told(watcher)]
    @streams.last.close
    documents << told(watcher)
    assert_equal [[topic("last"), true], [topic("last"), false]], documents.map { |document| document.values_at("match", "active") }
  end

  test "events are replayed like others, to those who may read them (Reconnection)" do
    cursor = publish(topic, "x")
    stream = follow(topic("gone"))
    stream.close
    eventually { hub.subscriptions(pattern: topic("gone"), type: "exact").last.empty? }
    publish(topic, "mark")
    again = subscribe([["match_urlpattern", "#{server.path}/subscriptions/:type/:match/:subscriber"], ["match", topic], ["last_event_id", cursor]], token: subscriber("*"))
    documents = again.until("mark").map { |event| JSON.parse(event.data) }.select { |document| document["match"] == topic("gone") }
    assert_equal [true, false], documents.map { |document| document["active"] }
    anonymous = subscribe([["match_urlpattern", "#{server.path}/subscriptions/:type/:match/:subscriber"], ["match", topic], ["last_event_id", cursor]])
    assert_equal [], anonymous.until("mark")
  end

  test "the payload of the first subscribe detail that matches the matcher itself is in event and API (Payloads)" do
    mine = topic
    bar = topic(":id")
    details = [
      detail(mine, actions: ["publish"], payload: {"no" => "not a subscribe detail"}), detail(mine, actions: ["subscribe"], payload: {"custom" => "first"}), detail(mine, payload: {"custom" => "second"}),
      detail(urlpattern(bar), actions: ["subscribe"], payload: {"custom" => "pattern"}), detail("*", actions: ["subscribe"], payload: {"custom" => {"deep" => [1, nil, "木"]}})
    ]
    watcher = watch
    subscribe([["match", mine], ["match_urlpattern", bar], ["match", topic("x/y")], ["match", topic("one")]], token: token(:subscriber, details: details))
    payloads = told(watcher, 4).to_h { |document| document.values_at("match", "payload") }
    expected = {mine => {"custom" => "first"}, bar => {"custom" => "pattern"}, topic("x/y") => {"custom" => {"deep" => [1, nil, "木"]}}, topic("one") => {"custom" => "pattern"}}
    assert_equal expected, payloads
    listed = get("#{server.path}/subscriptions", token: subscriber("*")).json["subscriptions"].select { |document| expected.key?(document["match"]) }
    assert_equal expected, listed.to_h { |document| document.values_at("match", "payload") }
  end

  test "where the first detail that matches has no payload, there is none (Payloads)" do
    watcher = watch
    subscribe({"match" => topic}, token: token(:subscriber, details: [detail(topic, actions: ["subscribe"]), detail("*", payload: {"x" => 1})]))
    refute told(watcher).key?("payload")
  end

  test "many subscribers of one matcher are told of one by one" do
    watcher = watch
    streams = Array.new(5) { follow(topic) }
    subscribers = told(watcher, 5).map { |document| document["subscriber"] }
    assert_equal 5, subscribers.uniq.size
    streams.each(&:close)
    assert_equal subscribers.sort, told(watcher, 5).reject { |document| document["active"] }.map { |document| document["subscriber"] }.sort
  end

  test "a hub without subscriptions publishes no events and has no API (Active Subscriptions)" do
    start(subscriptions: false)
    watcher = subscribe([["match", "*"]], token: subscriber("*"))
    follow(topic).close
    publish(topic, "only")
    assert_next "only", watcher
    assert_problem 404, get("#{server.path}/subscriptions", token: subscriber("*"))
  end

  private

  # A stream of all subscription events, behind that of its own subscription.
  def watch
    stream = subscribe({"match_urlpattern" => "#{server.path}/subscriptions/:type/:match/:subscriber"}, token: subscriber("*"))
    assert_equal 200, stream.status
    told(stream, of: ["#{server.path}/subscriptions/:type/:match/:subscriber"])
    stream
  end

  # What is told of this test's subscriptions: those of earlier tests may end late.
  #
  # @param of [Array<String>] matchers that are not under the test's own topics
  def told(stream, count = nil, of: [])
    found = []
    until found.size == (count || 1)
      event = stream.next
      assert_equal "mercure", event.type
      document = JSON.parse(event.data)
      found << document if document["match"].start_with?(topic("")) || of.include?(document["match"])
    end
    count ? found : found.first
  end
end
