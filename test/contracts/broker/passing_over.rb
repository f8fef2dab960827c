# frozen_string_literal: true

# Receivers that let a lease end (docs/protocol.md, section 8).
module BrokerContract
  tests do
    # A receiver whose lease of 1 s on the only message of "q" has ended; its delivery is the second result.
    def lapsed(identity = "", agent: "", credit: 10)
      reader = client(identity, agent: agent).receives("q", lease: 1000, credit: credit)
      client.sends("q", "a")
      push = reader.pushes.first
      wait(1.1)
      [reader, push]
    end

    test "a message whose lease has ended goes to a receiver that is idle, not to the one that let it end" do
      reader = client.receives("q", lease: 1000)
      client.sends("q", "a")
      assert_equal %w[a], reader.payloads
      others = Array.new(2) { client.receives("q", lease: 1000) }
      wait(1.1)
      assert_empty reader.payloads
      other = others.find { |each| @push = each.pushes.first }
      assert_equal ["a", 1, true], [@push.payload, @push.crashes, @push.poison_candidate?]
      other.frees(@push)
      sender = client
      sender.sends_all("q", %w[b c d e])
      assert_empty reader.payloads
      assert_equal %w[b c d e], others.flat_map(&:payloads).sort
      assert_equal 0, stats[:dead]
    end

    test "a receiver that hangs does not kill a message that nobody else is there for" do
      reader, push = lapsed
      5.times { wait(30) }
      assert_empty reader.pushes
      assert_equal [1, 0, 1], [figures("q")[:ready], stats[:dead], stats[:crashed]]
      late = client.receives("q")
      assert_equal [push.message], late.pushes.map(&:message)
    end

    test "a receiver that is slow gets messages again when it says that it is done" do
      reader, push = lapsed
      assert_refused Code::STALE, reader.frees(push)
      again = reader.pushes.first
      assert_equal ["a", 1], [again.payload, again.crashes]
      assert_equal 1, reader.frees(again).count
      client.sends("q", "b")
      assert_equal %w[b], reader.payloads
    end

    test "what a receiver says of deliveries or credit ends that it is passed over" do
      {
        frees: ->(reader, push) { reader.frees(push) },
        frees_all: ->(reader, push) { reader.frees(0, push.id) },
        rejects: ->(reader, push) { reader.rejects(push) },
        touches: ->(reader, push) { reader.touches(push) },
        holds: ->(reader, push) { reader.holds(push) },
        credits: ->(reader, _) { reader.credits(5) },
        subscribes: ->(reader, _) { reader.receives("q", number: 2) }
      }.each do |name, says|
        begin_engine
        reader, push = lapsed
        assert_empty reader.pushes, name
        says.call(reader, push)
        assert_equal %w[a], reader.payloads, name
      end
    end

    test "what a process says that may live on while its receiver hangs does not" do
      {
        pings: ->(reader) { reader.ask(:ping) },
        answers_a_ping: ->(reader) { reader.say(Wire.receipt(id: 0)) },
        sends: ->(reader) { reader.sends("other", "x") },
        sends_a_batch: ->(reader) { reader.sends_all("other", %w[x]) },
        asks: ->(reader) { reader.queries(EXPLAIN, name: "q") },
        touches_a_range: ->(reader) { reader.touches(0, 2**63) },
        receives_from_another_queue: ->(reader) { reader.receives("other", number: 2) }
      }.each do |name, says|
        begin_engine
        reader, = lapsed
        says.call(reader)
        assert_empty reader.payloads, name
      end
    end

    test "all of a connection's subscriptions to the queue are passed over, and none to another" do
      reader = client.receives("q", number: 1, lease: 1000, credit: 1).receives("q", number: 2, lease: 1000).receives("other", number: 3)
      sender = client
      sender.sends("q", "a")
      assert_equal [1], reader.pushes.map(&:subscription)
      wait(1.1)
      assert_empty reader.pushes
      sender.sends("other", "b")
      other = reader.pushes.first
      assert_equal [3, "b"], [other.subscription, other.payload]
      reader.frees(other)
      assert_empty reader.pushes
      reader.credits(1, number: 2)
      assert_equal %w[a], reader.payloads
    end

    test "a connection that has unsubscribed and subscribed again meanwhile is passed over" do
      reader = client.receives("q", lease: 1000)
      client.sends("q", "a")
      assert_equal %w[a], reader.payloads
      reader.ask(:unsubscribe, subscription: 1)
      reader.receives("q", number: 2)
      wait(1.1)
      assert_empty reader.payloads
      reader.ask(:unsubscribe, subscription: 2)
      reader.receives("q", number: 2)
      assert_equal %w[a], reader.payloads
    end

    test "a connection that comes again is another receiver" do
      reader, = lapsed("ann")
      reader.vanishes
      assert_equal %w[a], client("ann").receives("q").payloads
    end

    test "leases that end together come back once, and what was taken in hand meanwhile is freed as ever" do
      reader = client.receives("q", lease: 1000, credit: 5)
      client.sends_all("q", %w[a b c d e])
      pushes = reader.pushes
      reader.touches(pushes[4], lease: 10_000)
      wait(1.1)
      assert_empty reader.pushes
      assert_equal [4, 1], [figures("q")[:ready], figures("q")[:out]]
      assert_equal 1, reader.frees(pushes[4]).count
      assert_equal %w[a], reader.payloads
    end

    test "a receiver that is passed over is kept free for no suspect, and holds up no message for its size" do
      large = client.receives("q", lease: 1000)
      small = client("", max_frame: 4096).receives("q", credit: 5)
      sender = client
      sender.sends("q", "x" * 5000)
      push = large.pushes.first
      wait(1.1)
      sender.sends_all("q", %w[a b])
      assert_equal %w[a b], small.payloads
      sender.sends("q", "y" * 5000)
      sender.sends("q", "c")
      assert_equal %w[c], small.payloads
      assert_empty large.payloads
      large.frees(push)
      again = large.pushes
      assert_equal ["x" * 5000], again.map(&:payload)
      large.frees(again.first)
      assert_equal ["y" * 5000], large.payloads
    end

    test "explain names the receiver that is passed over, and sessions counts its subscriptions" do
      reader, push = lapsed("ann", agent: "worker/\"1\"")
      number = push.id >> 36
      other = client
      because = "a receiver let a lease end and has said nothing since; it is passed over until it says FREE, NACK, CREDIT or ACK of a PUSH, " \
        "or connects again: session #{number}, identity \"ann\", agent \"worker/\"1\"\""
      assert_equal because, other.queries(EXPLAIN, name: "q")[:because]
      assert_equal because, other.queries(EXPLAIN, number: push.message)[:because]
      newer = other.sends("q", "b").value
      assert_equal because, other.queries(EXPLAIN, number: newer)[:because]
      passed_over = -> { other.queries(SESSIONS)[:sessions].find { |session| session[:session] == number }[:passed_over] }
      assert_equal 1, passed_over.call
      reader.frees(push)
      assert_nil passed_over.call
      refute_match(/passed over/, other.queries(EXPLAIN, number: newer)[:because])
    end

    test "explain names one of several receivers that are passed over, and counts the others" do
      first = nil
      readers = Array.new(3) { client.receives("q", lease: 1000, credit: 1).tap { first ||= @welcome.session } }
      sender = client
      sender.sends_all("q", %w[a b c])
      readers.each { |reader| assert_equal 1, reader.pushes.size }
      wait(1.1)
      assert_match(/: session #{first}, and 2 others\z/, sender.queries(EXPLAIN, name: "q")[:because])
      readers[0].vanishes
      readers[2].ask(:unsubscribe, subscription: 1)
      assert_match(/: session \d+\z/, sender.queries(EXPLAIN, name: "q")[:because])
    end

    test "a delivery that is rejected, released or freed in time passes over nobody" do
      reader = client.receives("q", lease: 1000, credit: 1)
      client.sends_all("q", %w[a b])
      reader.releases(reader.pushes.first)
      wait(0.9)
      reader.rejects(reader.pushes.first)
      wait(0.9)
      reader.frees(reader.pushes.first)
      assert_equal %w[b], reader.payloads
    end
  end
end
