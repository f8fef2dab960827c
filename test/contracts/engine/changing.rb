# frozen_string_literal: true

# Streams that are changed while they last.
EngineContract.tests do
  def change(reader, matchers, reads: [], subject: nil, now: @now, **options)
    @engine.change(reader, grant(matchers, reads: reads, subject: subject), now: now, **options)
  end

  def gaps(reader) = reader.connection.events.filter_map { |_, type, data| JSON.parse(data) if type == "mercure" }

  def unblock(reader, room: nil)
    reader.connection.room = room
    @engine.writable(reader)
  end

  test "a matcher that is added begins with what is published from then on, and those that stay go on" do
    reader = subscribe(exact("/a"))
    publish(%w[/b], "before")
    publish("/a", "1")
    newest = publish("/c", "other")
    assert_equal newest, change(reader, exact("/a", "/b"))
    publish("/b", "2")
    publish(%w[/a /b], "3")
    assert_equal %w[1 2 3], received(reader)
  end

  test "a matcher that is removed ends at once, and what it has selected does not come" do
    reader = subscribe(exact("/a", "/b"))
    publish("/b", "for nobody")
    publish("/a", "1")
    assert change(reader, exact("/a"))
    publish("/b", "for nobody")
    publish("/a", "2")
    assert_equal %w[1 2], received(reader)
    assert_equal ["/a"], listed.map { |subscription| subscription.matcher.pattern }
    assert_equal [1, 1], @engine.stats.values_at(:subscriptions, :feeds)
    refute @engine.watched?("/b")
  end

  test "a matcher that is added is caught up from an event on, and what the others were sent does not come again" do
    publish("/b", "0")
    seen = publish("/b", "seen")
    reader = subscribe(exact("/a"))
    publish("/a", "1")
    publish("/b", "2")
    publish(%w[/a /b], "3")
    publish("/b", "4")
    assert_equal %w[1 3], received(reader)
    newest = publish("/a", "5")
    assert_equal newest, change(reader, exact("/a", "/b"), last_event_id: seen)
    publish("/b", "6")
    assert_equal %w[1 3 2 4 5 6], received(reader)
  end

  test "what was published before the stream began is caught up too, whoever selects it" do
    seen = publish("/x", "seen")
    publish(%w[/a /b], "of both")
    publish("/a", "not asked for")
    reader = subscribe(exact("/a"))
    publish("/a", "1")
    assert_equal %w[1], received(reader)
    change(reader, exact("/a", "/b"), last_event_id: seen)
    assert_equal ["1", "of both"], received(reader)
  end

  test "an event that is newer than where a slow stream stands begins a matcher there, not before" do
    reader = subscribe(exact("/a"), room: 0)
    publish("/a", "1")
    publish("/b", "shown already")
    seen = publish("/b", "seen")
    publish("/b", "2")
    drain
    change(reader, exact("/a", "/b"), last_event_id: seen)
    publish("/a", "3")
    unblock(reader)
    assert_equal %w[1 2 3], received(reader)
  end

  test "without an event a matcher that is added to a slow stream begins from then on, too" do
    reader = subscribe(exact("/a"), room: 0)
    publish("/a", "1")
    publish("/b", "before")
    drain
    change(reader, exact("/b", "/a"))
    publish("/b", "2")
    unblock(reader)
    assert_equal %w[1 2], received(reader)
  end

  test "the same matchers again change nothing of what comes, and announce nothing" do
    @engine = make_engine(documents: Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path))
    reader = subscribe(exact("/a", "/b"), room: 7)
    publish("/a", "1")
    drain
    newest = publish("/b", "2")
    assert_equal newest, change(reader, exact("/a", "/b"), last_event_id: "earliest")
    assert_equal newest, change(reader, exact("/b", "/a"), last_event_id: "unknown")
    assert_equal newest, @engine.last_event_id
    unblock(reader)
    assert_equal %w[1 2], received(reader)
    assert_empty gaps(reader)
  end

  test "a stream may be changed at any byte, and nothing is lost or repeated" do
    publish("/a", "1", id: "urn:1")
    publish("/b", "two\nlines", id: "urn:2")
    publish(%w[/a /b], "3", type: "note")
    publish("/a", "4")
    whole = subscribe(exact("/a"), last_event_id: "earliest")
    drain
    (0..whole.connection.received.bytesize).each do |cut|
      reader = subscribe(exact("/a"), last_event_id: "earliest", room: cut)
      drain
      assert change(reader, exact("/b", "/a"), last_event_id: "urn:1")
      unblock(reader)
      drain
      assert_equal ["1", "3", "4", "two\nlines"], reader.connection.data.sort, "cut after #{cut} bytes"
      assert_equal %w[1 3 4], reader.connection.data - ["two\nlines"]
      @engine.unsubscribe(reader)
    end
  end

  test "a stream that is changed back and forth in the middle of an event gets its rest first" do
    reader = subscribe(exact("/a"), room: 9)
    seen = publish("/x", "seen")
    publish("/b", "b")
    publish("/c", "c")
    publish("/a", "a")
    drain
    change(reader, exact("/a", "/b"), last_event_id: seen)
    change(reader, exact("/a"))
    change(reader, exact("/c", "/b"), last_event_id: seen)
    publish("/a", "for nobody")
    unblock(reader)
    assert_equal %w[a b c], received(reader)
    assert_equal 1, reader.connection.received.scan("data: a\n").size
  end

  test "the new grant says what may be read, from where the stream is" do
    reader = subscribe(exact("/a"), reads: ["/a"])
    publish("/a", "1", private: true)
    assert_equal %w[1], received(reader)
    change(reader, exact("/a"))
    publish("/a", "not any more", private: true)
    publish("/a", "2")
    assert_equal %w[1 2], received(reader)
    change(reader, exact("/a"), reads: ["/a"])
    publish("/a", "3", private: true)
    assert_equal %w[1 2 3], received(reader)
  end

  test "what is caught up is authorised by the grant of now (draft-08, Authorization on Event Replay)" do
    seen = publish("/x", "seen")
    publish("/b", "secret", private: true)
    publish("/b", "public")
    reader = subscribe(exact("/a"))
    change(reader, exact("/a", "/b"), last_event_id: seen)
    assert_equal %w[public], received(reader)
    other = subscribe(exact("/a"))
    change(other, exact("/a", "/b"), reads: ["/b"], last_event_id: seen)
    assert_equal %w[secret public], received(other)
  end

  test "what the former grant did not admit was not sent, and comes" do
    seen = publish("/x", "seen")
    reader = subscribe(exact("/a"), last_event_id: seen)
    publish(%w[/a /b], "secret", private: true)
    publish(%w[/a /b], "public")
    assert_equal %w[public], received(reader)
    change(reader, exact("/a", "/b"), reads: ["/b"], last_event_id: seen)
    assert_equal %w[public secret], received(reader)
  end

  test "whoever may read more from now on, and then goes back, misses nothing" do
    seen = publish("/x", "seen")
    reader = subscribe(exact("/a"), last_event_id: seen)
    publish(%w[/a /b], "secret", private: true)
    drain
    change(reader, exact("/a"), reads: ["/b"])
    change(reader, exact("/a", "/b"), reads: ["/b"], last_event_id: seen)
    assert_equal %w[secret], received(reader)
  end

  test "a matcher that was removed and is added again is caught up from where it is asked for" do
    reader = subscribe(exact("/a", "/b"))
    seen = publish("/b", "1")
    publish("/b", "2")
    assert_equal %w[1 2], received(reader)
    change(reader, exact("/a"))
    publish("/b", "3")
    change(reader, exact("/a", "/b"), last_event_id: seen)
    assert_equal %w[1 2 2 3], received(reader)
  end

  test "changes one behind the other are caught up all at once, each event coming once" do
    all = %w[/a /b /c /d /e /f /g /h]
    ids = 40.times.map { |i| publish([all[i % 8], all[(i * 3 + 1) % 8]].uniq, i.to_s) }
    reader = subscribe(exact("/x"), room: 0)
    all.each_with_index { |topic, i| assert change(reader, exact("/x", *all.first(i + 1)), last_event_id: ids[36 - 5 * i]) }
    unblock(reader)
    data = received(reader)
    assert_equal data.uniq, data
    expected = all.each_with_index.flat_map { |topic, i| (37 - 5 * i...40).select { |n| [all[n % 8], all[(n * 3 + 1) % 8]].include?(topic) } }
    assert_equal expected.uniq.sort, data.map(&:to_i).sort
  end

  test "only so many may be caught up at once: who wants more is told, and nothing is changed" do
    ids = 12.times.map { |i| publish("/#{i}", i.to_s) }
    reader = subscribe(exact("/x"))
    8.times { |i| assert change(reader, exact("/x", *(0..i).map { |n| "/#{11 - n}" }), last_event_id: ids[10 - i]) }
    error = assert_raises(Hikyaku::TooManyRewinds) { change(reader, exact("/x", "/2"), last_event_id: ids[0]) }
    assert_match(/8 changes/, error.message)
    refute @engine.watched?("/2")
    assert change(reader, exact(*reader.subscriptions.map { |subscription| subscription.matcher.pattern }, "/y")), "nothing to catch up"
    assert_equal %w[4 5 6 7 8 9 10 11], received(reader)
    assert change(reader, exact("/x", "/2"), last_event_id: ids[1])
    assert_equal "2", received(reader).last
  end

  test "a change that is refused because too many are caught up leaves the cost of patterns as it was" do
    ids = 12.times.map { |i| publish("/#{i}", i.to_s) }
    reader = subscribe(exact("/x"))
    8.times { |i| assert change(reader, exact("/x", *(0..i).map { |n| "/#{11 - n}" }), last_event_id: ids[10 - i]) }
    cost = @engine.stats[:pattern_cost]
    assert_raises(Hikyaku::TooManyRewinds) { change(reader, exact("/x") + pattern("/books/*a*b"), last_event_id: ids[0]) }
    assert_equal cost, @engine.stats[:pattern_cost]
  end

  test "an id that is not known is told in-band, with the matchers that may miss something, and everything retained follows" do
    publish("/b", "1")
    reader = subscribe(exact("/a"))
    publish("/a", "2")
    assert_equal %w[2], received(reader)
    assert_equal "earliest", change(reader, exact("/a", "/b"), last_event_id: "urn:never")
    publish("/b", "3")
    drain
    assert_equal [{"type" => "gap", "reason" => "unknown", "last_event_id" => "urn:never", "matches" => [{"match" => "/b", "match_type" => "exact"}]}], gaps(reader)
    assert_equal %w[2 1 3], reader.connection.events.reject { |event| event[1] }.map(&:last)
    assert_equal "earliest", change(reader, exact("/a", "/b", "/c"), last_event_id: "earliest")
    assert_equal 1, gaps(reader).size
  end

  test "while there is no event the answer is the log's cursor, and that is known to a change: no gap is told" do
    cursor = @engine.cursor(grant(exact("/a")))
    reader = subscribe(exact("/a"), last_event_id: cursor)
    assert_equal [cursor] * 3, [cursor, nil, ""].each_with_index.map { |id, i| change(reader, exact("/a", "/b", "/#{i}"), last_event_id: id) }
    assert_equal cursor, change(reader, exact("/a", "/b"), last_event_id: "earliest"), "nothing is added"
    assert_equal "earliest", change(reader, exact("/a", "/b", "/c"), last_event_id: "earliest")
    publish("/b", "1")
    drain
    assert_equal [[], ["1"]], [gaps(reader), reader.connection.data]
    assert change(reader, exact("/b", "/d"), last_event_id: cursor)
    publish("/d", "2")
    assert_equal [%w[1 2], []], [received(reader), gaps(reader)]
  end

  test "the answer tells nothing of private events" do
    reader = subscribe(exact("/a"))
    assert_match(/\A#/, change(reader, exact("/a", "/b")))
    secret = publish("/b", "secret", private: true, id: "urn:secret")
    answer = change(reader, exact("/a"), last_event_id: "")
    refute_equal secret, answer
    publish("/b", "next")
    assert_equal ["next"], received(subscribe(exact("/b"), last_event_id: answer))
  end

  test "what was added and removed is announced, and nothing of what stays (draft-08, Subscription Events)" do
    @engine = make_engine(documents: Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path))
    watcher = subscribe(pattern("/.well-known/mercure/subscriptions/*"), reads: ["*"])
    reader = @engine.subscribe(Hikyaku::Hub::Grant.new(matchers: exact("/a", "/b"), payloads: [{"n" => 1}, {"n" => 2}]), now: @now)
    drain
    id = reader.id
    before = watcher.connection.data.size
    @engine.change(reader, Hikyaku::Hub::Grant.new(matchers: exact("/c", "/b"), payloads: [{"n" => 3}, {"n" => 4}]), now: @now)
    events = received(watcher).drop(before).map { |data| JSON.parse(data).values_at("match", "active", "subscriber", "payload") }
    assert_equal [["/a", false, id, {"n" => 1}], ["/c", true, id, {"n" => 3}]], events
    assert_equal id, reader.id
    assert_equal [["/c", {"n" => 3}], ["/b", {"n" => 4}]], listed(type: "exact", pattern: "/b").first.subscriber.subscriptions.map { |each| [each.matcher.pattern, each.payload] }
    @engine.unsubscribe(reader)
    ended = received(watcher).drop(before + 2).map { |data| JSON.parse(data).values_at("match", "active") }
    assert_equal [["/c", false], ["/b", false]], ended
  end

  test "the end of the new grant counts, not that of the old one" do
    reader, other = subscribe(exact("/a"), expires_in: 5), subscribe(exact("/a"))
    @now += 4
    change(reader, exact("/a"), expires_in: 10)
    change(other, exact("/b"), expires_in: 3)
    @now += 2.9
    @engine.tick(now: @now)
    assert_equal [other], drain
    assert_equal :expired, other.closing
    @now += 7
    @engine.tick(now: @now)
    assert_equal [reader], drain
    assert_equal :expired, reader.closing
    endless = subscribe(exact("/a"), expires_in: 5)
    change(endless, exact("/a"))
    @now += 100
    @engine.tick(now: @now)
    assert_empty drain
    refute endless.closed
  end

  test "the longest lifetime counts from the beginning, whatever was changed" do
    @engine = make_engine(max_lifetime: 100)
    readers = [subscribe(exact("/a")), subscribe(exact("/a"), expires_in: 20)]
    8.times do
      @now += 10
      readers.each { |reader| assert change(reader, exact("/a", "/b"), expires_in: 20) }
      @engine.tick(now: @now)
    end
    assert_empty drain
    readers.each { |reader| change(reader, exact("/a"), expires_in: 1000) }
    @now += 20
    @engine.tick(now: @now)
    assert_equal readers.map(&:id).sort, drain.map(&:id).sort
    assert_equal [:lifetime], readers.map(&:closing).uniq
  end

  test "a stream that has to be closed, or was, is not changed any more" do
    closing, gone = subscribe(exact("/a")), subscribe(exact("/a"))
    @engine.close(closing, :expired)
    @engine.unsubscribe(gone)
    assert_nil change(closing, exact("/b"))
    assert_nil change(gone, exact("/b"))
    refute @engine.watched?("/b")
    assert_equal [closing], drain
  end

  test "the subject of the new grant is the one that is disconnected" do
    reader = subscribe(exact("/a"))
    change(reader, exact("/a"), subject: "alice")
    assert_equal 1, @engine.disconnect("alice")
    assert_nil change(reader, exact("/a"), subject: "alice")
  end

  test "a slow reader that the history has passed is told of what it lost, matcher by matcher" do
    @engine = make_engine(history: 10_000)
    reader = subscribe(exact("/a"), room: 0)
    publish("/a", "lost")
    change(reader, exact("/a", "/b"))
    100.times { |i| publish("/loud", i.to_s * 10) }
    publish("/b", "1")
    drain
    unblock(reader)
    drain
    assert_equal [["overrun", [{"match" => "/a", "match_type" => "exact"}]]], gaps(reader).map { |gap| gap.values_at("reason", "matches") }
    assert_equal "1", reader.connection.data.last
  end

  test "what a reader was sent before it went back is not lost when the history passes it, what was to come is" do
    @engine = make_engine(history: 10_000)
    seen = publish("/x", "seen")
    reader = subscribe(exact("/a"))
    publish("/a", "sent")
    publish("/b", "lost")
    assert_equal ["sent"], received(reader)
    reader.connection.room = 7
    publish("/a", "rest")
    drain
    change(reader, exact("/a", "/b"), last_event_id: seen)
    100.times { |i| publish("/loud", i.to_s * 10) }
    unblock(reader)
    assert_empty drain
    assert_equal [["/b"]], gaps(reader).map { |gap| gap["matches"].map { |match| match["match"] } }
    publish("/a", "end")
    assert_equal %w[sent rest end], received(reader).grep_v(/gap/)
  end

  test "everything that is retained is asked for by a matcher that is added, and the history goes on: nothing is missing of that" do
    @engine = make_engine(history: 10_000)
    20.times { |i| publish("/b", i.to_s * 10) }
    reader = subscribe(exact("/a"), room: 0)
    change(reader, exact("/a", "/b"), last_event_id: "earliest")
    5.times { |i| publish("/b", "later #{i}") }
    unblock(reader)
    assert_equal "later 4", received(reader).last
    assert_empty gaps(reader)
    publish("/a", "1")
    reader.connection.room = 0
    publish("/a", "lost")
    drain
    change(reader, exact("/a", "/c"), last_event_id: "earliest")
    100.times { |i| publish("/c", i.to_s * 10) }
    unblock(reader)
    drain
    assert_equal [["/a"]], gaps(reader).map { |gap| gap["matches"].map { |match| match["match"] } }, "what stays has lost something"
  end

  test "a hundred matchers are exchanged for a hundred others, half of which stay" do
    old, new = [(1..100), (51..150)].map { |numbers| exact(*numbers.map { |number| "/#{number}" }) }
    reader = subscribe(old)
    seen = publish("/x")
    150.times { |i| publish("/#{i + 1}", (i + 1).to_s) }
    assert_equal 100, received(reader).size
    change(reader, new.reverse, last_event_id: seen)
    assert_equal (1..150).map(&:to_s), received(reader)
    assert_equal [100, 100, 1], @engine.stats.values_at(:subscriptions, :feeds, :subscribers)
    150.times { |i| publish("/#{i + 1}", (i + 1).to_s) }
    assert_equal (1..150).to_a + (51..150).to_a, received(reader).map(&:to_i)
    @engine.unsubscribe(reader)
    assert_equal [0, 0], @engine.stats.values_at(:subscriptions, :feeds)
  end

  test "a change in the middle of a fan-out leaves nobody out" do
    readers = 50.times.map { subscribe(exact("/a")) }
    publish(%w[/a /b], "one")
    taken = 0
    while (subscriber = @engine.next_ready)
      next unless (bytes = @engine.take(subscriber, 65_536))
      @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
      next if (taken += 1) > 50
      change(readers[-taken], exact("/b", "/a")) if taken.odd?
      change(readers[taken / 2], exact("/a", "/c"), last_event_id: "earliest")
    end
    assert(readers.all? { |reader| reader.connection.data == ["one"] })
    publish("/a", "two")
    assert(readers.all? { |reader| received(reader) == %w[one two] })
  end

  test "a stream is found by its capability, which nobody can guess, for as long as it lasts" do
    readers = Array.new(20) { subscribe(exact("/a"), changeable: true) }
    capabilities = readers.map { |reader| @engine.capability(reader) }
    assert_equal 20, capabilities.uniq.size
    capabilities.each { |capability| assert_match(/\A[A-Za-z0-9_-]{22,64}\z/, capability) }
    assert_equal capabilities, readers.map { |reader| @engine.capability(reader) }
    capabilities.zip(readers) { |capability, reader| assert_equal reader, @engine.find(capability) }
    refute_includes readers.first.inspect, capabilities.first
    change(readers.first, exact("/b", "/c"))
    assert_equal readers.first, @engine.find(capabilities.first)
    assert_equal capabilities.first, @engine.capability(readers.first)
    @engine.unsubscribe(readers.last)
    assert_nil @engine.find(capabilities.last)
    assert_nil @engine.capability(readers.last)
    assert_nil @engine.capability(subscribe(exact("/a")))
    assert_nil @engine.find(capabilities.last)
  end

  test "what is no capability finds nothing, also one in which a bit is another" do
    reader = subscribe(exact("/a"), changeable: true)
    capability = @engine.capability(reader)
    ["", "x", "x" * 22, capability[0..-2], "#{capability}A", "#{capability}=", capability.swapcase, "\xff" * 22, "#{capability[0..-2]}\0", reader.id].each do |text|
      assert_nil @engine.find(text), text.inspect
    end
    digits = [*"A".."Z", *"a".."z", *"0".."9", "-", "_"]
    capability.each_char.with_index do |digit, place|
      6.times do |bit|
        other = capability.dup.tap { |text| text[place] = digits[digits.index(digit) ^ (1 << bit)] }
        assert_nil @engine.find(other), "bit #{bit} of digit #{place}"
      end
    end
  end

  test "with another key, what was given before lets nobody change anything" do
    capability = @engine.capability(subscribe(exact("/a"), changeable: true))
    @engine.rekey
    assert_nil @engine.find(capability)
  end

  test "a stream that may be changed is told when it has been sent what it missed, and no other is" do
    seen = publish("/a", "seen")
    12.times { |i| publish("/#{%w[a b].sample}", "#{i} #{"." * 50}") }
    [exact("/a"), exact("/a", "/x")].each do |matchers|
      missed = subscribe(exact("/a"), last_event_id: "earliest").then { |reader| received(reader).drop(1) }
      reader = subscribe(matchers, last_event_id: seen, changeable: true)
      silent = subscribe(matchers, last_event_id: seen)
      drain(max_bytes: 100)
      assert_equal missed, reader.connection.data
      assert reader.connection.received.end_with?("\n\n: caught up\n\n")
      refute_includes silent.connection.received, "caught up"
      publish("/a", "live")
      drain
      assert_equal 1, reader.connection.received.scan(": caught up\n\n").size
      assert_equal "live", reader.connection.data.last
      @engine.unsubscribe(reader)
    end
    [nil, ""].each do |cursor|
      reader = subscribe(exact("/a"), last_event_id: cursor, changeable: true)
      drain
      assert_empty reader.connection.received, "it asked for nothing"
    end
    reader = subscribe(exact("/a"), last_event_id: "urn:never", changeable: true)
    drain
    assert_equal ["event: mercure", ": caught up"], reader.connection.received.split("\n").values_at(0, -1)
  end

  test "a stream that was changed is told when what was added is caught up, in whatever pieces it takes it" do
    ids = 10.times.map { |i| publish("/b", "#{i} #{"." * 20}") }
    reader = subscribe(exact("/a"), changeable: true)
    3.times { |i| publish("/a", "a#{i}") }
    change(reader, exact("/a", "/b"))
    drain
    refute_includes reader.connection.received, "caught up"
    change(reader, exact("/a"), last_event_id: ids[3])
    drain
    assert_equal 1, reader.connection.received.scan(": caught up\n\n").size, "there was nothing to catch up"
    reader.connection.room = 0
    change(reader, exact("/a", "/b"), last_event_id: ids[3])
    300.times do
      drain(max_bytes: 60)
      unblock(reader, room: 7)
    end
    text = reader.connection.received
    assert_equal (4..9).to_a, reader.connection.data.drop(3).map(&:to_i)
    assert text.end_with?("\n\n: caught up\n\n")
    assert_equal 2, text.scan(": caught up\n\n").size
    unblock(reader)
    publish("/a", "live")
    assert_equal "live", received(reader).last
  end
end
