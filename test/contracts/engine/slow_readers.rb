# frozen_string_literal: true

# Readers that are slower than the publishers.
EngineContract.tests do
  test "what a socket does not take goes out later, from the byte where it stopped" do
    reader = subscribe(exact("/a"), room: 5)
    publish("/a", "one")
    publish("/a", "two")
    drain
    assert_equal 5, reader.connection.received.bytesize
    reader.connection.room = 31
    @engine.writable(reader)
    drain
    reader.connection.room = nil
    @engine.writable(reader)
    publish("/a", "three")
    assert_equal %w[one two three], received(reader)
  end

  test "a reader may stop at any byte and loses or repeats nothing" do
    whole = subscribe(exact("/a") + pattern("/b/:id"))
    publish("/a", "first", id: "urn:1", type: "note", retry_after: 5)
    publish("/b/1", "two\nlines")
    publish("/a", "last")
    drain
    expected = whole.connection.received
    (1...expected.bytesize).each do |cut|
      reader = subscribe(exact("/a") + pattern("/b/:id"), last_event_id: "earliest", room: cut)
      drain
      reader.connection.room = nil
      @engine.writable(reader)
      drain
      assert_equal expected, reader.connection.received, "stopped after #{cut} bytes"
      @engine.unsubscribe(reader)
    end
  end

  test "a blocked reader harms nobody" do
    slow, fast = subscribe(exact("/a"), room: 0), subscribe(exact("/a"))
    50.times { |i| publish("/a", i.to_s) }
    assert_equal 50, received(fast).size
    slow.connection.room = nil
    @engine.writable(slow)
    assert_equal fast.connection.data, received(slow)
  end

  test "a reader that began where there was no event yet is told as others are when the history has passed it" do
    @engine = make_engine(history: 10_000)
    cursor = @engine.cursor(grant(exact("/a")))
    reader = subscribe(exact("/a"), last_event_id: cursor, room: 0)
    ids = 100.times.map { |i| publish("/a", i.to_s * 10) }
    drain
    reader.connection.room = nil
    @engine.writable(reader)
    drain
    gap, *rest = reader.connection.events
    assert_equal ["gap", "overrun", cursor], JSON.parse(gap[2]).values_at("type", "reason", "last_event_id")
    assert_equal ids.last(rest.size), rest.map(&:first)
    assert_operator rest.size, :<, 100
  end

  test "a reader that the history has passed is told in-band and moved on" do
    @engine = make_engine(history: 10_000)
    reader = subscribe(exact("/a"), room: 0)
    ids = 100.times.map { |i| publish("/a", i.to_s * 10) }
    drain
    reader.connection.room = nil
    @engine.writable(reader)
    drain
    gap, *rest = reader.connection.events
    document = JSON.parse(gap[2])
    assert_equal ["mercure", "gap", "overrun"], [gap[1], document["type"], document["reason"]]
    assert_equal [{"match" => "/a", "match_type" => "exact"}], document["matches"]
    assert_equal ids.last(rest.size), rest.map(&:first)
    assert_operator rest.size, :<, 100
    assert_operator rest.size, :>, 0
  end

  test "a reader that asked for all that is retained begins where the history begins when it is served" do
    @engine = make_engine(history: 10_000)
    20.times { |i| publish("/a", i.to_s * 10) }
    everything = subscribe(exact("/a"), last_event_id: "earliest")
    lost = subscribe(exact("/a"), last_event_id: "urn:unknown")
    5.times { |i| publish("/a", "later #{i}") }
    data = received(everything)
    assert_equal "later 4", data.last
    assert_empty everything.connection.events.map { |event| event[1] }.compact, "nothing is missing of what it asked for"
    assert_equal [%w[gap unknown]], lost.connection.events.filter_map { |event| JSON.parse(event[2]).values_at("type", "reason") if event[1] }
    assert_equal data, lost.connection.data.drop(1)
  end

  test "a gap is told behind what is already on its way, however little of that was written" do
    @engine = make_engine(history: 10_000)
    reader = subscribe(exact("/a"), room: 0)
    publish("/a", "first")
    drain
    2.times do |round|
      100.times { |i| publish("/a", i.to_s * 10) }
      reader.connection.room = (round == 0) ? 25 : nil
      @engine.writable(reader)
      drain
    end
    gaps = reader.connection.events.select { |event| event[1] == "mercure" }
    assert_equal %w[overrun overrun], gaps.map { |event| JSON.parse(event[2])["reason"] }
    assert reader.connection.received.start_with?("event: mercure\nid: #{gaps.first.first}\ndata: {")
  end

  test "a reader that the history has passed is closed where the policy says so" do
    @engine = make_engine(history: 10_000, gap_policy: ->(matcher) { (matcher.pattern == "/a") ? :close : :gap })
    closed, moved = subscribe(exact("/a"), room: 0), subscribe(exact("/b"), room: 0)
    publish(["/a", "/b"])
    drain
    100.times { |i| publish(["/a", "/b"], i.to_s * 10) }
    drain
    [closed, moved].each do |reader|
      reader.connection.room = nil
      @engine.writable(reader)
    end
    assert_equal [closed], drain
    assert_empty closed.connection.events
    assert_equal "mercure", moved.connection.events.first[1]
  end

  test "a reader that the history passes in the middle of an event gets the rest of it, and is then told" do
    @engine = make_engine(history: 10_000)
    [7, 30].each do |room|
      reader = subscribe(exact("/a"), room: room)
      publish("/a", "0" * 10)
      drain
      assert_equal room, reader.connection.received.bytesize
      reader.connection.room = nil
      100.times { |i| publish("/a", i.to_s * 10) }
      @engine.writable(reader)
      assert_empty drain
      first, gap, *rest = reader.connection.events
      assert_equal "0" * 10, first.last
      assert_equal "overrun", JSON.parse(gap[2])["reason"]
      assert_equal "99" * 10, rest.last.last
      @engine.unsubscribe(reader)
    end
  end

  test "of an event larger than what is kept for a slow reader the rest is lost, and the stream is closed, not resumed" do
    @engine = make_engine(history: 300_000)
    reader = subscribe(exact("/a"), room: 7)
    publish("/a", "0" * 200_000)
    drain
    10.times { publish("/a", "x" * 200_000) }
    reader.connection.room = nil
    @engine.writable(reader)
    assert_equal [reader], drain
    assert_equal 7, reader.connection.received.bytesize
  end

  test "a reader that missed nothing of its own is not told of a gap, however far the others' history went" do
    @engine = make_engine(history: 10_000)
    reader = subscribe(exact("/quiet"))
    200.times { |i| publish("/loud", i.to_s * 10) }
    publish("/quiet", "hello")
    assert_equal ["hello"], received(reader)
  end

  test "memory does not grow with readers times messages" do
    @engine = make_engine(history: 20_000)
    20.times { subscribe(exact("/a"), room: 0) }
    500.times { |i| publish("/a", i.to_s * 10) }
    drain
    assert_operator @engine.stats[:history_bytes], :<=, 20_000
    assert_operator @engine.stats[:history_updates], :<, 100
  end

  test "a large event arrives whole" do
    reader = subscribe(exact("/a"))
    publish("/a", "small")
    publish("/a", "L" * 200_000)
    publish("/a", "small again")
    drain(max_bytes: 1000)
    assert_equal ["small", "L" * 200_000, "small again"], reader.connection.data
  end

  test "a long history comes in portions, and live updates behind it" do
    sent = 3000.times.map { |i| publish((i % 3 == 0) ? "/a" : "/b", i.to_s) && i }.select { |i| i % 3 == 0 }.map(&:to_s)
    reader = subscribe(exact("/a"), last_event_id: "earliest")
    publish("/a", "live")
    drain(max_bytes: 2000)
    assert_equal sent + ["live"], reader.connection.data
  end

  test "a feed forgets its oldest positions and whoever is behind still gets everything" do
    reader = subscribe(exact("*"), room: 0)
    sent = 2500.times.map { |i| publish("/a", i.to_s) && i.to_s }
    drain
    reader.connection.room = nil
    @engine.writable(reader)
    assert_equal sent, received(reader)
  end
end
