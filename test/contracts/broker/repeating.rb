# frozen_string_literal: true

# Numbers that are repeated when nothing new would be taken (docs/protocol.md, section 6).
module BrokerContract
  tests do
    test "what was taken before is acknowledged while the broker is about to stop" do
      sender = client("web")
      sender.sends("q", "1", sequence: 1)
      @engine.drain(1500)
      turn
      assert_repeated sender.sends("q", "1", sequence: 1)
      [0, 2, 9000].each { |number| assert_equal 1500, assert_refused(Code::DRAINING, sender.sends("q", "new", sequence: number)).retry_after }
      assert_equal [1, 1, 3], [stats[:messages], stats[:duplicates], stats[:refused][Code::DRAINING]]
      assert @engine.drained?
    end

    test "a broker that is about to stop waits for the level of what is repeated" do
      begin_engine(storage: true)
      sender = client("web")
      sender.sends("q", "1", sequence: 1, level: WRITTEN)
      @engine.drain(1500)
      sender.sends("q", "1", sequence: 1, level: SYNCED, id: 50)
      refute @engine.drained?
      settle
      assert @engine.drained?
      assert_repeated sender.answer(50), level: SYNCED
    end

    test "what was taken before is acknowledged when too many messages have no answer yet, and counts among them" do
      begin_engine(storage: true, window_messages: 3)
      sender = client("web")
      sender.say(*[1, 2, 2, 1, 3, 2].each_with_index.map { |number, i| numbered(number, level: SYNCED, id: 101 + i) })
      assert_equal [[105, Code::OVERLOADED]], sender.errors.map { |error| [error.id, error.code] }
      settle
      assert_equal [[101, false], [102, false], [103, true], [104, true], [106, true]], answers(sender, 101..106)
      sender.sends("q", "3", sequence: 3, level: WRITTEN)
      sender.say(*[1, 2, 3].each_with_index.map { |number, i| numbered(number, level: SYNCED, id: 201 + i) })
      assert @engine.full?(sender.session)
      assert_repeated sender.sends("q", "1", sequence: 1, level: MEMORY)
      settle
      refute @engine.full?(sender.session)
      assert_equal [201, 202, 203].map { |id| [id, true] }, answers(sender, 201..203)
      refute_predicate sender.sends("q", "4", sequence: 4, level: WRITTEN), :duplicate?
    end

    test "the bytes of what is repeated count, too" do
      begin_engine(storage: true, window_bytes: 10_000)
      sender = client("web")
      sender.say(*(101..103).map { |id| numbered(1, "x" * 6000, level: SYNCED, id: id) }, numbered(2, level: SYNCED, id: 104))
      assert @engine.full?(sender.session)
      assert_equal [[104, Code::OVERLOADED]], sender.errors.map { |error| [error.id, error.code] }
      settle
      refute @engine.full?(sender.session)
      assert_equal [[101, false], [102, true], [103, true]], answers(sender, 101..103)
    end

    test "what was taken before is acknowledged to who may not send there any more" do
      begin_engine(open: false)
      sender = permitted([["jobs/*", 1]], "web")
      sender.sends("jobs/a", "1", sequence: 1)
      sender.vanishes
      sender = permitted([["mails", 1]], "web")
      assert_repeated sender.sends("jobs/a", "1", sequence: 1)
      assert_refused Code::FORBIDDEN, sender.sends("jobs/a", "2", sequence: 2)
      assert_refused Code::FORBIDDEN, sender.sends_all("jobs/a", %w[2 3], sequence: 2)
      ack = assert_taken sender.sends_all("jobs/a", %w[1 2 3], sequence: 1)
      assert_equal [true, 1, [[1, Code::FORBIDDEN, 0], [2, Code::FORBIDDEN, 0]]], told(ack)
      refute_predicate assert_taken(sender.sends("mails", "2", sequence: 2)), :duplicate?
    end

    test "what was taken before is acknowledged when its queue was forgotten and there may be no other, and makes none" do
      begin_engine(max_queues: 1)
      sender = client("web")
      reader = client.receives("q")
      sender.sends("q", "1", sequence: 1)
      reader.frees(reader.pushes.first)
      reader.vanishes
      wait_step_by_step(3700)
      assert_equal 0, stats[:queues]
      assert_repeated sender.sends("q", "1", sequence: 1)
      assert_equal 0, stats[:queues]
      sender.sends("other", "2", sequence: 2)
      assert_repeated sender.sends("q", "1", sequence: 1)
      assert_equal 5000, assert_refused(Code::LIMIT, sender.sends("q", "3", sequence: 3)).retry_after
      ack = assert_taken sender.sends_all("q", %w[2 3], sequence: 2)
      assert_equal [true, 1, [[1, Code::LIMIT, 5000]]], told(ack)
    end

    test "what was taken before is acknowledged at the level that it has, though the broker has not the one that is asked for" do
      sender = client("web")
      sender.sends("q", "1", sequence: 1)
      [WRITTEN, SYNCED].each do |level|
        assert_repeated sender.sends("q", "1", sequence: 1, level: level), level: MEMORY
        assert_refused Code::LEVEL, sender.sends("q", "2", sequence: 2, level: level)
        ack = assert_taken sender.sends_all("q", %w[1 2], sequence: 1, level: level), level: MEMORY
        assert_equal [true, 1, [[1, Code::LEVEL, 0]]], told(ack)
      end
      assert_repeated sender.sends("q", "1", sequence: 1, level: 255), level: MEMORY
    end

    test "of a batch that is repeated while the broker is about to stop, the numbers that were taken are acknowledged, and the others refused" do
      sender = client("web")
      sender.sends("q", "2", sequence: 2)
      sender.sends("q", "4", sequence: 4)
      @engine.drain(1500)
      turn
      assert_refused Code::DRAINING, sender.sends_all("q", %w[5 6], sequence: 5)
      assert_refused Code::DRAINING, sender.sends_all("q", %w[5 6])
      ack = assert_taken sender.sends_all("q", %w[1 2 3 4], sequence: 1)
      assert_equal [true, 2, [[0, Code::DRAINING, 1500], [2, Code::DRAINING, 1500]]], told(ack)
      assert_equal 0, ack.value
      ack = assert_taken sender.ask(:send_batch, to: "q", messages: [["", "2"], ["\x09bad", "3"], ["\x09bad", "4"], ["", "5"]], sequence: 2)
      assert_equal [true, 1, [[1, Code::INVALID, 0], [2, Code::INVALID, 0], [3, Code::DRAINING, 1500]]], told(ack)
      assert_equal [2, 3, 5, 2], [stats[:messages], stats[:duplicates], stats[:refused][Code::DRAINING], stats[:refused][Code::INVALID]]
    end

    test "of a batch that is repeated when too many messages have no answer yet, the numbers that were taken are acknowledged" do
      begin_engine(storage: true, window_messages: 3)
      sender = client("web")
      batch = ->(id, first) { Wire.send_batch(to: "q", messages: [["", "a"], ["", "b"]], sequence: first, level: SYNCED, id: id) }
      sender.say(batch[101, 1], batch[102, 2], batch[103, 2], batch[104, 3], batch[105, 4])
      assert_equal [[105, Code::OVERLOADED]], sender.errors.map { |error| [error.id, error.code] }
      assert @engine.full?(sender.session)
      settle
      refute @engine.full?(sender.session)
      acks = (101..104).map { |id| assert_taken(sender.answer(id), level: SYNCED) }
      assert_equal [[false, 2, []], [true, 2, []], [true, 2, []], [true, 1, [[1, Code::OVERLOADED, 250]]]], acks.map { |ack| told(ack) }
      assert_equal 3, stats[:messages]
    end

    test "what is not allowed is refused as such, also where its number was taken and nothing new would be" do
      sender = client("web")
      sender.sends("q", "1", sequence: 1)
      nobody = client
      2.times do
        [{priority: 10}, {level: 3}, {level: 254}, {kind: 2}, {to: ""}, {to: "q" * 256}, {to: "a\nb"}, {to: "@web"}, {properties: "\x05ab"}].each do |fields|
          assert_refused Code::INVALID, sender.ask(:send_message, to: "q", payload: "1", sequence: 1, **fields)
          next if fields.key?(:properties)
          assert_refused Code::INVALID, sender.ask(:send_batch, to: "q", messages: [["", "1"]], sequence: 1, **fields)
        end
        assert_refused Code::INVALID, sender.sends_all("q", [], sequence: 1)
        ack = assert_taken sender.ask(:send_batch, to: "q", messages: [["\x05ab", "1"], ["", "2"]], sequence: 1)
        assert_equal [1, [[0, Code::INVALID, 0]]], told(ack).drop(1)
        assert_refused Code::INVALID, nobody.sends("q", "1", sequence: 1)
        @engine.drain(1500)
        turn
      end
      assert_equal [2, 1], [stats[:messages], stats[:duplicates]]
    end

    def numbered(number, payload = number.to_s, **fields) = Wire.send_message(to: "q", payload: payload, sequence: number, **fields)

    def assert_repeated(answer, level: nil)
      assert_taken(answer, level: level)
      assert_equal [true, 0], [answer.duplicate?, answer.value]
      answer
    end

    # What an ACK says of the messages of a batch.
    def told(ack) = [ack.duplicate?, ack.count, ack.refusals.map { |refusal| [refusal.index, refusal.code, refusal.retry_after] }]

    # Which requests have an ACK, and whether it says that they are repeated.
    def answers(sender, ids)
      acks = sender.take { |frame| frame.is_a?(Frames::Ack) && ids.cover?(frame.id) }
      acks.flat_map { |ack| (ack.id..ack.last).map { |id| [id, ack.duplicate?] } }.sort
    end
  end
end
