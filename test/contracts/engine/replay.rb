# frozen_string_literal: true

# Who comes back, and from where the stream begins.
EngineContract.tests do
  test "a reader that comes back gets what it missed, once, in order (draft-08, Reconnection)" do
    publish("/a", "before")
    seen = publish("/a", "seen")
    publish("/b", "other")
    publish("/a", "missed 1")
    publish("/a", "missed 2")
    reader = subscribe(exact("/a"), last_event_id: seen)
    publish("/a", "live")
    assert_equal seen, reader.last_event_id
    assert_equal ["missed 1", "missed 2", "live"], received(reader)
  end

  test "with another key, ids are others, and those made before are unknown; what is retained is there" do
    ids = [publish("/a", "1"), publish("/a", "2")]
    @engine.rekey
    ids << publish("/a", "3")
    assert_equal 3, ids.uniq.size
    ids.first(2).each { |id| assert_equal "earliest", subscribe(exact("/a"), last_event_id: id).last_event_id }
    reader = subscribe(exact("/a"), last_event_id: ids.last)
    assert_equal ids.last, reader.last_event_id
    publish("/a", "4")
    assert_equal ["4"], received(reader)
    assert_equal %w[1 2 3 4], received(subscribe(exact("/a"), last_event_id: "earliest"))
  end

  test "earliest gives everything that is retained, and only for the matchers" do
    publish("/a", "1")
    publish("/b", "2")
    publish("/a", "3")
    reader = subscribe(exact("/a"), last_event_id: "earliest")
    assert_equal "earliest", reader.last_event_id
    assert_equal %w[1 3], received(reader)
  end

  test "an unknown id is answered with earliest, told in-band, and everything retained follows" do
    publish("/a", "1")
    reader = subscribe(exact("/a"), last_event_id: "urn:never")
    assert_equal "earliest", reader.last_event_id
    drain
    gap, *rest = reader.connection.events
    assert_equal "mercure", gap[1]
    assert_equal({"type" => "gap", "reason" => "unknown", "last_event_id" => "urn:never"}, JSON.parse(gap[2]))
    assert_equal ["1"], rest.map(&:last)
  end

  test "the id of a gap event is a cursor like any other" do
    reader = subscribe(exact("/a"), last_event_id: "urn:never")
    drain
    id = reader.connection.ids.first
    publish("/a", "1")
    again = subscribe(exact("/a"), last_event_id: id)
    assert_equal id, again.last_event_id
    assert_equal ["1"], received(again)
  end

  test "an id of another log is unknown" do
    other = make_engine
    update = Hikyaku::Hub::Update.new(topics: "/a", data: "x")
    foreign = other.publish(update, topics: [@topics["/a"]], now: @now)
    publish("/a")
    assert_equal "earliest", subscribe(exact("/a"), last_event_id: foreign).last_event_id
  end

  test "a reused id stands for its first event; the later one is replayed (draft-08, Reconnection)" do
    publish("/a", "1", id: "same")
    publish("/a", "2")
    publish("/a", "3", id: "same")
    assert_equal %w[2 3], received(subscribe(exact("/a"), last_event_id: "same"))
  end

  test "without a cursor a reader gets only what comes after it" do
    publish("/a", "before")
    reader = subscribe(exact("/a"))
    assert_nil reader.last_event_id
    publish("/a", "after")
    assert_equal ["after"], received(reader)
  end

  test "an empty cursor is answered with where the stream begins, without telling of private events" do
    assert_equal "earliest", subscribe(exact("/a"), last_event_id: "").last_event_id
    id = publish("/a", "public")
    assert_equal id, subscribe(exact("/a"), last_event_id: "").last_event_id
    secret = publish("/a", "secret", private: true, id: "urn:secret")
    answer = subscribe(exact("/a"), last_event_id: "").last_event_id
    refute_equal secret, answer
    publish("/a", "next")
    assert_equal ["next"], received(subscribe(exact("/a"), last_event_id: answer))
  end

  test "the log's cursor is where it is now, known also while there is no event, and tells of no private one" do
    here = -> { @engine.cursor(grant(exact("/a"))) }
    beginning = here.call
    assert_equal [beginning, Encoding::UTF_8, true], [here.call, here.call.encoding, beginning.start_with?("#")]
    assert_equal [beginning, []], subscribe(exact("/a"), last_event_id: beginning).then { |reader| [reader.last_event_id, received(reader)] }
    assert_equal "earliest", @engine.resolve("", grant(exact("/a"))).last
    id = publish("/a", "1")
    assert_equal id, here.call
    assert_equal ["1"], received(subscribe(exact("/a"), last_event_id: beginning))
    publish("/a", "secret", private: true, id: "urn:secret")
    behind = here.call
    refute_includes [beginning, id, "urn:secret"], behind
    assert_equal "urn:secret", @engine.cursor(grant(exact("/a"), reads: ["/a"]))
    publish("/a", "2")
    assert_equal [behind, ["2"]], subscribe(exact("/a"), last_event_id: behind).then { |reader| [reader.last_event_id, received(reader)] }
  end

  test "who comes back with the cursor of an empty log is told a gap when the ring has passed, or the log is another, empty or not" do
    ways = {
      "passed" => -> { 100.times { |i| publish("/a", i.to_s * 10) } },
      "another key" => -> { @engine.rekey },
      "another log" => -> { @engine = make_engine(history: 10_000) },
      "another log, in which is one event" => -> { @engine = make_engine(history: 10_000) and publish("/a", "after the restart") }
    }
    ways.each do |name, happens|
      @engine = make_engine(history: 10_000)
      cursor = @engine.cursor(grant(exact("/a")))
      happens.call
      assert_equal [@engine.resolve("earliest", grant(exact("/a"))).first, "earliest"], @engine.resolve(cursor, grant(exact("/a"))), name
      reader = subscribe(exact("/a"), last_event_id: cursor)
      assert_equal "earliest", reader.last_event_id, name
      drain
      gap, *rest = reader.connection.events
      assert_equal ["mercure", {"type" => "gap", "reason" => "unknown", "last_event_id" => cursor}], [gap[1], JSON.parse(gap[2])], name
      all = received(subscribe(exact("/a"), last_event_id: "earliest"))
      assert_equal all, rest.map(&:last), name
    end
  end

  # Much more than one turn's allowance to match, and less than the records that one turn may look at.
  def matched_long(count = 255) = (count - 1).times { |i| publish("/books/#{i}#{"a" * 400}") } && publish("/books/#{"a" * 400}b", "the last")

  def one_turn = @engine.serve(8, 65_536, now: @now) { |subscriber, bytes| subscriber.connection.accept(bytes) }

  test "who scans the log with costly patterns does so in pieces, and holds up nobody meanwhile (draft-08, Resource Limits)" do
    costly = [pattern("/books/*a*a*a*a*b"), pattern("/books/*a*a*a*b", "/books/([0-9]*a*b)")]
    matched_long
    live = [subscribe(exact("/live")), subscribe(exact("/live", "/other"))]
    scans = costly.map { |matchers| subscribe(matchers, last_event_id: "earliest") }
    formed = (subscribe(costly[0], last_event_id: "earliest", format: :message_pack) if @engine.offers?(:message_pack, :identity))
    assert one_turn
    publish("/live", "now")
    assert one_turn
    assert_equal [["now"], ["now"]], live.map { |reader| reader.connection.data }
    assert_equal [[], []], scans.map { |reader| reader.connection.data }
    assert_equal [["the last"], ["the last"]], scans.map { |reader| received(reader) }
    assert_includes formed.connection.received, "the last" if formed
    refute_predicate @engine, :ready?
  end

  test "those who scan take turns, and one that leaves, is blocked or is to be closed stops nobody" do
    matched_long
    scans = Array.new(6) { |i| subscribe(pattern("/books/*a*a*a*#{i}*a*", "/books/*b"), last_event_id: "earliest") }
    one_turn
    @engine.unsubscribe(scans[0], now: @now)
    @engine.disconnect("nobody")
    @engine.close(scans[1], :shutdown)
    scans[2].connection.room = 0
    assert_equal [scans[1]], drain
    assert_equal [["the last"]] * 3, scans.last(3).map { |reader| reader.connection.data }
    assert_empty scans[2].connection.data
    scans[2].connection.room = nil
    @engine.writable(scans[2])
    assert_equal ["the last"], received(scans[2])
  end

  test "replay is authorised by the grant of now (draft-08, Authorization on Event Replay)" do
    publish("/a", "secret", private: true)
    publish("/a", "public")
    assert_equal ["public"], received(subscribe(exact("/a"), last_event_id: "earliest"))
    assert_equal %w[secret public], received(subscribe(exact("/a"), last_event_id: "earliest", reads: ["/a"]))
  end
end
