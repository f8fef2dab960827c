# frozen_string_literal: true

# What the engine tells about itself, and what it costs.
EngineContract.tests do
  test "what is told without being kept reaches the exact subscribers and leaves no trace" do
    reader, all = subscribe(exact("/figures")), subscribe(exact("*"))
    drain
    @engine.notify("/figures", "data: 1\n\n")
    drain
    assert_equal "data: 1\n\n", reader.connection.received
    assert_empty all.connection.received
    assert_equal 0, @engine.stats[:history_updates]
    publish("/figures", "kept")
    assert_equal %w[1 kept], received(reader)
  end

  test "a publish looks only at the subscribers that it concerns" do
    looked_at = 0
    matchers = 200.times.map { |i| exact("/topic/#{i}") }
    matchers.each { |matcher| subscribe(matcher) }
    drain
    publish("/topic/7", "one")
    while (subscriber = @engine.next_ready)
      looked_at += 1
      bytes = @engine.take(subscriber, 1000)
      @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
    end
    assert_equal 1, looked_at
  end

  test "how far the slowest are behind is counted by what is for them" do
    fast, slow = subscribe(exact("/a")), subscribe(exact("/a"), room: 0)
    7.times { publish("/a") }
    5.times { publish("/b") }
    drain
    assert_equal [7, 7], @engine.lag
    slow.connection.room = nil
    @engine.writable(slow)
    drain
    assert_equal [0, 0], @engine.lag
    refute_nil fast
  end

  test "the figures count what was published, received, passed by and refused" do
    @engine = make_engine(history: 10_000, max_connections: 3, gap_policy: ->(matcher) { (matcher.pattern == "/b") ? :close : :gap })
    reader, slow, closed = subscribe(exact("/a")), subscribe(exact("/a"), room: 0), subscribe(exact("/b"), room: 0)
    assert_raises(Hikyaku::TooManyConnections) { subscribe(exact("/a")) }
    publish(["/a", "/b"])
    drain
    [slow, closed].each { |one| one.connection.room = nil }
    100.times { |i| publish(["/a", "/b"], i.to_s * 10) && drain }
    [slow, closed].each { |one| @engine.writable(one) }
    assert_equal [closed], drain
    received = [reader, slow].sum { |one| one.connection.received.bytesize }
    retained = slow.connection.events.size - 1
    assert_equal({publishes: 101, deliveries: 101 + retained, delivered_bytes: received, gaps: 1, overruns: 1, refused_total: 1,
      refused_address: 0, subscribers: 2, subscriptions: 2, feeds: 1, history_updates: retained},
      @engine.stats.slice(:publishes, :deliveries, :delivered_bytes, :gaps, :overruns, :refused_total, :refused_address,
        :subscribers, :subscriptions, :feeds, :history_updates))
  end
end
