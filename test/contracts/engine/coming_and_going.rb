# frozen_string_literal: true

require "hikyaku/config"
require "hikyaku/web"

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

  test "what takes long to match is announced later and in order, and of who has gone by then nothing (draft-08, Subscription Events)" do
    @engine = make_engine(documents: Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path))
    watcher = subscribe(exact("*"), reads: ["*"])
    subscribe(pattern(*Array.new(40) { |i| "/*#{i}*a*%*%*%*%*%*%*%*b" }))
    drain
    before = @engine.stats[:publishes]
    late, gone, stays = [exact("/#{"%" * 4000}"), exact("/a"), pattern("/*c*d*e*b")].map { |matchers| subscribe(matchers) }
    @engine.unsubscribe(gone, now: @now)
    assert_equal before, @engine.stats[:publishes]
    assert @engine.ready?
    drain
    @engine.unsubscribe(late, now: @now)
    @engine.unsubscribe(stays, now: @now)
    events = received(watcher).map { |data| JSON.parse(data).values_at("subscriber", "active") }
    assert_equal [[late.id, true], [stays.id, true], [late.id, false], [stays.id, false]], events.last(4)
    assert_equal before + 4, @engine.stats[:publishes]
    refute @engine.ready?
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

  # All cost the same.
  def costly(count, from: 0, below: "/") = pattern(*Array.new(count) { |i| "#{below}*#{("a".."z").to_a[from + i]}a*a*a*b" })

  test "the patterns of one address may cost so much, each charged to who brought it first and as long as anybody uses it (draft-08, Resource Limits)" do
    costs = costly(3).map(&:cost)
    @engine = make_engine(max_pattern_cost_per_address: costs.sum)
    mine = subscribe(costly(2), address: "192.0.2.1")
    subscribe(costly(2), address: "192.0.2.1")
    other = subscribe(costly(1), address: "192.0.2.2")
    subscribe(costly(1, from: 2), address: "192.0.2.1")
    error = assert_raises(Hikyaku::PatternsTooCostly) { subscribe(exact("/a") + costly(1, from: 3), address: "192.0.2.1") }
    assert_match(/your address/, error.message)
    assert_equal [4, 6, 3, costs.sum, 1], @engine.stats.values_at(:subscribers, :subscriptions, :feeds, :pattern_cost, :refused_cost)
    subscribe(pattern("/books/*", "/books/:id", "/books"), address: "192.0.2.1")
    subscribe(costly(4, from: 10), address: nil)
    subscribe(costly(3, from: 20), address: "192.0.2.2")
    @engine.unsubscribe(mine, now: @now)
    assert_raises(Hikyaku::PatternsTooCostly, "somebody else still uses them") { subscribe(costly(1, from: 3), address: "192.0.2.1") }
    assert_equal "192.0.2.2", other.address
  end

  test "patterns with a common beginning may cost so much, and all together (draft-08, Resource Limits)" do
    one = costly(1).first.cost
    @engine = make_engine(max_pattern_cost_per_beginning: 2 * one, max_pattern_cost_total: 4 * one)
    subscribe(costly(2))
    assert_match(/this hub/, assert_raises(Hikyaku::PatternsTooCostly) { subscribe(costly(1, from: 2)) }.message)
    assert_raises(Hikyaku::PatternsTooCostly, "what begins with more is tried with the rest") { subscribe(costly(1, below: "/books/")) }
    elsewhere = subscribe(costly(2, below: "https://example.org/"))
    assert_raises(Hikyaku::PatternsTooCostly) { subscribe(costly(1, below: "https://example.net/")) }
    subscribe(exact("/a") + pattern("/books/*"))
    @engine.unsubscribe(elsewhere, now: @now)
    subscribe(costly(2, below: "https://example.net/"))
    assert_equal 4 * one, @engine.stats[:pattern_cost]
  end

  test "patterns with a common beginning may cost so much, in whatever order they come" do
    one = costly(1).first.cost
    @engine = make_engine(max_pattern_cost_per_beginning: 2 * one)
    long = subscribe(costly(2, below: "/books/new/"))
    assert_raises(Hikyaku::PatternsTooCostly) { subscribe(costly(1, below: "/books/")) }
    subscribe(costly(2, below: "/books/old/"))
    subscribe(costly(2, below: "/cars/"))
    assert_raises(Hikyaku::PatternsTooCostly) { subscribe(costly(1)) }
    @engine.unsubscribe(long, now: @now)
    assert_raises(Hikyaku::PatternsTooCostly) { subscribe(costly(1, below: "/books/")) }
    subscribe(costly(1, below: "/books/new/"))
    assert_equal 5 * one, @engine.stats[:pattern_cost]
  end

  test "a pattern that nobody uses any more makes room for others with its beginning" do
    @engine = make_engine(max_pattern_cost_per_beginning: 2 * costly(1).first.cost)
    5.times do |i|
      reader = subscribe(costly(2, from: 2 * i))
      @engine.unsubscribe(reader, now: @now)
    end
    assert_equal 0, @engine.stats[:pattern_cost]
  end

  test "as many readers as an address has by default may have a pattern of their own, also without a fixed beginning" do
    config = Hikyaku::Config.new(anonymous: true, engine: @engine.is_a?(Hikyaku::Hub::RubyEngine) ? "ruby" : "c")
    limits = {max_pattern_cost_per_address: config.max_pattern_cost_per_address, max_pattern_cost_total: config.max_pattern_cost_total}
    @engine = make_engine(max_pattern_cost_per_beginning: Hikyaku::Web.cost_per_beginning(config), **limits)
    readers = Array.new(config.max_connections_per_address) { |i| subscribe(pattern("/:kind/#{i}/:book"), address: "192.0.2.1") }
    publish("/books/7/8", "mine")
    assert_equal ["mine"], received(readers[7])
    assert_empty received(readers[8])
  end

  test "1,000 readers at many addresses may have a pattern or template of their own by default" do
    config = Hikyaku::Config.new(anonymous: true, engine: @engine.is_a?(Hikyaku::Hub::RubyEngine) ? "ruby" : "c")
    limits = {max_pattern_cost_per_address: config.max_pattern_cost_per_address, max_pattern_cost_total: config.max_pattern_cost_total}
    {"/users/{id}/%s" => "/users/7/%s", "/{kind}/{id}/%s" => "/books/7/%s", "/u/{id}/books/{book}/%s" => "/u/7/books/8/%s", "/u/{id}/%s.js" => "/u/7/%s.js",
     "/a/*/%s" => "/a/b/c/%s", "/u/:id/%s.js" => "/u/7/%s.js"}.each do |shape, topic|
      @engine = make_engine(max_pattern_cost_per_beginning: Hikyaku::Web.cost_per_beginning(config), **limits)
      readers = Array.new(1_000) do |i|
        text = format(shape, i.to_s(36))
        subscribe(text.include?("{") ? [template(text)] : pattern(text), address: "192.0.2.#{i % 50}")
      end
      100.times { |i| subscribe(readers.first.grant.matchers, address: "192.0.2.#{i}") }
      publish(format(topic, "rr"), "mine")
      assert_equal ["mine"], received(readers["rr".to_i(36)]), shape
      assert_empty received(readers[8]), shape
    end
  end

  test "whoever is refused for what its patterns cost leaves nothing behind, and its place is free" do
    one = costly(1).first.cost
    @engine = make_engine(max_pattern_cost_total: 2 * one, max_connections: 1, max_connections_per_address: 1)
    3.times { assert_raises(Hikyaku::PatternsTooCostly) { subscribe(exact("/a") + costly(3), address: "192.0.2.1") } }
    assert_equal [0, 0, 0, 0, 3], @engine.stats.values_at(:subscribers, :subscriptions, :feeds, :pattern_cost, :refused_cost)
    subscribe(costly(2), address: "192.0.2.1")
  end

  test "a topic that costs much to match is delivered in order to whom it concerns, whoever comes meanwhile" do
    readers = costly(25).each_slice(5).map { |matchers| subscribe(matchers) }
    everything = subscribe(exact("*"))
    topics = Array.new(3) { |i| "/#{"xa" * 1_900}b#{i}" } + ["/#{"a" * 4_000}b"]
    topics.each_with_index { |topic, i| publish(topic, i.to_s) && publish("/short", "-") && publish(topic, "again") }
    late = subscribe(costly(1, from: 1))
    publish(["/#{"axaxaxaxb" * 300}", topics.last], "last")
    expected = Array.new(4) { |i| [i.to_s, "-", "again"] }.flatten + ["last"]
    assert_equal expected, received(everything)
    assert_equal [["last"], [], [], [], ["last"]], readers.map { |reader| received(reader) }, "a run over so many bytes is given up"
    assert_equal ["last"], received(late)
  end

  test "a stream that is changed pays for what is added, and has what it gave up refunded" do
    one = costly(1).first.cost
    @engine = make_engine(max_pattern_cost_per_address: 2 * one)
    reader = subscribe(costly(2), address: "192.0.2.1", changeable: true)
    assert_raises(Hikyaku::PatternsTooCostly) { @engine.change(reader, grant(costly(3)), now: @now) }
    assert_equal 2, @engine.stats[:subscriptions]
    @engine.change(reader, grant(costly(1)), now: @now)
    assert_equal one, @engine.stats[:pattern_cost]
    @engine.change(reader, grant(costly(2)), now: @now)
    publish("/xbaxaxab", "on")
    assert_equal ["on"], received(reader)
    @engine.unsubscribe(reader, now: @now)
    assert_equal [0, 1], @engine.stats.values_at(:pattern_cost, :refused_cost)
  end

  test "patterns whose beginnings are very long, and patterns of many lengths, select what they should" do
    long = "/#{"a" * 300}/#{"b" * 600}/"
    readers = [1, 2, 3, 302, 511, 512, 513, 514, 600, 903].to_h { |size| [size, subscribe(pattern("#{long[0, size]}*"))] }
    other = subscribe(pattern("/#{"a" * 300}/#{"b" * 599}/*"))
    publish("#{long}c", "all")
    assert_equal [["all"]], readers.values.map { |reader| received(reader) }.uniq
    assert_empty received(other)
    readers.each_value { |reader| @engine.unsubscribe(reader, now: @now) }
    publish("/#{"a" * 300}/#{"b" * 599}/c", "other")
    assert_equal ["other"], received(other)
  end

  test "the addresses of one IPv6 /64 are one client's, and IPv4 that is mapped to IPv6 is IPv4" do
    [%w[2001:db8:1:2::1 2001:db8:1:2:ffff:ffff:ffff:ffff 2001:DB8:1:2:0:0:0:7 [2001:db8:1:2::8] 2001:db8:1:2::9%eth0], %w[2001:db8:1:3::1 2001:db8:1:3::2],
      %w[192.0.2.1 ::ffff:192.0.2.1 ::FFFF:c000:201], %w[192.0.2.2 ::ffff:192.0.2.2], %w[::ffff:0:192.0.2.1 ::ffff:0:192.0.2.9], %w[unknown unknown], %w[fe80::1%a fe80::2%b]].each do |same|
      @engine = make_engine(max_connections_per_address: 2)
      same.combination(2) do |pair|
        2.times do
          streams = pair.map { |address| subscribe(exact("/a"), address: address) }
          pair.each { |address| assert_raises(Hikyaku::TooManyConnections, pair.inspect) { subscribe(exact("/a"), address: address) } }
          other = subscribe(exact("/a"), address: "198.51.100.1")
          [*streams, other].each { |stream| @engine.unsubscribe(stream, now: @now) }
        end
      end
    end
    @engine = make_engine(max_connections_per_address: 1)
    %w[2001:db8:1:2::1 2001:db8:1:3::1 2001:db8:1:2::1x 192.0.2.1 192.0.2.2 ::192.0.2.1 64:ff9b::192.0.2.1 1.2.3.4:5 x].each { |address| subscribe(exact("/a"), address: address) }
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

  test "the streams of selected grants are closed, and no others; each grant is asked about once" do
    gone = Array.new(3) { |i| subscribe(exact("/a"), subject: "gone #{i}") }
    stays = subscribe(exact("/a"), subject: "stays")
    asked = []
    select = ->(grant) { (asked << grant.subject) && grant.subject&.start_with?("gone") }
    assert_equal 3, @engine.expel(&select)
    assert_equal asked.uniq, asked
    assert_equal 0, @engine.expel(&select), "they are about to be closed already"
    assert_equal 0, @engine.expel { false }
    assert_equal gone.map(&:id).sort, drain.map(&:id).sort
    assert_equal [:disconnected], gone.map(&:closing).uniq
    publish("/a", "on")
    assert_equal ["on"], received(stays)
    assert_equal 1, @engine.expel { true }
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
