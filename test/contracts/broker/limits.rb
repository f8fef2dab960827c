# frozen_string_literal: true

# What is refused for want of room, and what comes of it (docs/protocol.md, sections 1, 3 and 5).
module BrokerContract
  tests do
    test "a queue takes as many messages as it may, dead ones and those that are out included" do
      begin_engine(max_queue_messages: 2)
      reader = client.receives("q", credit: 1)
      sender = client
      sender.sends("q", "a")
      sender.sends("q", "b", delay: 1000)
      error = assert_refused Code::QUEUE_FULL, sender.sends("q", "c")
      assert_operator error.retry_after, :>, 0
      assert_taken sender.sends("other", "c")
      reader.frees(reader.pushes.first)
      assert_taken sender.sends("q", "c")
    end

    test "a queue takes as many bytes as it may" do
      begin_engine(max_queue_bytes: 100)
      sender = client
      assert_taken sender.sends("q", "x" * 60)
      assert_refused Code::QUEUE_FULL, sender.sends("q", "x" * 41)
      assert_taken sender.sends("q", "x" * 40)
    end

    test "messages in memory are as many as there may be, and none is dropped to make room" do
      begin_engine(max_memory: 10_000)
      sender = client
      taken = Array.new(20) { |i| sender.sends("q", i.to_s.ljust(1000)) }
      codes = taken.map { |answer| answer.is_a?(Frames::Error) ? answer.code : 0 }
      assert_equal [0] * 10 + [Code::OVERLOADED] * 10, codes
      reader = client.receives("q", credit: 1)
      first = reader.pushes.first
      assert_equal "0", first.payload.strip
      reader.frees(first)
      assert_taken sender.sends("q", "x" * 1000)
    end

    test "with storage what was written need not stand in memory" do
      begin_engine(storage: true, max_memory: 10_000)
      sender = client
      payloads = Array.new(50) { |i| "#{i} ".ljust(1000, "x") }
      payloads.each { |payload| assert_taken sender.sends("q", payload, level: 1) }
      assert_operator stats[:memory_bytes], :<=, 12_000
      memory = Array.new(15) { sender.sends("memory", "x" * 1000, level: 0) }
      assert_refused Code::OVERLOADED, memory.last
      assert_equal 50, figures("q")[:ready]
      reader = client.receives("q", credit: 100)
      assert_equal payloads, reader.payloads
      crash
      assert_operator stats[:memory_bytes], :<=, 12_000
      reader = client.receives("q", credit: 100)
      assert_equal payloads, reader.payloads
    end

    test "who has too many messages without an answer gets no more taken, until there is one" do
      begin_engine(storage: true, window_messages: 3)
      sender = client
      bytes = (1..5).map { |id| Wire.send_message(to: "q", payload: "x", level: 2, id: id + 100) }
      sender.say(*bytes)
      assert @engine.full?(sender.session)
      errors = sender.errors
      assert_equal [104, 105], errors.map(&:id)
      errors.each { |error| assert_refused Code::OVERLOADED, error }
      settle
      refute @engine.full?(sender.session)
      assert_equal 2, sender.answer(101).level
      assert_nil sender.sends("q", "x", level: 2, id: 200)
      assert_equal 4, stats[:messages]
    end

    test "each message of a batch counts in the window, unless it is to get no answer" do
      begin_engine(storage: true, window_messages: 3)
      sender = client
      batch = [["", "a"], ["", "b"]]
      sender.say(*[0, 0, 101, 102].map { |id| Wire.send_batch(to: "q", messages: batch, level: 2, id: id) })
      assert @engine.full?(sender.session)
      sender.say(Wire.send_message(to: "q", payload: "x", level: 2, id: 103))
      assert_equal [[103, Code::OVERLOADED]], sender.errors.map { |error| [error.id, error.code] }
      settle
      refute @engine.full?(sender.session)
      assert_equal [2, 2], [101, 102].map { |id| sender.answer(id).count }
      assert_equal 8, stats[:messages]
    end

    test "the window counts bytes, too, and not what is answered at once" do
      begin_engine(storage: true, window_bytes: 10_000)
      sender = client
      sender.say(*(1..3).map { |id| Wire.send_message(to: "q", payload: "x" * 6000, level: 2, id: id + 100) })
      assert_equal [103], sender.errors.map(&:id)
      settle
      sender.say(*(1..5).map { |id| Wire.send_message(to: "q", payload: "x" * 6000, level: 0, id: id + 200) })
      assert_empty sender.errors
    end

    test "there are as many queues, subscriptions and connections as there may be" do
      begin_engine(max_queues: 2, max_subscriptions: 2, max_sessions: 3)
      one = client
      assert_taken one.sends("a", "x")
      assert_taken one.ask(:subscribe, subscription: 1, name: "b")
      assert_refused Code::LIMIT, one.sends("c", "x")
      assert_refused Code::LIMIT, one.ask(:subscribe, subscription: 2, name: "c")
      assert_taken one.ask(:subscribe, subscription: 2, name: "a")
      assert_refused Code::LIMIT, one.ask(:subscribe, subscription: 3, name: "a")
      client
      last = client
      assert_raises(Hikyaku::Broker::TooManyConnections) { connect }
      last.vanishes
      client
      assert_equal 3, stats[:sessions]
    end

    test "a message that fits into no segment is too big, and nothing else is in doubt" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      assert_refused Code::TOO_BIG, sender.sends("q", "x" * SEGMENT, level: 1)
      assert_taken sender.sends("q", "x" * SEGMENT, level: 0)
      ack = sender.ask(:send_batch, to: "q", messages: [["", "a"], ["", "x" * SEGMENT], ["", "b"]])
      assert_equal [2, [[1, Code::TOO_BIG]]], [ack.count, ack.refusals.map { |refusal| [refusal.index, refusal.code] }]
      assert_equal 3, client.receives("q").payloads.size
    end

    test "a disk that may hold no more refuses what is to be kept, and takes what frees something" do
      begin_engine(storage: true, segment_bytes: SEGMENT, max_storage: 4 * SEGMENT)
      sender = client
      taken = 0
      refused = nil
      200.times do |i|
        answer = sender.sends("q", "x" * 4000, level: 1, id: 1000 + i)
        settle
        answer ||= sender.answer(1000 + i)
        break refused = answer if answer.is_a?(Frames::Error)
        taken += 1
      end
      assert_refused Code::DISK_FULL, refused
      assert_operator refused.retry_after, :>, 0
      assert_operator taken, :>, 30
      assert_taken sender.sends("q", "memory", level: 0)
      reader = client.receives("q", credit: 1000)
      pushes = reader.pushes
      assert_equal taken + 1, pushes.size
      pushes.each { |push| assert_taken reader.frees(push, level: 1) || (settle && reader.frames.pop) }
      20.times { settle }
      assert_taken sender.sends("q", "again", level: 1)
    end

    test "what is refused is counted by its code" do
      sender = client
      sender.sends("q", "x", priority: 10)
      sender.frees(5)
      assert_equal [1, 1], stats[:refused].values_at(Code::INVALID, Code::STALE)
    end

    test "an engine that has done much holds no more than one that has done little" do
      worker = client("worker").receives("q", credit: 10)
      sender = client("sender")
      sizes = Array.new(6) do |round|
        200.times do |i|
          sender.sends("q", "x" * 100, sequence: 200 * round + i + 1, time_to_live: 100_000)
          push = worker.pushes.first
          worker.touches(push) if i % 10 == 0
          (i % 7 == 0) ? worker.releases(push) && worker.frees(worker.pushes.first) : worker.frees(push)
          client.receives("other", number: 3).vanishes if i % 50 == 0
        end
        wait(0.1)
        weight
      end
      assert_operator sizes.last, :<=, sizes[1] * 1.2 + 2000
      assert_equal 0, stats[:messages]
    end

    # What the engine refers to: objects, or bytes where it is not Ruby's.
    def weight
      require "objspace"
      seen = {}.compare_by_identity
      waiting = [@engine]
      bytes = 0
      while (object = waiting.pop)
        next if seen[object] || object.is_a?(Module)
        seen[object] = true
        bytes += ObjectSpace.memsize_of(object)
        waiting.concat(ObjectSpace.reachable_objects_from(object).to_a.reject { |each| each.is_a?(ObjectSpace::InternalObjectWrapper) })
      end
      bytes
    end
  end
end
