# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing".
class Protocol::ReconnectionTest < Protocol::Test
  CURSOR = "mercure-last-event-id"
  OWN_CURSOR = "hikyaku-cursor"

  test "a reader that names the last event it has gets all that follows, once, in order, by header and by parameter (Reconnection)" do
    ids = Array.new(5) { |i| publish(topic, i.to_s) }
    [{headers: {"last-event-id" => ids[1]}}, {parameters: {"last_event_id" => ids[1]}}].each do |how|
      stream = subscribe({"match" => topic}.merge(how[:parameters] || {}), headers: how[:headers] || {})
      assert_equal ids[1], stream[CURSOR]
      assert_equal %w[2 3 4], stream.take(3).map(&:data)
      publish(topic, "live")
      assert_next "live", stream
      stream.close
    end
  end

  test "replayed events are the same bytes as live ones" do
    live = follow(topic)
    first = publish(topic, "0")
    publish(topic, "a\r\nb", type: "t", retry: "7", id: "urn:x")
    live.take(2)
    again = follow(topic, headers: {"last-event-id" => first})
    again.next
    assert live.bytes.end_with?(again.bytes.sub(/\A(?::.*\n*)*/, ""))
  end

  test "the header beats the parameter (Reconnection)" do
    ids = Array.new(3) { |i| publish(topic, i.to_s) }
    stream = subscribe({"match" => topic, "last_event_id" => ids[0]}, headers: {"last-event-id" => ids[1]})
    assert_equal ids[1], stream[CURSOR]
    assert_equal ["2"], received(stream, topic)
  end

  test "ids that publishers chose are cursors too (Reconnection)" do
    ["urn:uuid:5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb-#{rand}", "木 #{rand}", "a b;c&d=e+f%20#{rand}"].each do |id|
      publish(topic(id), "before")
      publish(topic(id), "it", id: id)
      publish(topic(id), "after")
      stream = subscribe("match" => topic(id), "last_event_id" => id)
      assert_equal [id, "after"], [stream[CURSOR], stream.next.data]
      stream.close
      stream = follow(topic(id), headers: {"last-event-id" => id})
      assert_equal [id, "after"], [stream[CURSOR], stream.next.data]
      stream.close
    end
  end

  test "only matching events are replayed, from a cursor that need not match (Reconnection)" do
    mine, other = topic("mine"), topic("other")
    publish(mine, "old")
    cursor = publish(other, "cursor")
    publish(other, "not mine")
    publish(mine, "new")
    stream = subscribe("match" => mine, "last_event_id" => cursor)
    assert_equal cursor, stream[CURSOR]
    assert_equal ["new"], received(stream, mine)
  end

  test "the newest event as a cursor replays nothing (Reconnection)" do
    cursor = publish(topic, "x")
    stream = subscribe("match" => topic, "last_event_id" => cursor)
    assert_equal cursor, stream[CURSOR]
    assert_equal [], received(stream, topic)
  end

  test "earliest asks for all that the hub has, and is answered with earliest (Reconnection)" do
    3.times { |i| publish(topic, i.to_s) }
    [{parameters: {"last_event_id" => "earliest"}}, {headers: {"last-event-id" => "earliest"}}].each do |how|
      stream = subscribe({"match" => topic}.merge(how[:parameters] || {}), headers: how[:headers] || {})
      assert_equal "earliest", stream[CURSOR]
      assert_equal %w[0 1 2], stream.take(3).map(&:data)
      stream.close
    end
  end

  test "an unknown id is answered with earliest, told in the stream, and followed by all that is retained (Reconnection)" do
    2.times { |i| publish(topic, i.to_s) }
    ["urn:unknown", "#AAAAAAAAAAA", "#", "EARLIEST", "\xFF".b, "a\u202Eb", "x" * 5000, "un\"known\\"].each do |cursor|
      stream = subscribe("match" => topic, "last_event_id" => cursor)
      assert_equal "earliest", stream[CURSOR], cursor.inspect
      gap = stream.next
      assert_equal "mercure", gap.type
      document = JSON.parse(gap.data)
      assert_equal %w[gap unknown], document.values_at("type", "reason")
      assert cursor.b.start_with?(document["last_event_id"].b[0, 1]) || document["last_event_id"].start_with?("\uFFFD")
      assert_equal %w[0 1], stream.take(2).map(&:data)
      stream.close
      # The place that the gap event names is a cursor like any other: coming back with it loses and repeats nothing.
      stream = follow(topic, headers: {"last-event-id" => gap.id})
      assert_equal gap.id, stream[CURSOR]
      assert_equal %w[0 1], stream.take(2).map(&:data)
      stream.close
    end
  end

  test "without a cursor there is neither a replay nor the field (Reconnection)" do
    publish(topic, "old")
    stream = follow(topic)
    assert_nil stream[CURSOR]
    assert_equal [], received(stream, topic)
  end

  test "an empty cursor replays nothing and is answered with the newest event (Reconnection)" do
    start(subscriptions: false)
    id = publish(topic, "old")
    [[{"last_event_id" => ""}, {}], [{}, {"last-event-id" => ""}]].each do |parameters, headers|
      response = get("#{server.path}?#{form({"match" => topic}.merge(parameters))}", headers: headers, method: "HEAD")
      assert_equal id, response[CURSOR]
      stream = subscribe({"match" => topic}.merge(parameters), headers: headers)
      refute_nil stream[CURSOR]
      assert_equal [], received(stream, topic)
      stream.close
      id = publish(topic, "newer")
    end
    stream = subscribe("match=#{URI.encode_www_form_component(topic)}&last_event_id")
    refute_nil stream[CURSOR], "a name without a value"
  end

  test "a HEAD with an empty cursor is answered also with the place to begin later, of an empty log too; no other answer is" do
    start(subscriptions: false)
    ask = ->(cursor, method: "HEAD", **more) { get("#{server.path}?#{form({"match" => topic, **(cursor ? {"last_event_id" => cursor} : {})})}", method: method, **more) }
    empty = ask.call("")
    assert_equal "earliest", empty[CURSOR]
    assert_match(/\A#[\w-]{11}\z/, empty[OWN_CURSOR])
    assert_equal empty[OWN_CURSOR], ask.call(nil, headers: {"last-event-id" => ""})[OWN_CURSOR]
    assert_nil subscribe("match" => topic, "last_event_id" => "")[OWN_CURSOR]
    id = publish(topic, "x")
    assert_equal [id, id], ask.call("").then { |answer| [answer[CURSOR], answer[OWN_CURSOR]] }
    [nil, "earliest", id, "urn:x"].each { |cursor| assert_nil ask.call(cursor)[OWN_CURSOR], cursor.inspect }
    stream = subscribe("match" => topic, "last_event_id" => empty[OWN_CURSOR])
    assert_equal [empty[OWN_CURSOR], "x"], [stream[CURSOR], stream.next.data]
    stream.close
  end

  test "where nothing was ever published, every cursor is answered with earliest (Reconnection)" do
    start(subscriptions: false)
    ["earliest", "", "urn:x", "#AAAAAAAAAAA"].each do |cursor|
      stream = subscribe("match" => topic, "last_event_id" => cursor)
      assert_equal "earliest", stream[CURSOR], cursor.inspect
      stream.close
    end
  end

  test "the answer to an empty cursor is no private id that the reader may not see (Reconnection)" do
    start(subscriptions: false)
    publish(topic, "secret", private: "on", id: "urn:secret")
    [nil, subscriber("https://example.com/else")].each do |token|
      answer = get("#{server.path}?#{form("match" => topic, "last_event_id" => "")}", token: token, method: "HEAD")[CURSOR]
      refute_equal "urn:secret", answer
      # It is a cursor all the same: nothing is lost after it, nothing before it comes.
      publish(topic(token.to_s.size), "after")
      stream = subscribe("match" => topic(token.to_s.size), "last_event_id" => answer)
      assert_equal answer, stream[CURSOR]
      assert_next "after", stream
    end
    assert_match(/\A(urn:secret|#)/, get("#{server.path}?#{form("match" => topic, "last_event_id" => "")}", token: subscriber(topic), method: "HEAD")[CURSOR])
  end

  test "the answer to an unknown cursor tells of no private id (Reconnection)" do
    publish(topic, "secret", private: "on", id: "urn:secret:#{topic}")
    stream = subscribe("match" => topic, "last_event_id" => "urn:unknown:#{topic}")
    assert_equal "earliest", stream[CURSOR]
    publish(topic, "end")
    assert_equal "gap", JSON.parse(stream.next.data)["type"]
    assert_next "end", stream
    refute_includes stream.bytes, "urn:secret"
  end

  test "an id that was used twice stands for the first; the later one is replayed (Reconnection)" do
    publish(topic, "before")
    publish(topic, "first", id: id = "urn:twice:#{topic}")
    publish(topic, "between")
    publish(topic, "second", id: id)
    publish(topic, "after")
    stream = subscribe("match" => topic, "last_event_id" => id)
    assert_equal id, stream[CURSOR]
    assert_equal %w[between second after], received(stream, topic)
  end

  test "replay is authorised anew, with the token that is presented now (Reconnection; Authorization on Event Replay)" do
    mine, other = topic("mine"), topic("other")
    first = publish(mine, "0")
    publish(mine, "private mine", private: "on")
    publish(other, "private other", private: "on")
    publish(other, "public other")
    both = [mine, other]
    expected = {
      subscriber(*both) => ["private mine", "private other", "public other"], subscriber(mine) => ["private mine", "public other"],
      subscriber(other) => ["private other", "public other"], nil => ["public other"]
    }
    expected.each do |token, events|
      stream = follow(*both, token: token, headers: {"last-event-id" => first})
      assert_equal events, received(stream, mine)
      stream.close
    end
  end

  test "a reader whose token lost a grant gets no private event that it could have had before (Authorization on Event Replay)" do
    stream = follow(topic, token: subscriber(topic))
    first = publish(topic, "1", private: "on")
    assert_next "1", stream
    stream.close
    publish(topic, "2", private: "on")
    stream = follow(topic, token: subscriber("https://example.com/else"), headers: {"last-event-id" => first})
    assert_equal first, stream[CURSOR]
    assert_equal [], received(stream, topic)
  end

  test "an event that the history dropped is unknown, and the reader is told (Reconnection)" do
    start(history: 65_536)
    first = publish(topic, "0", id: "urn:first")
    made = publish(topic, "1")
    100.times { |i| publish(topic, i.to_s.ljust(2000, "x")) }
    [first, made].each do |cursor|
      stream = subscribe("match" => topic, "last_event_id" => cursor)
      assert_equal "earliest", stream[CURSOR]
      assert_equal({"type" => "gap", "reason" => "unknown", "last_event_id" => cursor}, JSON.parse(stream.next.data))
      events = received(stream, topic).map(&:to_i)
      assert_equal (events.first..99).to_a, events
      assert_operator events.first, :>, 50
    end
  end

  test "a cursor from another hub, or from before a restart, is unknown (Reconnection)" do
    id = publish(topic, "x")
    start
    publish(topic, "y")
    stream = subscribe("match" => topic, "last_event_id" => id)
    assert_equal "earliest", stream[CURSOR]
    assert_equal "gap", JSON.parse(stream.next.data)["type"]
    assert_next "y", stream
  end

  test "of several cursors in one component the first counts" do
    ids = Array.new(3) { |i| publish(topic, i.to_s) }
    stream = subscribe([["match", topic], ["last_event_id", ids[1]], ["last_event_id", ids[0]]])
    assert_equal ids[1], stream[CURSOR]
  end
end
