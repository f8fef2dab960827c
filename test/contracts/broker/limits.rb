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

    test "a message that is larger than a queue may be is too big for ever, and holds up nothing behind it" do
      begin_engine(max_queue_bytes: 100)
      sender = client
      assert_taken sender.sends("q", "x" * 50)
      error = assert_refused Code::TOO_BIG, sender.sends("q", "x" * 101)
      assert_includes error.sentence, "100"
      assert_refused Code::TOO_BIG, sender.sends("empty", "x" * 95, properties: Wire::Properties.pack("trace" => "t"))
      batch = sender.sends_all("q", ["a", "x" * 101, "b", "x" * 60, "c"])
      assert_equal [2, [[1, Code::TOO_BIG], [3, Code::QUEUE_FULL], [4, Code::QUEUE_FULL]]],
        [batch.count, batch.refusals.map { |refusal| refusal.to_a.first(2) }]
      assert_taken sender.sends("empty", "x" * 100)
    end

    test "messages in memory are as many as there may be, and none is dropped to make room" do
      begin_engine(max_memory: 1_010_000)
      sender = client
      taken = Array.new(20) { |i| sender.sends("q", i.to_s.ljust(100_000)) }
      codes = taken.map { |answer| answer.is_a?(Frames::Error) ? answer.code : 0 }
      assert_equal [0] * 10 + [Code::OVERLOADED] * 10, codes
      reader = client.receives("q", credit: 1)
      first = reader.pushes.first
      assert_equal "0", first.payload.strip
      reader.frees(first)
      assert_taken sender.sends("q", "x" * 100_000)
    end

    test "what messages take beside their content counts, at every level, and frees itself" do
      [[false, 0], [true, 0], [true, 1], [true, 2]].each do |storage, level|
        FileUtils.rm_rf(Dir["#{@folder}/*"]) if @folder
        begin_engine(storage: storage, max_memory: 200_000)
        sender = client
        last = 1000
        settled = lambda do |&ask|
          answer = ask.call(last += 1)
          next answer if answer
          settle
          sender.answer(last)
        end
        taken = 0
        refused = nil
        until refused
          flunk "nothing bounds them" if taken > 200_000
          answer = settled.call { |id| sender.ask(:send_batch, id: id, to: "q", messages: Array.new(100) { ["", ""] }, level: level) }
          break refused = answer if answer.is_a?(Frames::Error)
          refused = answer.refusals.find { |refusal| refusal.code == Code::OVERLOADED }
          taken += answer.count
        end
        assert_operator refused.retry_after, :>, 0
        assert_operator stats[:index_bytes], :<=, 200_000
        assert_operator stats[:index_bytes], :>, 190_000
        assert_operator stats[:memory_bytes], :<=, 200_000
        assert_includes assert_refused(Code::OVERLOADED, settled.call { |id| sender.sends("q", "x", id: id, level: level) }).sentence, "broker_max_memory"
        reader = client.receives("q", credit: 10)
        pushes = reader.pushes
        reader.credits(0) # what is out takes memory, too
        pushes.each { |push| reader.frees(push) }
        assert_taken settled.call { |id| sender.sends("q", "x", id: id, level: level) }
      end
    end

    test "a restart with more than memory permits delivers all, and takes none before there is room" do
      begin_engine(storage: true)
      sender = client
      1000.times { |i| sender.sends("q", i.to_s, level: 1) }
      restart(max_memory: 50_000)
      assert_equal 1000, stats[:ready]
      assert_refused Code::OVERLOADED, client.sends("q", "more", level: 1)
      reader = client.receives("q", credit: 2000)
      pushes = reader.pushes
      assert_equal Array.new(1000, &:to_s), pushes.map(&:payload)
      pushes.each { |push| reader.frees(push) }
      assert_taken client.sends("q", "more", level: 1)
    end

    test "with storage what was written need not stand in memory" do
      begin_engine(storage: true, max_memory: 100_000)
      sender = client
      payloads = Array.new(50) { |i| "#{i} ".ljust(10_000, "x") }
      payloads.each { |payload| assert_taken sender.sends("q", payload, level: 1) }
      assert_operator stats[:memory_bytes], :<=, 100_000
      memory = Array.new(15) { sender.sends("memory", "x" * 10_000, level: 0) }
      assert_refused Code::OVERLOADED, memory.last
      assert_equal 50, figures("q")[:ready]
      reader = client.receives("q", credit: 100)
      assert_equal payloads, reader.payloads
      crash
      assert_operator stats[:memory_bytes], :<=, 100_000
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

    test "a queue that nobody uses makes room for another, the one that was not used for longest first" do
      begin_engine(storage: true, max_queues: 3)
      client.sends("kept", "x")
      20.times do |number|
        each = client("made-up-#{number}")
        assert_taken each.ask(:subscribe, subscription: 1, name: "", kind: 1)
        each.vanishes
      end
      sender = client
      reader = client.receives("used")
      assert_taken sender.sends("used", "x")
      reader.frees(reader.pushes.first)
      assert_taken sender.sends("new", "x")
      assert_refused Code::LIMIT, sender.sends("one too many", "x")
      assert_equal %w[kept new used], client.queries(QUEUES)[:queues].map { |queue| queue[:name] }
      reader.vanishes
      assert_taken sender.sends("in its place", "x")
      assert_equal %w[x], client.receives("kept").payloads
      assert_equal 3, stats[:queues]
    end

    test "a message is taken if, and only if, the PUSH that delivers it is no larger than the broker's largest frame" do
      begin_engine(max_frame: 5000)
      sender = client
      reader = client("", max_frame: 5000).receives("q", credit: 100).receives("n" * 200, number: 2)
      [4952, 4951, 4904].each do |bytes|
        assert_taken sender.sends("q", "x" * bytes)
        assert_equal [bytes], reader.payloads.map(&:bytesize)
      end
      (4953..4959).each do |bytes|
        error = assert_refused Code::TOO_BIG, sender.sends("q", "x" * bytes)
        assert_match(/#{bytes} bytes.*4952.*5000/, error.sentence)
      end
      properties = Wire::Properties.pack({"trace" => "t" * 92})
      assert_equal 100, properties.bytesize
      assert_taken sender.sends("q", "x" * 4852, properties: properties)
      assert_equal [4852], reader.payloads.map(&:bytesize)
      assert_refused Code::TOO_BIG, sender.sends("q", "x" * 4853, properties: properties)
      assert_taken sender.sends("n" * 200, "x" * 4760)
      assert_equal [4760], reader.payloads.map(&:bytesize)
      assert_equal 1, sender.sends_all("q", ["x" * 4949]).count
      assert_equal [0, 8], [stats[:ready], stats[:refused][Code::TOO_BIG]]
    end

    test "a message that is too big leaves its number free, and one that was taken before a smaller limit is acknowledged again" do
      begin_engine(storage: true, max_frame: 5000)
      sender = client("me")
      assert_refused Code::TOO_BIG, sender.sends("q", "x" * 4953, sequence: 1)
      sender.say(Wire.send_message(to: "q", payload: "x" * 4952, sequence: 1, id: 90))
      settle
      assert_taken sender.answer(90)
      restart(max_frame: 4990)
      again = client("me")
      again.say(Wire.send_message(to: "q", payload: "x" * 4949, sequence: 1, id: 91))
      settle
      assert again.answer(91).duplicate?
    end

    test "explain says which receiver takes the largest frame, and how large one the message needs" do
      begin_engine(storage: true, max_frame: 9000)
      sender = client
      sender.say(Wire.send_message(to: "q", payload: "x" * 8000, level: 1, id: 90))
      settle
      restart(max_frame: 6000)
      reader = client("small", max_frame: 4096).receives("q")
      client("wide", max_frame: 6000, agent: "w/1").receives("q")
      number = @welcome.session
      told = client.queries(EXPLAIN, name: "q")
      assert_equal "no receiver takes a message of this size: its PUSH has 8048 bytes, and the largest frame that any of them takes has 6000: " \
        "session #{number}, identity \"wide\", agent \"w/1\"", told[:because]
      assert_equal told[:because], client.queries(EXPLAIN, number: told[:message][:id])[:because]
      client.sends("q", "a")
      assert_equal %w[a], reader.payloads
      assert_equal ["x" * 8000], client("", max_frame: 9000).receives("q").payloads
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

    test "how large a message on the disk may be does not depend on how many identities are remembered" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      most = client.sends("q", "x" * SEGMENT, level: 1).sentence[/may have (\d+)/, 1].to_i
      2.times do
        sender = client("known")
        assert_settled sender, payload: "x" * most, sequence: @welcome.low + 1, level: WRITTEN
        error = assert_refused Code::TOO_BIG, sender.sends("q", "x" * (most + 1), level: 1)
        assert_match(/#{most + 1} bytes.*#{most}.*40 identities.*broker_segment_bytes.*broker_max_identities/, error.sentence)
        remember_at_their_longest(39)
      end
      crash
      assert_equal [most, most], client.receives("q").payloads.map(&:bytesize).max(2)
      begin_engine(storage: true, segment_bytes: SEGMENT, max_identities: 1)
      assert_settled client, payload: "x" * (most + 39 * 800), level: WRITTEN
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
