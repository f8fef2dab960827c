# frozen_string_literal: true

require "support/protocol_test"

# Streams that are changed while they last: an extension, see docs/live-streams.md.
class Protocol::LiveStreamsTest < Protocol::Test
  PAGE = {"origin" => "https://app.example"}.freeze
  private_constant :PAGE

  test "a stream has a capability if it is asked for, and no other has one" do
    first, second = live(topic), live(topic)
    [first, second].each { |stream| assert_match(/\A[A-Za-z0-9_-]{22,64}\z/, stream["hikyaku-stream"]) }
    refute_equal first["hikyaku-stream"], second["hikyaku-stream"]
    query = subscribe({}, method: "QUERY", body: {"match" => topic}, headers: {"hikyaku-stream" => "1"})
    assert query["hikyaku-stream"]
    [{}, {"hikyaku-stream" => "0"}, {"hikyaku-stream" => ""}, {"hikyaku-stream" => "true"}].each { |headers| assert_nil follow(topic, headers: headers)["hikyaku-stream"], headers.inspect }
    assert_nil client.request("HEAD", "#{server.path}?match=a", headers: {"hikyaku-stream" => "1"})["hikyaku-stream"]
  end

  test "the same subscribe again, with the header and without, is answered alike" do
    3.times do
      assert live(topic)["hikyaku-stream"]
      assert_nil follow(topic)["hikyaku-stream"]
    end
  end

  test "a stream that asks for it names the matchers that selected its events, and can be changed" do
    3.times do
      stream = live(topic("a"), topic("b"), headers: {"hikyaku-stream" => "matchers"})
      assert_match(/\A[A-Za-z0-9_-]{22,64}\z/, stream["hikyaku-stream"])
      publish([topic("b"), topic("a")], "1")
      assert_equal ["match: #{topic("a")}", "match: #{topic("b")}"], names_before(stream, "1")
      assert_equal 204, change(stream, topic("b")).status
      publish([topic("b"), topic("a")], "2")
      assert_equal ["match: #{topic("b")}"], names_before(stream, "2")
    end
  end

  test "a stream in MessagePack that asks for the matchers' names gets no capability: it cannot have them" do
    headers = {"hikyaku-stream" => "matchers", "accept" => "application/vnd.msgpack"}
    3.times { assert_nil subscribe({"match" => topic}, headers: headers)["hikyaku-stream"] }
    assert subscribe({"match" => topic}, headers: headers.merge("hikyaku-stream" => "1"))["hikyaku-stream"]
  end

  test "matchers come and go, and those that stay go on" do
    stream = live(topic("a"))
    publish(topic("b"), "before")
    newest = publish(topic("a"), "1")
    response = change(stream, topic("a"), topic("b"))
    assert_equal [204, newest, "no-store"], [response.status, response["mercure-last-event-id"], response["cache-control"]]
    publish(topic("b"), "2")
    publish([topic("a"), topic("b")], "3")
    assert_equal 204, change(stream, topic("b")).status
    publish(topic("a"), "for nobody")
    publish(topic("b"), "4")
    assert_equal %w[1 2 3 4], stream.take(4).map(&:data)
  end

  test "patterns are as good as topics, and a hundred matchers as one" do
    stream = live(topic("a"))
    fields = [["match_urlpattern", topic("b/:id")]] + Array.new(99) { |i| ["match", topic(i.to_s)] }
    assert_equal 204, change_to(stream, fields).status
    publish(topic("b/7"), "1")
    publish(topic("98"), "2")
    assert_equal %w[1 2], stream.take(2).map(&:data)
    assert_problem 400, change_to(stream, fields + [["match", "/more"]])
    publish(topic("97"), "3")
    assert_next "3", stream
  end

  test "what was added is caught up from an event on, without what came already; and a comment says when that is done" do
    seen = publish(topic("b"), "seen")
    stream = live(topic("a"))
    publish(topic("b"), "missed")
    publish([topic("a"), topic("b")], "of both")
    publish(topic("a"), "1")
    assert_equal ["of both", "1"], stream.take(2).map(&:data)
    assert_equal 204, change(stream, topic("a"), topic("b"), last_event_id: seen).status
    assert_next "missed", stream
    eventually { (stream.silent?(0.01) || true) && stream.comments.include?(" caught up") }
    publish(topic("b"), "2")
    assert_next "2", stream
    assert_equal 1, stream.comments.count(" caught up")
  end

  test "the header names the event, too, and goes before the parameter (Reconnection)" do
    seen = publish(topic("b"), "seen")
    publish(topic("b"), "missed")
    stream = live(topic("a"))
    assert_equal 204, change_to(stream, {"match" => topic("b"), "last_event_id" => "earliest"}, headers: {"last-event-id" => seen}).status
    assert_next "missed", stream
  end

  test "an event that is not known is answered with earliest, and told in the stream (Reconnection)" do
    start
    publish(topic("b"), "retained")
    stream = live(topic("a"))
    response = change(stream, topic("a"), topic("b"), last_event_id: "urn:never")
    assert_equal [204, "earliest"], [response.status, response["mercure-last-event-id"]]
    gap = stream.next
    assert_equal ["mercure", {"type" => "gap", "reason" => "unknown", "last_event_id" => "urn:never", "matches" => [{"match" => topic("b"), "match_type" => "exact"}]}], [gap.type, JSON.parse(gap.data)]
    assert_next "retained", stream
  end

  test "without a matcher, or with one that is none, nothing is changed (Subscription: 400)" do
    stream = live(topic)
    [{}, {"topic" => topic}, {"last_event_id" => "earliest"}, {"match_regexp" => "a"}, {"match_urlpattern" => "https://[/"}, {"match" => "a\u0000"}, "match=%ff"].each do |fields|
      assert_problem 400, change_to(stream, fields), fields.inspect
    end
    assert_problem 400, client.request("POST", at(stream), headers: {"content-type" => "application/json"}, body: "{}")
    publish(topic, "x")
    assert_next "x", stream
  end

  test "a stream that is gone, or never was, is not found, and any token is looked at before" do
    start(anonymous: false)
    stream = live(topic, token: subscriber(topic))
    path = at(stream)
    assert_equal 204, change(stream, topic, token: subscriber(topic)).status
    assert_challenge 401, nil, change(stream, topic)
    assert_challenge 401, "invalid_token", change(stream, topic, token: "nonsense")
    assert_challenge 401, nil, client.request("POST", "#{server.path}/streams/#{"x" * 22}", headers: form_type, body: form("match" => topic))
    ["x" * 22, "", "x/y", "#{stream["hikyaku-stream"]}x", "%00", stream["hikyaku-stream"].swapcase].each do |capability|
      assert_problem 404, client.request("POST", "#{server.path}/streams/#{capability}", headers: form_type.merge(bearer(subscriber(topic))), body: form("match" => topic)), capability
    end
    stream.close
    eventually { client.request("POST", path, headers: form_type.merge(bearer(subscriber(topic))), body: form("match" => topic)).status == 404 }
  end

  test "only POST is understood there, and a preflight answered" do
    stream = live(topic)
    %w[GET HEAD PUT DELETE].each { |method| assert_equal [405, "POST, OPTIONS"], client.request(method, at(stream)).then { |response| [response.status, response["allow"]] }, method }
    start(cors_origins: ["https://app.example"])
    response = client.request("OPTIONS", "#{server.path}/streams/x", headers: PAGE.merge("access-control-request-method" => "POST", "access-control-request-headers" => "authorization"))
    assert_equal 204, response.status
    assert_includes response["access-control-allow-headers"].split(", "), "hikyaku-stream"
    stream = live(topic, headers: PAGE)
    assert_includes stream["access-control-expose-headers"].split(", "), "hikyaku-stream"
    answer = change_to(stream, {"match" => topic}, headers: PAGE)
    assert_equal [204, "https://app.example"], [answer.status, answer["access-control-allow-origin"]]
  end

  test "the token of a change says what is read from then on (Subscribers)" do
    publish(topic("b"), "secret before", private: "on")
    stream = live(topic("a"), token: subscriber(topic("a")))
    publish(topic("a"), "1", private: "on")
    assert_equal "1", stream.next.data
    assert_equal 204, change(stream, topic("a"), topic("b"), token: subscriber(topic("b"))).status
    publish(topic("a"), "not any more", private: "on")
    publish(topic("b"), "2", private: "on")
    assert_equal "2", stream.next.data
    assert_equal 204, change(stream, topic("a"), topic("b")).status, "without a token"
    publish(topic("b"), "nor this", private: "on")
    publish(topic("a"), "3")
    assert_equal "3", stream.next.data
  end

  test "with a new token a stream outlives the old one, and ends with the new (Subscribers)" do
    start(heartbeat: 0)
    stream = live(topic, token: subscriber(topic, exp: Time.now.to_i + 5))
    other = live(topic, token: subscriber(topic, exp: Time.now.to_i + 600))
    assert_equal 204, change(stream, topic, token: subscriber(topic, exp: Time.now.to_i + 600)).status
    assert_equal 204, change(other, topic, token: subscriber(topic, exp: Time.now.to_i + 5)).status
    assert_equal [], other.rest
    sleep 0.3
    publish(topic, "still there")
    assert_next "still there", stream
  end

  test "a token of another subject may not change a stream, one without a subject may" do
    stream = live(topic, token: subscriber(topic, sub: "alice"))
    assert_challenge 403, "insufficient_scope", change(stream, topic, token: subscriber(topic, sub: "bob"))
    assert_equal 204, change(stream, topic, token: subscriber(topic, sub: "alice")).status
    anonymous = live(topic)
    assert_equal 204, change(anonymous, topic, token: subscriber(topic, sub: "bob")).status
    assert_challenge 403, "insufficient_scope", change(anonymous, topic, token: subscriber(topic, sub: "alice"))
    publish(topic, "x")
    assert_next "x", stream
  end

  test "who was disconnected has no stream to change, and who was revoked no token for it" do
    stream = live(topic, token: subscriber(topic, sub: "urn:gone", iat: Time.now.to_i - 10))
    late = live(topic)
    assert_equal 204, change(late, topic, token: subscriber(topic, sub: "urn:gone", iat: Time.now.to_i - 10)).status
    assert_equal 2, hub.disconnect(subject: "urn:gone", revoke: true)
    assert_equal [[], []], [stream.rest, late.rest], "also who came to be it later"
    assert_challenge 401, "invalid_token", change(stream, topic, token: subscriber(topic, sub: "urn:gone", iat: Time.now.to_i - 10))
    assert_problem 404, change(stream, topic, token: subscriber(topic, sub: "urn:gone", iat: Time.now.to_i + 2))
    assert_equal 0, hub.disconnect(subject: "urn:gone")
  end

  test "what is added and removed is announced, and nothing of what stays (Subscription Events)" do
    start
    watcher = subscribe({"match_urlpattern" => "#{server.path}/subscriptions/exact/:m/:s"}, token: subscriber("*"))
    stream = live(topic("a"), topic("b"))
    announced = watcher.take(2).map { |event| JSON.parse(event.data) }
    assert_equal 204, change(stream, topic("b"), topic("c")).status
    events = watcher.take(2).map { |event| JSON.parse(event.data) }
    assert_equal [[topic("a"), false], [topic("c"), true]], events.map { |event| event.values_at("match", "active") }
    assert_equal 1, (announced + events).map { |event| event["subscriber"] }.uniq.size
    listed = get("#{server.path}/subscriptions", token: subscriber("*")).json["subscriptions"].select { |each| each["subscriber"] == events.first["subscriber"] }
    assert_equal [topic("b"), topic("c")], listed.map { |each| each["match"] }.sort
    assert_equal 204, change(stream, topic("c"), topic("b"), token: subscriber("*")).status
    stream.close
    assert_equal [[topic("b"), false], [topic("c"), false]], watcher.take(2).map { |event| JSON.parse(event.data).values_at("match", "active") }.sort
  end

  test "a stream that catches up for as many changes as it may takes no other that goes back, until it has" do
    start
    ids = Array.new(12) { |i| publish(topic(i.to_s), i.to_s) }
    stream = live(topic("x"))
    40.times { publish(topic("x"), "x" * 50_000) }
    eventually { blocked? || publish(topic("x"), "x" * 50_000).nil? }
    grow = ->(count, **fields) { change(stream, topic("x"), *Array.new(count) { |i| topic((11 - i).to_s) }, last_event_id: ids[11 - count], **fields) }
    8.times { |i| assert_equal 204, grow.call(i + 1).status }
    refused = grow.call(9)
    assert_problem 429, refused
    assert_equal "1", refused["retry-after"]
    assert_equal 204, grow.call(8).status, "nothing to go back for"
    stream.until("4", 30)
    eventually { grow.call(9).status == 204 }
    publish(topic("x"), "end")
    assert_equal %w[10 11 3 5 6 7 8 9], stream.until("end").map(&:data).grep(/\A\d+\z/).sort
  end

  test "the whole of a stream goes on while it is changed again and again under load" do
    start
    stream = live(topic("steady"))
    publishing = Thread.new { 300.times { |i| publish([topic("steady"), topic("other #{i % 7}")], i.to_s) } }
    changes = 0
    while publishing.alive?
      assert_equal 204, change(stream, topic("steady"), *Array.new(1 + changes % 5) { |n| topic("other #{(changes + n) % 7}") }, **((changes % 3 == 0) ? {last_event_id: "earliest"} : {})).status
      changes += 1
    end
    publishing.join
    assert_equal (0...300).to_a, stream.take(300).map { |event| event.data.to_i }.sort
    assert_operator changes, :>, 3
    publish(topic("steady"), "end")
    assert_next "end", stream
  end

  private

  def live(*topics, token: nil, headers: {}, **options) = follow(*topics, token: token, headers: {"hikyaku-stream" => "1"}.merge(headers), **options)

  # What stands before the fields of an event, whose data is this.
  def names_before(stream, data)
    assert_next data, stream
    stream.bytes.split("\n\n").find { |block| block.end_with?("data: #{data}") }.lines(chomp: true).take_while { |line| line.start_with?("match") }
  end

  def at(stream) = "#{server.path}/streams/#{stream["hikyaku-stream"]}"

  def blocked? = hub.drive { |engine| engine.each_subscriber { |subscriber| break true if subscriber.blocked } == true }

  def form_type = {"content-type" => "application/x-www-form-urlencoded"}

  def change(stream, *topics, token: nil, **fields)
    change_to(stream, topics.map { |topic| ["match", topic] } + fields.map { |name, value| [name.to_s, value] }, token: token)
  end

  def change_to(stream, fields, token: nil, headers: {})
    client.request("POST", at(stream), headers: form_type.merge(bearer(token), headers), body: form(fields))
  end
end
