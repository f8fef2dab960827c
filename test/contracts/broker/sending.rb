# frozen_string_literal: true

# SEND and SEND_BATCH, and what acknowledges them (docs/protocol.md, sections 1, 4 and 5).
module BrokerContract
  tests do
    test "a message is acknowledged with an id, which rises" do
      sender = client
      ids = Array.new(5) { |i| assert_taken(sender.sends("q#{i % 2}", "x"), level: MEMORY).value }
      assert_equal ids.sort.uniq, ids
      assert_equal 2, sender.sends("q0", "x").request
    end

    test "a receiver gets what was sent, as it was" do
      reader = client.receives("mails")
      properties = Wire::Properties.pack("reply-to" => "web", "correlation" => "7")
      id = client.sends("mails", "\x00\xFFbytes", properties: properties, priority: 7).value
      push = reader.pushes.first
      assert_equal [1, id, @wall, 30_000, 1, 0, 0, 7, false, false], [push.subscription, push.message, push.sent_at, push.lease, push.attempt, push.failures,
        push.crashes, push.priority, push.redelivered?, push.poison_candidate?]
      assert_equal [properties, "\x00\xFFbytes".b], [push.properties, push.payload]
    end

    test "messages of a priority are delivered in the order in which they were taken, the highest priority first" do
      sender = client
      [4, 0, 9, 4, 9, 0, 5].each_with_index { |priority, i| sender.sends("q", "#{priority}-#{i}", priority: priority) }
      assert_equal %w[9-2 9-4 5-6 4-0 4-3 0-1 0-5], client.receives("q").payloads
    end

    test "SENDs in a row are acknowledged in ranges or one by one, each once" do
      sender = client
      sender.say((11..30).map { |id| Wire.send_message(id: id, to: "q", payload: "x") }.join, Wire.send_message(id: 100, to: "q", payload: "y"))
      acks = sender.take { |frame| frame.is_a?(Frames::Ack) }
      pairs = acks.flat_map { |ack| (ack.id..ack.last).map.with_index { |id, i| [id, ack.value + i] } }
      assert_equal [*11..30, 100], pairs.map(&:first).sort
      delivered = client.receives("q").pushes.map(&:message)
      assert_equal delivered, pairs.sort.map(&:last)
    end

    test "SENDs between which others were taken are not in the same range" do
      one = client
      two = client
      together do
        [[one, 11], [one, 12], [two, 11], [one, 13], [two, 12]].each { |each, id| each.say(Wire.send_message(id: id, to: "q", payload: id.to_s)) }
      end
      values = [one, two].flat_map do |each|
        each.take { |frame| frame.is_a?(Frames::Ack) && frame.id > 10 }.flat_map { |ack| (ack.id..ack.last).map.with_index { |id, i| [ack.value + i, id.to_s] } }
      end
      assert_equal client.receives("q").pushes.map { |push| [push.message, push.payload] }, values.sort
    end

    test "SENDs of other levels are not in the same range" do
      begin_engine(storage: true)
      sender = client
      sender.say([0, 1, 0, 1, 1, 2].each_with_index.map { |level, i| Wire.send_message(id: i + 1, to: "q", payload: "x", level: level) }.join)
      settle
      acks = sender.take { |frame| frame.is_a?(Frames::Ack) }
      levels = acks.flat_map { |ack| (ack.id..ack.last).map { |id| [id, ack.level] } }.select { |id, _| id.between?(1, 6) }
      assert_equal [[1, 0], [2, 1], [3, 0], [4, 1], [5, 1], [6, 2]], levels.sort
    end

    test "the level is the one that was asked for, or the broker's usual" do
      begin_engine(storage: true)
      sender = client
      assert_equal 0, sender.sends("q", "x", level: 0).level
      assert_equal 1, sender.sends("q", "x", level: 1).level
      assert_equal 1, sender.sends("q", "x").level
      assert_nil sender.sends("q", "x", level: 2, id: 99)
      settle
      assert_equal 2, sender.answer(99).level
      assert_equal [1, 2, 1], stats[:received]
    end

    test "written is acknowledged at the end of the turn, synced when the disk has it" do
      begin_engine(storage: true)
      sender = client
      @engine.receive(sender.session, Wire.send_message(id: 50, to: "q", payload: "x", level: 1) + Wire.send_message(id: 51, to: "q", payload: "x", level: 2), now: @now, wall: @wall)
      deliver
      assert_empty sender.frames
      turn
      assert_equal 1, sender.answer(50).level
      assert_nil sender.answer(51)
      @engine.work
      turn
      assert_equal 2, sender.answer(51).level
    end

    test "what is to be synced is, also when nobody wants an answer" do
      begin_engine(storage: true)
      sender = client
      settle
      before = stats[:journal][:syncs]
      sender.say(Wire.send_message(to: "q", payload: "x", level: 2))
      assert @engine.sync_wanted?
      settle
      assert_operator stats[:journal][:syncs], :>, before
      refute @engine.sync_wanted?
    end

    test "a message may be delivered before its sender has its ACK" do
      begin_engine(storage: true)
      reader = client.receives("q")
      sender = client
      sender.sends("q", "x", level: 2, id: 50)
      assert_equal ["x"], reader.payloads
      assert_nil sender.answer(50)
    end

    test "without storage there is level memory alone" do
      sender = client
      [1, 2].each do |level|
        assert_refused Code::LEVEL, sender.sends("q", "x", level: level)
        assert_refused Code::LEVEL, sender.sends_all("q", %w[x], level: level)
        assert_refused Code::LEVEL, sender.frees(1, level: level)
      end
      assert_equal 0, sender.sends("q", "x", level: 255).level
      assert_equal 0, stats[:messages] - 1
    end

    test "values that are not allowed are refused alone" do
      sender = client
      [{priority: 10}, {level: 3}, {level: 254}, {kind: 2}, {to: ""}, {to: "q" * 256}, {to: "a\nb"}, {to: "a\x7F"}, {to: "\xFF\xFE"}, {to: "@web"}, {sequence: 1},
        {properties: "\x05ab"}, {properties: "\x00\x00\x00"}].each do |fields|
        answer = sender.ask(:send_message, to: "q", payload: "x", **fields)
        assert_refused Code::INVALID, answer
        assert_equal 0, answer.scope
      end
      assert_taken sender.sends("bücher", "x")
      assert_equal [1, 1], [stats[:messages], stats[:queues]]
      assert_operator stats[:refused][Code::INVALID], :>=, 13
    end

    test "a batch has one answer, and its messages have ids in a row" do
      sender = client
      ack = assert_taken(sender.sends_all("q", %w[a b c], priority: 9), level: 0)
      assert_equal [3, 3, [], false], [ack.request, ack.count, ack.refusals, ack.duplicate?]
      pushes = client.receives("q").pushes
      assert_equal [%w[a b c], [ack.value, ack.value + 1, ack.value + 2], [9, 9, 9]], [pushes.map(&:payload), pushes.map(&:message), pushes.map(&:priority)]
    end

    test "of a batch all are taken that can be, and the others are named" do
      begin_engine(max_queue_messages: 3)
      sender = client
      good = Wire::Properties.pack("a" => "b")
      ack = sender.ask(:send_batch, to: "q", messages: [["\x09bad", "0"], [good, "1"], ["", "2"], ["\x00\x00\x00", "3"], ["", "4"], ["", "5"]])
      assert_equal 3, ack.count
      assert_equal [[0, Code::INVALID], [3, Code::INVALID], [5, Code::QUEUE_FULL]], ack.refusals.map { |refusal| [refusal.index, refusal.code] }
      assert_operator ack.refusals.last.retry_after, :>, 0
      pushes = client.receives("q").pushes
      assert_equal [%w[1 2 4], [0, 1, 2].map { |i| ack.value + i }], [pushes.map(&:payload), pushes.map(&:message)]
      assert_equal "b", Wire::Properties.parse(pushes.first.properties)["a"]
    end

    test "of a batch of which nothing can be taken, it is said of each" do
      begin_engine(max_queue_messages: 1)
      sender = client
      sender.sends("q", "first")
      ack = assert_taken sender.sends_all("q", %w[a b])
      assert_equal [0, 0, [0, 1]], [ack.count, ack.value, ack.refusals.map(&:index)]
    end

    test "a batch without messages, or to nowhere, is refused whole" do
      sender = client
      assert_refused Code::INVALID, sender.sends_all("q", [])
      assert_refused Code::INVALID, sender.sends_all("", %w[a])
      assert_refused Code::INVALID, sender.sends_all("q", %w[a], priority: 11)
      assert_equal 0, stats[:messages]
    end

    test "a batch is refused whole when an ACK that refuses all of it would be larger than the frames that its client takes" do
      sender = client("web", max_frame: 4096)
      most = (4096 - 32) / 12
      assert_equal most, assert_taken(sender.sends_all("q", ["x"] * most, sequence: 1)).count
      [most + 1, 1].each { |first| assert_refused Code::TOO_BIG, sender.sends_all("q", ["x"] * (most + 1), sequence: first) }
      assert_equal [most, 0], [stats[:messages], stats[:duplicates]]
    end

    test "a large batch is one turn" do
      begin_engine(storage: true)
      sender = client
      payloads = Array.new(5000) { |i| "message #{i}" }
      ack = sender.sends_all("q", payloads, id: 77, level: 1)
      settle unless ack
      assert_equal 5000, (ack || sender.answer(77)).count
      assert_equal payloads, client.receives("q", credit: 10_000).payloads
    end

    test "the queue of a client is its own" do
      sender = client
      assert_taken sender.sends("web", "to the client", kind: 1)
      assert_taken sender.sends("web", "to the queue")
      assert_equal ["to the queue"], client.receives("web").payloads
      web = client("web").receives("", kind: 1)
      assert_equal ["to the client"], web.payloads
      web.frees(0, 2**63)
      web.vanishes
      sender.sends("web", "later", kind: 1)
      assert_equal %w[later], client("web").receives("web", kind: 1).payloads
      assert_refused Code::FORBIDDEN, client("other").ask(:subscribe, subscription: 1, name: "web", kind: 1)
      assert_refused Code::INVALID, client.ask(:subscribe, subscription: 1, name: "", kind: 1)
    end

    test "what is given may be changed afterwards" do
      sender = client
      bytes = +Wire.send_message(to: "q", payload: "hello")
      @engine.receive(sender.session, bytes, now: @now, wall: @wall)
      bytes.replace("x" * bytes.bytesize)
      assert_equal ["hello"], client.receives("q").payloads
    end

    test "a batch is taken up to the first message that may be taken later, and what follows is refused like it" do
      begin_engine(max_queue_bytes: 120)
      sender = client("web")
      assert_taken sender.sends("other", "x", sequence: 5)
      messages = [["", "x" * 100], ["\x01", "bad"], ["", "x" * 50], ["\x01", "bad"], ["", "taken before"], ["", "y"]]
      ack = assert_taken sender.ask(:send_batch, to: "q", messages: messages, sequence: 1)
      assert_equal [true, 2], [ack.duplicate?, ack.count]
      assert_equal [[1, Code::INVALID], [2, Code::QUEUE_FULL], [3, Code::INVALID], [5, Code::QUEUE_FULL]], ack.refusals.map { |refusal| [refusal.index, refusal.code] }
      assert_equal 2, ack.refusals.map(&:retry_after).uniq.size
      assert_equal 2, stats[:refused][Code::QUEUE_FULL]
      reader = client.receives("q")
      reader.frees(reader.pushes.first)
      ack = assert_taken sender.ask(:send_batch, to: "q", messages: [["", "x" * 50], ["", "again"], ["", "taken before"], ["", "y"]], sequence: 3)
      assert_equal [4, true, []], [ack.count, ack.duplicate?, ack.refusals]
      assert_equal ["x" * 50, "again", "y"], reader.payloads
    end

    test "a message that is never taken does not keep back those behind it in its batch" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client("web")
      ack = sender.ask(:send_batch, to: "q", messages: [["\x01", "bad"], ["", "a"], ["", "x" * SEGMENT], ["", "b"]], sequence: 1)
      assert_equal [2, [[0, Code::INVALID], [2, Code::TOO_BIG]]], [ack.count, ack.refusals.map { |refusal| [refusal.index, refusal.code] }]
      assert_equal %w[a b], client.receives("q").payloads
    end

    test "memory that is full ends a batch, though a smaller message would fit" do
      begin_engine(storage: true, max_memory: 7000)
      sender = client
      ack = sender.ask(:send_batch, to: "q", messages: [["", "x" * 5000], ["", "x" * 5000], ["", "x"]], level: MEMORY)
      assert_equal [1, [[1, Code::OVERLOADED], [2, Code::OVERLOADED]]], [ack.count, ack.refusals.map { |refusal| [refusal.index, refusal.code] }]
    end
  end
end
