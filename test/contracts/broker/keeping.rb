# frozen_string_literal: true

# What is there after a restart (docs/protocol.md, section 1; docs/journal.md, "What the broker keeps").
module BrokerContract
  tests do
    test "after a crash there is what was written and synced, and not what was in memory alone" do
      begin_engine(storage: true)
      sender = client
      sender.sends("q", "memory", level: 0)
      sender.sends("q", "written", level: 1)
      sender.sends("q", "synced", level: 2)
      sender.sends_all("q", %w[w1 w2], level: 1)
      settle
      crash
      assert_equal %w[written synced w1 w2], client.receives("q").payloads
    end

    test "after an orderly end there is everything" do
      begin_engine(storage: true)
      sender = client
      sender.sends("q", "memory", level: 0)
      sender.sends("q", "written", level: 1)
      sender.sends("q", "synced", level: 2)
      2.times do
        restart
        assert_equal 3, stats[:messages]
      end
      reader = client.receives("q")
      pushes = reader.pushes
      assert_equal %w[memory written synced], pushes.map(&:payload)
      pushes.each { |push| assert_taken reader.frees(push) }
      crash
      assert_equal 0, stats[:messages]
    end

    test "a message is as it was sent" do
      begin_engine(storage: true)
      properties = Wire::Properties.pack("trace" => "t")
      sent = @wall
      id = client.sends("q", "\x00\xFF", properties: properties, priority: 8, level: 1).value
      client.sends("web", "x", kind: 1, level: 1)
      wait(5)
      crash
      push = client.receives("q").pushes.first
      assert_equal [id, sent, 8, properties, "\x00\xFF".b, 1], [push.message, push.sent_at, push.priority, push.properties, push.payload, push.attempt]
      assert_equal %w[x], client("web").receives("", kind: 1).payloads
    end

    test "what does not verify in a tail that nobody had synced costs what stood there, and is counted; what is whole behind it is kept" do
      begin_engine(storage: true)
      sender = client
      sender.sends("q", "first", level: 2)
      %w[before hit behind].each { |payload| sender.sends("q", payload, level: 1) }
      crash { |folder| change_byte(folder, "hit") }
      assert_equal [1, 1], stats[:journal].values_at(:torn_places, :torn_missing)
      assert_equal %w[first before behind], client.receives("q").payloads
      crash
      assert_equal [0, 0], stats[:journal].values_at(:torn_places, :torn_missing)
      assert_equal 3, stats[:messages]
    end

    test "messages of a queue whose own record did not survive are not delivered, and the broker begins" do
      begin_engine(storage: true)
      sender = client
      sender.sends("q", "first", level: 2)
      sender.sends("unsynced-queue", "lost", level: 1)
      sender.sends("q", "behind", level: 1)
      crash { |folder| change_byte(folder, "unsynced-queue") }
      assert_equal 2, stats[:messages]
      assert_equal %w[first behind], client.receives("q").payloads
    end

    test "what a restart cannot read of a queue's name costs its messages, which are counted, and nobody gets them under another name" do
      begin_engine(storage: true)
      client.sends("unsynced-queue", "lost", level: 1)
      crash { |folder| change_byte(folder, "unsynced-queue") }
      assert_equal [0, 1], stats.values_at(:messages, :messages_lost)
      lost = client.sends("another", "mine", level: 1).value
      2.times do
        crash
        assert_equal [1, 1], [stats[:messages], @engine.queues(wall: @wall).size]
        assert_operator client.sends("another", "later", level: 0).value, :>, lost
      end
      assert_equal %w[mine], client.receives("another").payloads.first(1)
    end

    test "what does not verify is not settled by what its sender's connection said behind it" do
      begin_engine(storage: true)
      sender = client("web")
      assert_nil sender.sends("q", "unanswered", sequence: 1, level: 2)
      sender.vanishes
      client("web")
      crash { |folder| change_byte(folder, "unanswered") }
      sender = client("web")
      assert_equal 0, @welcome.low
      refute sender.say(Wire.send_message(id: 90, to: "q", payload: "unanswered", sequence: 1, level: 2)) && settle && sender.answer(90).duplicate?
      crash
      client("web")
      assert_equal 1, @welcome.low
      assert_equal %w[unanswered], client.receives("q").payloads
    end

    test "what is whole behind a producer that does not verify comes once into the queue" do
      begin_engine(storage: true)
      client.sends("q", "first", level: 1)
      assert_nil client("producer-of-it").sends("q", "unanswered", sequence: 1, level: 2)
      crash { |folder| change_byte(folder, "producer-of-it") }
      sender = client("producer-of-it")
      assert_nil sender.sends("q", "unanswered", sequence: 1, level: 2)
      settle
      2.times do
        assert_equal 2, stats[:messages]
        crash
      end
      assert_equal %w[first unanswered], client.receives("q").payloads
    end

    test "what was freed does not come back" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends_all("q", %w[a b c d], level: 1)
      pushes = reader.pushes
      reader.frees(pushes[0], pushes[1])
      reader.frees(pushes[3])
      crash
      reader = client.receives("q")
      assert_equal %w[c], reader.payloads
      assert_equal 1, stats[:messages]
    end

    test "ids and numbers of sessions are never used again" do
      begin_engine(storage: true)
      id = client.sends("q", "a", level: 1).value
      memory = client.sends("q", "b", level: 0).value
      session = @welcome.session
      crash
      reader = client.receives("q")
      assert_operator @welcome.session, :>, session
      assert_equal id, reader.pushes.first.message
      assert_operator client.sends("q", "c", level: 0).value, :>, [id, memory].max
      last = @welcome.session
      restart
      client
      assert_operator @welcome.session, :>, last
    end

    test "order, priorities and what was delivered before are kept" do
      begin_engine(storage: true, max_crashes: 9)
      reader = client.receives("q", credit: 2)
      sender = client
      %w[a b c d].each { |payload| sender.sends("q", payload, level: 1) }
      sender.sends("q", "high", priority: 9, level: 1)
      first, second = reader.pushes
      reader.credits(0)
      reader.rejects(second, reason: "no")
      reader.releases(first)
      crash
      pushes = client.receives("q").pushes
      assert_equal %w[high a b c d], pushes.map(&:payload)
      assert_equal [[1, 0], [2, 0], [2, 1], [1, 0], [1, 0]], pushes.map { |push| [push.attempt, push.failures] }
    end

    test "suspects and dead letters are kept, and replayed ones, too" do
      begin_engine(storage: true, max_failures: 1)
      sender = client
      %w[crash dead replayed].each { |payload| sender.sends("q", payload, level: 1) }
      reader = client.receives("q", credit: 1)
      suspect = reader.pushes.first
      assert_equal "crash", suspect.payload
      reader.vanishes
      reader = client.receives("q", credit: 1)
      reader.rejects(reader.pushes.first, delay: 60_000) # the suspect: dead
      2.times { reader.rejects(reader.pushes.first, reason: "because") }
      dead = reader.queries(DEAD, name: "q")[:dead]
      assert_equal 3, dead.size
      reader.credits(0)
      reader.queries(REPLAY, number: dead.last[:id])
      restart
      reader = client
      assert_equal [[1, 1, 1, ""], [1, 1, 0, "because"]], reader.queries(DEAD, name: "q")[:dead].map { |letter| letter.values_at(:reason, :failures, :crashes, :words) }
      push = reader.receives("q").pushes
      assert_equal [["replayed", 0, 1]], push.map { |each| [each.payload, each.failures, each.attempt] }
      crash
      assert_equal [2, 1], stats.values_at(:dead, :ready)
    end

    test "crashes are kept" do
      begin_engine(storage: true)
      client.sends("q", "poison", level: 1)
      client.receives("q").vanishes
      crash
      push = client.receives("q").pushes.first
      assert_equal [1, true, 2], [push.crashes, push.poison_candidate?, push.attempt]
    end

    test "what was out when the broker stopped in order comes back, and counts as nothing" do
      begin_engine(storage: true)
      client.sends("q", "a", level: 1)
      client.sends("q", "b", level: 0)
      assert_equal 2, client.receives("q").pushes.size
      restart
      assert_equal [["a", 0, true], ["b", 0, true]], client.receives("q").pushes.map { |push| [push.payload, push.crashes, push.redelivered?] }
    end

    test "delays and times to live go on after a restart" do
      begin_engine(storage: true)
      sender = client
      sender.sends("q", "delayed", level: 1, delay: 10_000)
      sender.sends("q", "short", level: 1, time_to_live: 8000)
      sender.sends("q", "long", level: 0, time_to_live: 60_000)
      wait(4)
      restart
      wait(3)
      assert_equal [1, 2, 0], stats.values_at(:delayed, :ready, :expired)
      wait(2)
      assert_equal [1, 1, 1], stats.values_at(:delayed, :ready, :expired)
      wait(2)
      assert_equal [0, 2, 1], stats.values_at(:delayed, :ready, :expired)
      @wall += 100_000
      restart
      wait(0.1)
      assert_equal [0, 1, 1], stats.values_at(:delayed, :ready, :expired)
    end

    test "a delay that a NACK has said goes on after a restart" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends("q", "a", level: 1)
      reader.rejects(reader.pushes.first, delay: 10_000)
      wait(4)
      crash
      reader = client.receives("q")
      wait(5)
      assert_empty reader.pushes
      wait(1.1)
      assert_equal [["a", 1]], reader.pushes.map { |push| [push.payload, push.failures] }
    end

    test "a delay that a NACK has said goes on, though the clock was set back since the message was sent" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends("q", "a", level: 1)
      wait(1, clock: -1_000_000)
      reader.rejects(reader.pushes.first, delay: 10_000)
      crash
      reader = client.receives("q")
      wait(9)
      assert_empty reader.pushes
      wait(1.1)
      assert_equal %w[a], reader.payloads
    end

    test "of a delay that a NACK has said no more is left than there was, though the clock was set back before the restart" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends("q", "a", level: 1)
      reader.rejects(reader.pushes.first, delay: 10_000)
      2.times do |number|
        @wall -= 1_000_000_000
        crash
        reader = client.receives("q")
        wait(9)
        assert_empty reader.pushes, number.to_s
      end
      wait(1.1)
      assert_equal [["a", 1]], reader.pushes.map { |push| [push.payload, push.failures] }
    end

    test "what is not done with expires when it should, though the clock was set back before it was written down" do
      begin_engine(storage: true)
      client.sends("q", "a", level: 0, time_to_live: 60_000)
      client.sends("q", "b", level: 0, delay: 60_000)
      wait(1, clock: -1_000_000_000)
      restart
      wait(1)
      assert_equal [1, 1, 0], stats.values_at(:ready, :delayed, :expired)
      wait(60)
      assert_equal [1, 0, 1], stats.values_at(:ready, :delayed, :expired)
    end

    test "a clock that was set forward before a restart ends times to live and delays, and nothing else" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends("q", "returned", level: 1)
      reader.rejects(reader.pushes.first, delay: 10_000)
      reader.credits(0)
      client.sends("q", "brief", level: 1, time_to_live: 10_000)
      client.sends("q", "delayed", level: 1, delay: 10_000)
      client.sends("q", "usual", level: 1)
      @wall += 1_000_000_000_000
      wait(0.1)
      assert_equal [2, 2, 0], stats.values_at(:ready, :delayed, :expired)
      crash
      wait(0.1)
      assert_equal [3, 0, 1], stats.values_at(:ready, :delayed, :expired)
      assert_equal %w[delayed returned usual], client.receives("q").payloads.sort
    end

    test "a letter that was replayed does not expire after a restart, either" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends("q", "a", level: 1, time_to_live: 5000)
      reader.buries(reader.pushes.first)
      reader.credits(0)
      reader.queries(REPLAY, name: "q")
      wait(10)
      2.times do
        crash
        wait(1)
        assert_equal [1, 0], stats.values_at(:ready, :expired)
      end
    end

    test "a clock that was set back leaves no more to wait than there was" do
      begin_engine(storage: true)
      client.sends("q", "delayed", level: 1, delay: 10_000)
      client.sends("q", "short", level: 1, time_to_live: 20_000)
      @engine.abort
      @wall -= 1_000_000_000
      start_engine
      wait(10.1)
      assert_equal %w[short delayed], client.receives("q", credit: 0).queries(QUEUES)[:queues].then { client.receives("q").payloads }
      restart
      wait(20.1)
      assert_equal 1, stats[:expired]
    end

    test "queues of which nothing is left are forgotten, and their names may be used again" do
      begin_engine(storage: true)
      reader = client.receives("q")
      client.sends("q", "a", level: 1)
      reader.frees(reader.pushes.first)
      reader.vanishes
      wait(3700)
      assert_equal 0, stats[:queues]
      client.sends("q", "b", level: 1)
      crash
      assert_equal %w[b], client.receives("q").payloads
    end

    test "a purge and dropped letters are kept" do
      begin_engine(storage: true)
      sender = client
      sender.sends_all("q", %w[a b c], level: 1)
      reader = client.receives("q", credit: 1)
      reader.buries(reader.pushes.first)
      reader.credits(0)
      reader.pushes
      sender.queries(DROP, name: "q")
      sender.queries(PURGE, name: "q")
      crash
      assert_operator stats[:messages], :<=, 1 # what was out
      assert_equal 0, stats[:dead]
    end

    test "crashing again and again loses nothing" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      expected = []
      12.times do |round|
        sender = client
        5.times do |i|
          payload = "#{round}-#{i} ".ljust(3000, ".")
          sender.sends("q", payload, level: 1)
          settle
          expected << payload
        end
        reader = client.receives("q", credit: 2)
        reader.pushes.each do |push|
          reader.frees(push, level: 1)
          settle
          expected.delete(push.payload)
        end
        reader.credits(0)
        if round.odd?
          crash
        else
          reader.say(Wire.drain)
          reader.vanishes
          restart
        end
      end
      got = []
      reader = client.receives("q", credit: 1)
      while (push = reader.pushes.first)
        got << push.payload
        reader.frees(push)
        settle
      end
      assert_equal expected.sort, got.sort
    end
  end
end
