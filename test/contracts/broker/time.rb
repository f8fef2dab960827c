# frozen_string_literal: true

# Delays, times to live, heartbeats, and clocks that are set (docs/protocol.md, sections 3, 4 and 8).
module BrokerContract
  tests do
    test "a message is not delivered before its delay is over" do
      reader = client.receives("q")
      sender = client
      sender.sends("q", "later", delay: 2000)
      sender.sends("q", "sooner", delay: 1000)
      sender.sends("q", "now")
      assert_equal %w[now], reader.payloads
      wait(0.99)
      assert_empty reader.payloads
      wait(0.1)
      assert_equal %w[sooner], reader.payloads
      wait(1)
      assert_equal %w[later], reader.payloads
    end

    test "the engine says when it wants to be ticked, and does not want to be for nothing" do
      assert_nil @engine.next_tick
      client.sends("q", "a", delay: 5000)
      assert_in_delta @now + 5, @engine.next_tick, 0.1
      reader = client.receives("q")
      wait_step_by_step(5.2)
      push = reader.pushes.first
      assert_in_delta @now + 30, @engine.next_tick, 0.5
      reader.frees(push)
      reader.vanishes
      assert_operator @engine.next_tick || Float::INFINITY, :>, @now + 60
    end

    test "a message is dropped when its time to live is over, and counted" do
      sender = client
      sender.sends("q", "short", time_to_live: 1000)
      sender.sends("q", "never due", delay: 5000, time_to_live: 2000)
      sender.sends("q", "long", time_to_live: 60_000)
      wait(1.1)
      assert_equal [2, 1], [stats[:messages], stats[:expired]]
      wait(1)
      assert_equal [1, 2, 2], [stats[:messages], stats[:expired], figures("q")[:expired]]
      assert_equal %w[long], client.receives("q").payloads
    end

    test "a message whose time is over while it is out may be freed; when it comes back it is dropped" do
      reader = client.receives("q")
      client.sends_all("q", %w[a b], time_to_live: 1000)
      pushes = reader.pushes
      wait(2)
      assert_equal 1, reader.frees(pushes[0]).count
      reader.releases(pushes[1])
      assert_empty reader.pushes
      assert_equal [0, 1], [stats[:messages], stats[:expired]]
    end

    test "a dead letter does not expire, nor does it when it is replayed" do
      reader = client.receives("q")
      client.sends("q", "a", time_to_live: 1000)
      reader.buries(reader.pushes.first)
      wait(5)
      assert_equal 1, stats[:dead]
      reader.queries(REPLAY, name: "q")
      push = reader.pushes.first
      reader.releases(push, delay: 1000)
      wait(5)
      assert_equal %w[a], reader.payloads
    end

    test "who proposes a heartbeat gets one between the broker's least and most" do
      begin_engine(heartbeat_least: 2000, heartbeat_most: 10_000)
      assert_equal [2000, 5000, 10_000, 0], [1, 5000, 4_000_000, 0].map { |proposed| connect.ask(:hello, heartbeat: proposed).heartbeat }
    end

    test "the broker says something at least once in a heartbeat" do
      reader = connect
      reader.ask(:hello, heartbeat: 4000)
      5.times do
        wait_step_by_step(4.1)
        refute_empty reader.take { |frame| frame.is_a?(Frames::Ping) }
        reader.say(Wire.ping)
      end
    end

    test "the broker says nothing beside what there is to say" do
      reader = connect
      reader.ask(:hello, heartbeat: 4000)
      20.times do |i|
        wait_step_by_step(1)
        reader.ask(:ping, id: i + 1)
      end
      assert_empty reader.frames
    end

    test "who was not heard for two heartbeats is told so, and what it had comes back" do
      reader = connect
      reader.ask(:hello, heartbeat: 1000)
      reader.receives("q")
      client.sends("q", "a")
      wait_step_by_step(1.9)
      assert_empty reader.errors
      reader.say(Wire.ping)
      wait_step_by_step(1.9)
      assert_empty reader.errors
      wait_step_by_step(1)
      assert_ended reader, Code::IDLE
      assert_equal %w[a], client.receives("q").payloads
    end

    test "without a heartbeat silence is no reason to end" do
      reader = client.receives("q")
      wait(1000)
      assert_empty reader.frames
      client.sends("q", "a")
      assert_equal %w[a], reader.payloads
    end

    test "a clock that is set changes neither delays nor leases" do
      reader = client.receives("q", lease: 10_000)
      sender = client
      sender.sends("q", "out")
      push = reader.pushes.first
      sender.sends("q", "later", delay: 10_000)
      sender.sends("q", "short", delay: 20_000, time_to_live: 15_000)
      wait(5, clock: 1_000_000)
      assert_empty reader.pushes
      wait(1, clock: -2_000_000)
      assert_equal 1, reader.frees(push).count
      wait(4.1, clock: 0)
      assert_equal %w[later], reader.payloads
      wait(5, clock: -100)
      assert_equal 1, stats[:expired]
    end

    test "many things whose time comes at once are done slice by slice" do
      reader = client.receives("q", credit: 10_000)
      client.sends_all("q", Array.new(3000, "x"), delay: 1000)
      wait_step_by_step(3)
      assert_equal 3000, reader.payloads.size
    end

    test "a queue that was empty and unsubscribed for an hour is forgotten" do
      reader = client.receives("q").receives("used", number: 2)
      client.sends("q", "a")
      reader.frees(reader.pushes.first)
      reader.ask(:unsubscribe, subscription: 1)
      client.sends("kept", "a")
      wait(3500)
      assert_equal 3, stats[:queues]
      wait(200)
      assert_equal %w[kept used], @engine.queues(wall: @wall).map { |queue| queue[:name] }.sort
      assert_taken client.sends("q", "again")
    end

    test "a queue that is used again is not forgotten" do
      client("").receives("q").vanishes
      wait(3000)
      reader = client.receives("q")
      wait(1000)
      client.sends("q", "a")
      assert_equal %w[a], reader.payloads
    end
  end
end
