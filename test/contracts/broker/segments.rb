# frozen_string_literal: true

# Segments of the journal come and go, and no message holds one for ever (docs/journal.md).
module BrokerContract
  tests do
    # Messages that are done with at once; and, now and then, one that stays in each segment.
    def send_and_free(sender, reader, count, bytes: 2000, leaving: nil)
      count.times do |i|
        sender.say(Wire.send_message(to: leaving, payload: "left #{i}", level: 1)) if leaving && i % 20 == 0
        sender.say(Wire.send_message(to: "q", payload: "x" * bytes, level: 1))
        settle
        reader.pushes.each { |push| reader.say(Wire.free(first: push.id)) }
        settle
        @engine.tick(now: @now, wall: @wall)
      end
    end

    def segments_on_disk = Dir.children(@folder).grep(/\Ajournal-/).sort

    test "segments of which nothing is needed are dropped" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      send_and_free(client, client.receives("q"), 200)
      assert_operator segments_on_disk.size, :<=, 4
      refute_includes segments_on_disk, "journal-00000000000000000001.seg"
      crash
      assert_equal 0, stats[:messages]
    end

    test "a broker that is killed again and again, with nothing to do between, finds what it had" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      client.sends("q", "kept", level: 1)
      8.times do
        crash
        settle
        @engine.tick(now: @now, wall: @wall)
        settle
      end
      assert_equal ["kept"], client.receives("q").payloads
    end

    test "whoever drives it is told when a straggler is to be copied, though time brings nothing else" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      reader = client.receives("q")
      sender = client
      400.times do |i|
        sender.say(Wire.send_message(to: "old", payload: "straggler #{i}", level: 1)) if i % 20 == 0
        sender.say(Wire.send_message(to: "q", payload: "x" * 2000, level: 1))
        settle
        reader.pushes.each { |push| reader.say(Wire.free(first: push.id)) }
        settle
        @engine.tick(now: @now, wall: @wall) if (at = @engine.next_tick) && at <= @now
      end
      assert_operator stats[:copied], :>=, 1
      assert_operator segments_on_disk.size, :<=, 6
    end

    test "a straggler is copied where it is not in the way, and stays what it was" do
      begin_engine(storage: true, segment_bytes: SEGMENT, max_failures: 1)
      sender = client("web")
      ids = Array.new(4) { |i| sender.sends("old", "straggler #{i}", priority: i, level: 1, sequence: i + 1).value }
      delayed = sender.sends("late", "delayed", level: 1, delay: 3_600_000).value
      reader = client.receives("old", credit: 1)
      dead = reader.pushes.first
      reader.buries(dead, reason: "words")
      reader.credits(0)
      reader.releases(reader.pushes.first)
      reader.vanishes
      send_and_free(client, client.receives("q"), 400, leaving: "left")
      assert_operator stats[:copied], :>=, 5
      assert_operator segments_on_disk.size, :<=, 6
      2.times do
        crash
        assert_equal 25, stats[:messages]
        letter = client.queries(DEAD, name: "old")[:dead].first
        assert_equal [dead.message, 3, "words"], letter.values_at(:id, :reason, :words)
        assert_equal "delayed", client.queries(EXPLAIN, number: delayed)[:message][:state]
      end
      reader = client.receives("old", credit: 9)
      pushes = reader.pushes
      assert_equal [[ids[2], "straggler 2", 2], [ids[1], "straggler 1", 1], [ids[0], "straggler 0", 1]], pushes.map { |push| [push.message, push.payload, push.attempt] }
      assert sender = client("web")
      assert sender.sends("old", "straggler 0", sequence: 1).duplicate?
      pushes.each { |push| reader.frees(push) }
      crash
      assert_equal [22, 1, 1], stats.values_at(:messages, :dead, :delayed)
    end

    {"back" => -1, "forward" => 1}.each do |where, sign|
      test "what was copied after the clock was set #{where} lives and waits as long as it was to" do
        begin_engine(storage: true, segment_bytes: SEGMENT)
        sender = client
        reader = client.receives("returned")
        sender.sends_all("returned", ["rejected", "rejected later"], level: 1)
        first, second = reader.pushes
        reader.rejects(first, delay: 3_600_000)
        sender.sends("brief", "alive", level: 1, time_to_live: 3_600_000)
        sender.sends("late", "delayed", level: 1, delay: 3_600_000)
        wait(1, clock: sign * 1_000_000_000)
        # Nobody would know of a copy how long it was, were it from when the clock was years ahead.
        (sign < 0) ? reader.rejects(second, delay: 3_600_000) : reader.frees(second)
        reader.vanishes
        send_and_free(client, client.receives("q"), 200, leaving: "left")
        assert_operator stats[:copied], :>=, (sign < 0) ? 4 : 3
        @wall -= 1_000_000_000_000 if sign > 0
        crash
        wait(3500)
        assert_equal [(sign < 0) ? 3 : 2, 0], stats.values_at(:delayed, :expired)
        wait(101)
        assert_equal [0, 1], stats.values_at(:delayed, :expired)
      end
    end

    test "what was copied while the clock was years behind waits as long as it was to when the clock is right again" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      client.sends("late", "delayed", level: 1, delay: 3_600_000)
      @wall -= 1_000_000_000_000
      crash
      send_and_free(client, client.receives("q"), 200, leaving: "left")
      assert_operator stats[:copied], :>=, 1
      @wall += 1_000_000_000_000
      crash
      wait(3500)
      assert_equal 1, stats[:delayed]
      wait(101)
      assert_equal 0, stats[:delayed]
    end

    test "what is freed after it was copied does not come back" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      sender.sends_all("old", Array.new(20) { |i| "straggler #{i}" }, level: 1)
      send_and_free(client, client.receives("q"), 200, leaving: "old")
      assert_operator stats[:copied], :>=, 20
      old = client.receives("old")
      old.pushes.each { |push| old.say(Wire.free(first: push.id)) }
      3.times do
        crash
        assert_equal 0, stats[:messages]
        send_and_free(client, client.receives("q"), 60)
      end
      assert_operator segments_on_disk.size, :<=, 5
    end

    test "a message that is out is copied, too, and freed afterwards" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      client.sends("old", "straggler", level: 1)
      slow = client.receives("old", lease: 3_600_000)
      push = slow.pushes.first
      send_and_free(client, client.receives("q"), 300, leaving: "left")
      assert_operator stats[:copied], :>=, 1
      ack = slow.frees(push, id: 900)
      settle
      assert_equal 1, (ack || slow.answer(900)).count
      crash
      assert_equal [15, 0], [stats[:messages], client.receives("old").pushes.size]
    end

    test "while all is needed nothing is copied" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      150.times do
        sender.say(Wire.send_message(to: "q", payload: "x" * 2000, level: 1))
        settle
        @engine.tick(now: @now, wall: @wall)
      end
      assert_equal 0, stats[:copied]
      assert_operator segments_on_disk.size, :>=, 5
    end

    test "what is acknowledged as written is, also while a segment ends and the next has no name yet" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      payloads = {}
      acknowledged = []
      60.times do |i|
        payloads[i + 100] = "#{i} ".ljust(2000, ".")
        sender.say(Wire.send_message(to: "q", payload: payloads[i + 100], level: 1, id: i + 100))
        acknowledged.concat(sender.take { |frame| frame.is_a?(Frames::Ack) && frame.request == 2 }.flat_map { |ack| (ack.id..ack.last).to_a })
      end
      crash
      there = client.receives("q", credit: 1000).payloads
      assert_operator acknowledged.size, :>=, 25
      assert_empty payloads.values_at(*acknowledged) - there
    end

    test "a record of what became of a message outlives the record that it was sent" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      sender.sends("keep", "k", level: 1)
      keeper = client.receives("keep")
      push = keeper.pushes.first
      reader = client.receives("q")
      send_and_free(sender, reader, 40)
      keeper.say(Wire.credit(subscription: 1, credit: 0), Wire.nack(delivery: push.id, kind: 1))
      settle
      send_and_free(sender, reader, 300)
      crash
      assert_equal [[1, 2]], client.receives("keep").pushes.map { |each| [each.failures, each.attempt] }
    end

    test "a record that a message is done with outlives the record that it was sent" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      keeper = sender.sends("keep", "k" * 30_000, level: 1).value
      sender.sends("q", "freed later", level: 1)
      reader = client.receives("q")
      freed = reader.pushes.first
      send_and_free(sender, reader, 40)
      reader.say(Wire.free(first: freed.id))
      settle
      send_and_free(sender, reader, 300)
      crash
      assert_equal [1, %w[keep]], [stats[:messages], @engine.queues(wall: @wall).select { |queue| queue[:ready] > 0 }.map { |queue| queue[:name] }]
      assert_equal keeper, client.receives("keep").pushes.first.message
    end
  end
end
