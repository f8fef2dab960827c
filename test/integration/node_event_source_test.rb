# frozen_string_literal: true

require "support/integration"

# The npm package `eventsource`, in Node.js, against the hub's own process.
class NodeEventSourceTest < Integration::Test
  include AccessTokens

  BOOK = Integration::BOOK

  test "events arrive with id, type and lines of data as they were published" do
    hub = self.class.hub
    client = run_node(url: subscription(hub, "#{BOOK}/node"), types: ["price"])
    client.until(/"open"/)
    ids = [hub.publish([["topic", "#{BOOK}/node"], ["data", "one\ntwo\r\nthree"]]),
      hub.publish([["topic", "#{BOOK}/node"], ["data", "€ 12"], ["type", "price"], ["id", "urn:node:2"]])]
    events = node_events(client, 2)
    assert_equal [["message", "one\ntwo\nthree"], ["price", "€ 12"]], events.map { |event| event.values_at("type", "data") }
    assert_equal ids, events.map { |event| event["id"] }
  end

  test "with Authorization, which a browser's EventSource cannot send, private updates come; without, they do not" do
    hub = start_strict_hub
    audience = {aud: hub.url}
    topic = "#{BOOK}/private"
    reader = run_node(url: subscription(hub, topic), token: token(:subscriber, topic, **audience))
    stranger = run_node(url: subscription(hub, topic))
    [reader, stranger].each { |client| client.until(/"open"/) }
    publisher = token(:publisher, "*", **audience)
    hub.publish([["topic", topic], ["data", "secret"], ["private", "on"]], token: publisher)
    hub.publish([["topic", topic], ["data", "public"]], token: publisher)
    assert_equal %w[secret public], node_events(reader, 2).map { |event| event["data"] }
    assert_equal %w[public], node_events(stranger, 1).map { |event| event["data"] }
  end

  test "a token that is refused ends the client, with the status" do
    hub = self.class.hub
    client = run_node(url: subscription(hub, BOOK), token: "nonsense")
    client.until(/"error"/)
    assert_equal [[401, 2]], said(client, "error").map { |error| error.values_at("code", "state") }
  end

  test "a stream that the hub ends is taken up where it was, in the time that was told" do
    hub = start_hub("--max-lifetime", "1")
    client = run_node(url: subscription(hub, BOOK))
    client.until(/"open"/)
    first = hub.publish([["topic", BOOK], ["data", "before"], ["retry", "50"]])
    node_events(client, 1)
    client.until { said_in(_1, "error").any? }
    missed = hub.publish([["topic", BOOK], ["data", "between or after"]])
    events = node_events(client, 2)
    assert_equal [first, missed], events.map { |event| event["id"] }
    assert_equal [nil, first], said(client, "request").first(2).map { |request| request["lastEventId"] }
  end

  test "`retry` of an update is honoured: the client comes back after this time and not before" do
    hub = start_hub("--heartbeat", "0")
    client = run_node(url: subscription(hub, BOOK))
    client.until(/"open"/)
    hub.publish([["topic", BOOK], ["data", "x"], ["retry", "700"]])
    node_events(client, 1)
    hub.stop("KILL") # which leaves it no time for a `retry` of its own
    hub.start
    client.until { said_in(_1, "open").size == 2 }
    error = said(client, "error").first["at"]
    again = said(client, "request")[1]["at"]
    assert_operator again - error, :>=, 650
  end

  test "after kill -9 the client comes back by itself with its last id, and is told that the history is gone" do
    hub = start_hub
    client = run_node(url: subscription(hub, BOOK), types: ["mercure"])
    client.until(/"open"/)
    id = hub.publish([["topic", BOOK], ["data", "before"], ["retry", "100"]])
    node_events(client, 1)
    hub.stop("KILL")
    hub.start
    client.until { said_in(_1, "open").size == 2 }
    hub.publish([["topic", BOOK], ["data", "after"]])
    gap, after = node_events(client, 3).last(2)
    assert_equal id, said(client, "request").last["lastEventId"]
    assert_equal ["mercure", {"type" => "gap", "reason" => "unknown", "last_event_id" => id}], [gap["type"], JSON.parse(gap["data"])]
    assert_equal %w[message after], after.values_at("type", "data")
  end
end
