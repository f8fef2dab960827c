# frozen_string_literal: true

# Subscribers that come, leave and are sent away, and who hears of it.
EngineContract.tests do
  test "who has left receives nothing" do
    reader = subscribe(exact("/a"))
    assert @engine.unsubscribe(reader)
    refute @engine.unsubscribe(reader)
    publish("/a")
    assert_empty received(reader)
    assert_equal 0, @engine.stats[:subscribers]
    assert_equal 0, @engine.stats[:feeds]
  end

  test "leaving in the middle of a fan-out leaves nobody out" do
    readers = 50.times.map { subscribe(exact("/a")) }
    publish("/a", "one")
    taken = 0
    while (subscriber = @engine.next_ready)
      next unless (bytes = @engine.take(subscriber, 65_536))
      @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
      taken += 1
      @engine.unsubscribe(readers[taken / 3]) if (taken % 3).zero?
    end
    remaining = readers.reject(&:closed)
    assert_operator remaining.size, :>, 20
    assert(remaining.all? { |reader| reader.connection.data == ["one"] })
  end

  test "who subscribes during a fan-out gets only what is published afterwards" do
    10.times { subscribe(exact("/a")) }
    publish("/a", "one")
    @engine.next_ready.tap { |subscriber| @engine.take(subscriber, 100).then { |bytes| @engine.wrote(subscriber, bytes.bytesize, now: @now) } }
    late = subscribe(exact("/a"))
    publish("/a", "two")
    assert_equal ["two"], received(late)
  end

  test "subscriptions are listed while they last" do
    reader = subscribe(exact("/a", "/b"))
    subscribe(pattern("/:x"))
    assert_equal 3, listed.size
    assert_equal [reader.id], listed(type: "exact", pattern: "/a").map { |subscription| subscription.subscriber.id }
    @engine.unsubscribe(reader)
    assert_equal ["/:x"], listed.map { |subscription| subscription.matcher.pattern }
  end

  test "subscriptions are announced to those who may read about them, the subscriber's own included (draft-08, Subscription Events)" do
    @engine = make_engine(documents: Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path))
    everything = pattern("/.well-known/mercure/subscriptions/*")
    watcher = @engine.subscribe(Hikyaku::Hub::Grant.new(matchers: everything, reads: exact("*")), now: @now)
    watcher.connection = EngineContract::Reader.new
    @engine.writable(watcher)
    stranger = subscribe(everything)
    reader = subscribe(exact("/a b"))
    @engine.unsubscribe(reader, now: @now)
    events = received(watcher).map { |data| JSON.parse(data) }
    assert_equal [watcher.id, stranger.id, reader.id, reader.id], events.map { |event| event["subscriber"] }
    assert_equal [true, true, true, false], events.map { |event| event["active"] }
    collection = "/.well-known/mercure/subscriptions/exact/%2Fa%20b"
    assert_equal({"id" => "#{collection}/#{reader.id.gsub(":", "%3A")}", "type" => "subscription", "match" => "/a b",
      "match_type" => "exact", "subscriber" => reader.id, "active" => true}, events[2])
    assert_equal ["mercure"], watcher.connection.events.map { |event| event[1] }.uniq
    assert_empty received(stranger)
  end

  test "subscriptions to odd matchers and of 0.x clients are announced under the address that the API has for them" do
    documents = Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path)
    @engine = make_engine(documents: documents)
    reader = subscribe(exact("*"), reads: ["*"])
    odd = [".", "..", "*", "é\"\\", "/a?b#c", "%2e"]
    matchers = odd.flat_map { |text| exact(text) } + [template("/{x}")]
    payloads = matchers.map { |matcher| {"of" => matcher.pattern} }
    other = @engine.subscribe(Hikyaku::Hub::Grant.new(matchers: matchers, payloads: payloads), now: @now)
    drain
    expected = other.subscriptions.map { |subscription| JSON.parse(JSON.generate(documents.document(subscription))) }
    assert_equal expected, reader.connection.data.drop(1).map { |data| JSON.parse(data) }
    assert_nil reader.connection.events.last[1], "0.x clients listen for messages"
    scans = expected.map { |document| subscribe(exact(document["id"]), reads: [document["id"]], last_event_id: "earliest") }
    assert_equal expected.map { |document| document["id"] }, scans.flat_map { |scan| received(scan).map { |data| JSON.parse(data)["id"] } }.uniq
  end

  test "so many are admitted in total and of one address, and another when one has left (draft-08, Subscription)" do
    @engine = make_engine(max_connections: 3, max_connections_per_address: 2)
    first = subscribe(exact("/a"), address: "192.0.2.1")
    subscribe(exact("/a"), address: "192.0.2.1")
    error = assert_raises(Hikyaku::TooManyConnections) { subscribe(exact("/a"), address: "192.0.2.1") }
    assert_match(/your address holds 2/, error.message)
    subscribe(exact("/a"))
    error = assert_raises(Hikyaku::TooManyConnections) { subscribe(exact("/a"), address: "192.0.2.2") }
    assert_match(/the hub holds 3/, error.message)
    @engine.unsubscribe(first, now: @now)
    subscribe(exact("/a"), address: "192.0.2.1")
    assert_equal 3, @engine.subscriber_count
  end

  test "all streams of a subject are closed, and no others" do
    mine = Array.new(2) { subscribe(exact("/a"), subject: "alice") }
    other = subscribe(exact("/a"), subject: "bob")
    nobody = subscribe(exact("/a"))
    assert_equal 2, @engine.disconnect("alice")
    assert_equal 0, @engine.disconnect("alice"), "they are about to be closed already"
    assert_equal mine.map(&:id).sort, drain.map(&:id).sort
    assert_equal [:disconnected], mine.map(&:closing).uniq
    publish("/a", "on")
    assert_equal [["on"]] * 2, [received(other), received(nobody)]
  end

  test "a hub that ends closes everybody and announces nothing more" do
    @engine = make_engine(documents: Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path))
    readers = Array.new(2) { subscribe(exact("*"), reads: ["*"]) }
    drain
    before = @engine.last_event_id
    @engine.shutdown
    assert_equal readers.map(&:id).sort, drain.map(&:id).sort
    assert_equal [:shutdown], readers.map(&:closing).uniq
    assert_equal before, @engine.last_event_id
  end

  test "random publishing, reading, blocking and leaving: everyone gets exactly its own, in order" do
    random = Random.new(20_261_121)
    @engine = make_engine(history: 100_000_000)
    topics = %w[/a /b /c /d/1 /d/2]
    readers = []
    log = []
    400.times do
      case random.rand(10)
      when 0..4
        chosen = topics.sample(1 + random.rand(2), random: random)
        secret = random.rand(4).zero?
        publish(chosen, log.size.to_s, private: secret)
        log << [chosen, secret]
      when 5
        wanted = topics.sample(1 + random.rand(2), random: random)
        reads = random.rand(2).zero? ? [topics.sample(random: random)] : nil
        reader = subscribe(exact(*wanted), room: random.rand(60), reads: reads)
        readers << [reader, wanted, reads || [], log.size]
      when 6..7
        reader, = readers.sample(random: random)
        next unless reader
        reader.connection.room = random.rand(200)
        @engine.writable(reader) if reader.blocked
      else drain(max_bytes: 1 + random.rand(300))
      end
    end
    readers.each { |reader, *| (reader.connection.room = nil) || @engine.writable(reader) }
    drain
    readers.each do |reader, wanted, reads, from|
      expected = log.each_with_index.drop(from).filter_map do |(chosen, secret), i|
        i.to_s if (chosen & wanted).any? && (!secret || (chosen & reads).any?)
      end
      assert_equal expected, reader.connection.data, "wanted #{wanted}, reads #{reads}, from #{from}, log #{log.first(4)}"
    end
  end
end
