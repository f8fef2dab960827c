# frozen_string_literal: true

# Exactly once into the queue, for senders that number their messages (docs/protocol.md, section 6).
module BrokerContract
  tests do
    test "a message whose number was taken is acknowledged, and not taken again" do
      sender = client("web")
      first = assert_taken(sender.sends("q", "a", sequence: 1))
      refute first.duplicate?
      again = assert_taken(sender.sends("q", "a", sequence: 1))
      assert_equal [true, 0], [again.duplicate?, again.value]
      assert_equal %w[a], client.receives("q").payloads
      assert_equal 1, stats[:duplicates]
    end

    test "numbers are known after a reconnection, and of each identity by itself" do
      sender = client("web")
      sender.sends("q", "1", sequence: 1)
      sender.sends("q", "3", sequence: 3)
      sender.vanishes
      sender = client("web")
      assert_equal 1, @welcome.low
      assert_equal [true, false, true], [1, 2, 3].map { |number| sender.sends("q", number.to_s, sequence: number).duplicate? }
      refute client("other").sends("q", "1", sequence: 1).duplicate?
      sender.vanishes
      client("web")
      assert_equal 3, @welcome.low
    end

    test "the numbers of a batch follow one another, and some may have been taken before" do
      sender = client("web")
      sender.sends("q", "2", sequence: 2)
      ack = assert_taken sender.sends_all("q", %w[1 2 3], sequence: 1)
      assert_equal [true, 0, 3, []], [ack.duplicate?, ack.value, ack.count, ack.refusals]
      assert_equal %w[2 1 3], client.receives("q").payloads
      sender.vanishes
      client("web")
      assert_equal 3, @welcome.low
    end

    test "a message that was refused leaves its number free" do
      begin_engine(max_queue_messages: 1)
      sender = client("web")
      sender.sends("q", "1", sequence: 1)
      assert_refused Code::QUEUE_FULL, sender.sends("q", "2", sequence: 2)
      refute sender.sends("other", "2", sequence: 2).duplicate?
      assert sender.sends("other", "2", sequence: 2).duplicate?
    end

    test "a number too far above what is settled is refused" do
      sender = client("web")
      assert_refused Code::SEQUENCE, sender.sends("q", "x", sequence: 4097)
      assert_taken sender.sends("q", "x", sequence: 4096)
      assert_taken sender.sends("q", "x", sequence: 1)
      assert_taken sender.sends("q", "x", sequence: 4097)
      assert_refused Code::SEQUENCE, sender.sends("q", "x", sequence: 4098)
      assert_refused Code::SEQUENCE, sender.sends("q", "x", sequence: 2**64 - 1)
      ack = sender.sends_all("q", %w[a b], sequence: 4097)
      assert_equal [1, true, [[1, Code::SEQUENCE]]], [ack.count, ack.duplicate?, ack.refusals.map { |refusal| [refusal.index, refusal.code] }]
    end

    test "the numbers of a batch end with the highest, and do not begin anew" do
      sender = client("web")
      ack = sender.sends_all("q", %w[a b c], sequence: 2**64 - 2)
      assert_equal [0, [0, 1, 2].map { |index| [index, Code::SEQUENCE] }], [ack.count, ack.refusals.map { |refusal| [refusal.index, refusal.code] }]
      assert_equal 0, stats[:messages]
    end

    test "numbers in any order are each taken once" do
      sender = client("web")
      numbers = (1..3000).to_a.shuffle(random: Random.new(5))
      together { numbers.each { |number| sender.say(Wire.send_message(to: "q", payload: number.to_s, sequence: number)) } }
      together { numbers.each { |number| sender.say(Wire.send_message(to: "q", payload: number.to_s, sequence: number)) } }
      assert_equal [3000, 3000], [stats[:messages], stats[:duplicates]]
      sender.vanishes
      client("web")
      assert_equal 3000, @welcome.low
    end

    test "who has no identity cannot number messages" do
      assert_refused Code::INVALID, client.sends("q", "x", sequence: 1)
    end

    test "numbers are as durable as their messages: a crash and an orderly end" do
      begin_engine(storage: true)
      sender = client("web")
      sender.sends("q", "1", sequence: 1, level: 1)
      sender.sends("q", "2", sequence: 2, level: 1)
      sender.sends("q", "4", sequence: 4, level: 1)
      crash
      sender = client("web")
      assert_equal 2, @welcome.low
      assert_equal [true, true, false, true], [1, 2, 3, 4].map { |number| sender.sends("q", number.to_s, sequence: number, level: 1).duplicate? }
      restart
      sender = client("web")
      assert_equal 4, @welcome.low
      assert_equal %w[1 2 4 3], client.receives("q").payloads
    end

    test "numbers of messages in memory alone are forgotten with them by a crash, and kept by an orderly end" do
      begin_engine(storage: true)
      sender = client("web")
      sender.sends("q", "1", sequence: 1, level: 0)
      sender.sends("q", "2", sequence: 2, level: 1)
      crash
      sender = client("web")
      assert_equal [false, true], [1, 2].map { |number| sender.sends("q", number.to_s, sequence: number, level: 0).duplicate? }
      sender.sends("q", "3", sequence: 3, level: 0)
      restart
      sender = client("web")
      assert_equal [true] * 3, [1, 2, 3].map { |number| sender.sends("q", number.to_s, sequence: number, level: 0).duplicate? }
      assert_equal %w[1 2 3], client.receives("q").payloads.sort
    end

    test "a number whose message is in memory alone is acknowledged at no higher level when it is repeated" do
      begin_engine(storage: true)
      sender = client("web")
      sender.sends("q", "1", sequence: 1, level: MEMORY)
      sender.sends("q", "2", sequence: 2, level: WRITTEN)
      [WRITTEN, SYNCED].each_with_index do |level, round|
        (1..2).each { |number| sender.say(Wire.send_message(to: "q", payload: number.to_s, sequence: number, level: level, id: 100 + 10 * round + number)) }
        settle
        answers = (1..2).map { |number| assert_taken(sender.answer(100 + 10 * round + number)) }
        assert answers.all?(&:duplicate?)
        assert_equal [MEMORY, level], answers.map(&:level)
      end
      assert_equal [2, 4], [stats[:messages], stats[:duplicates]]
    end

    test "a batch is acknowledged at no higher level than the messages of it that were taken before" do
      begin_engine(storage: true)
      sender = client("web")
      sender.sends("q", "1", sequence: 1, level: MEMORY)
      sender.say(Wire.send_batch(to: "q", messages: [["", "1"], ["", "2"]], sequence: 1, level: SYNCED, id: 101))
      settle
      ack = assert_taken(sender.answer(101))
      assert_equal [true, 2, MEMORY], [ack.duplicate?, ack.count, ack.level]
      sender.say(Wire.send_batch(to: "q", messages: [["", "2"], ["", "3"]], sequence: 2, level: SYNCED, id: 102))
      settle
      ack = assert_taken(sender.answer(102))
      assert_equal [true, 2, SYNCED], [ack.duplicate?, ack.count, ack.level]
      assert_equal 2, stats[:duplicates]
    end

    test "what was in memory alone is as durable as the rest when the broker has stopped in order" do
      begin_engine(storage: true)
      client("web").sends("q", "1", sequence: 1, level: MEMORY)
      restart
      sender = client("web")
      sender.say(Wire.send_message(to: "q", payload: "1", sequence: 1, level: SYNCED, id: 101))
      settle
      ack = assert_taken(sender.answer(101))
      assert_equal [true, SYNCED], [ack.duplicate?, ack.level]
    end

    test "what is written of a sender while it goes on leaves out what is in memory alone" do
      begin_engine(storage: true)
      sender = client("web")
      [1, 2, 3, 4, 5].each { |number| sender.sends("q", number.to_s, sequence: number, level: (number == 3) ? 0 : 1) }
      sender.vanishes
      client("web").vanishes # says HELLO again: what is known is written
      crash
      sender = client("web")
      assert_equal 2, @welcome.low
      assert_equal [true, true, false, true, true], [1, 2, 3, 4, 5].map { |number| sender.sends("q", number.to_s, sequence: number, level: 1).duplicate? }
      assert_equal %w[1 2 4 5 3], client.receives("q").payloads
    end

    test "an epoch is known after a restart" do
      begin_engine(storage: true)
      client("web", epoch: 9).sends("q", "1", sequence: 1, level: WRITTEN)
      client("web", epoch: 10)
      crash
      assert_ended connect.say(Wire.hello(identity: "web", epoch: 10)), Code::FENCED
      client("web", epoch: 11)
      assert_kind_of Frames::Welcome, @welcome
    end

    test "numbers outlive the segments in which their messages were" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client("web")
      reader = client.receives("q", credit: 1000)
      60.times do |i|
        sender.ask(:send_batch, to: "q", messages: Array.new(10) { ["", "x" * 1000] }, sequence: 10 * i + 1)
        settle
        reader.frees(0, 2**63)
        settle
      end
      assert_operator stats[:journal][:segments], :<, 8
      crash
      client("web")
      assert_equal 600, @welcome.low
    end

    test "an identity is forgotten a week after it was last seen" do
      begin_engine(storage: true)
      sender = client("web", epoch: 50)
      sender.sends("q", "1", sequence: 1)
      sender.vanishes
      wait(6.9 * 24 * 3600)
      client("web", epoch: 51).vanishes
      assert_equal 1, @welcome.low
      wait(6.9 * 24 * 3600)
      client("web", epoch: 52).vanishes
      assert_equal 1, @welcome.low
      wait(7.1 * 24 * 3600)
      crash
      client("web", epoch: 1)
      assert_equal 0, @welcome.low
    end
  end
end
