# frozen_string_literal: true

# Subscriptions, credit, leases and FREE (docs/protocol.md, section 7).
module BrokerContract
  tests do
    test "free receivers of a queue get messages in turn" do
      readers = Array.new(3) { client.receives("q") }
      sender = client
      9.times { |i| sender.sends("q", i.to_s) }
      assert_equal [%w[0 3 6], %w[1 4 7], %w[2 5 8]], readers.map(&:payloads)
    end

    test "credit says how much may be out" do
      reader = client.receives("q", credit: 2)
      client.sends_all("q", %w[a b c d e])
      first = reader.pushes
      assert_equal %w[a b], first.map(&:payload)
      reader.frees(first[0])
      assert_equal %w[c], reader.payloads
      reader.credits(4)
      assert_equal %w[d e], reader.payloads
    end

    test "credit is absolute, and no message of it is a pause" do
      reader = client.receives("q", credit: 0)
      sender = client
      sender.sends_all("q", %w[a b c])
      assert_empty reader.payloads
      reader.credits(1)
      push = reader.pushes.first
      assert_equal "a", push.payload
      reader.credits(1)
      assert_empty reader.payloads
      reader.credits(0)
      assert_equal 1, reader.frees(push).count
      assert_empty reader.payloads
      reader.credits(2)
      assert_equal %w[b c], reader.payloads
      reader.credits(1)
      sender.sends("q", "d")
      assert_empty reader.payloads
    end

    test "credit in bytes counts properties and payload" do
      reader = client.receives("q", credit: 100, credit_bytes: 10)
      properties = Wire::Properties.pack("a" => "b")
      sender = client
      sender.sends("q", "12345")
      sender.sends("q", "6", properties: properties)
      sender.sends("q", "x")
      first = reader.pushes
      assert_equal %w[12345], first.map(&:payload)
      reader.frees(first.last)
      second = reader.pushes
      assert_equal %w[6 x], second.map(&:payload)
    end

    test "a message that is larger than the credit in bytes is delivered when nothing else is out" do
      reader = client.receives("q", credit: 10, credit_bytes: 10)
      client.sends_all("q", ["a" * 100, "b" * 100, "c"])
      3.times do |i|
        pushes = reader.pushes
        assert_equal 1, pushes.size, i.to_s
        reader.frees(pushes.first)
      end
      assert_empty reader.pushes
    end

    test "nothing overtakes a message for which no receiver has credit in bytes, and it waits no longer than until one has nothing out" do
      readers = Array.new(2) { client.receives("q", credit: 10, credit_bytes: 10) }
      sender = client
      sender.sends_all("q", %w[one2345 two2345])
      first = readers.map { |reader| reader.pushes.first }
      sender.sends_all("q", ["x" * 100, "s", "t"])
      assert_equal [[], []], readers.map(&:payloads)
      readers[1].frees(first[1])
      assert_equal [%w[s t], ["x" * 100]], readers.map(&:payloads)
    end

    test "who has no credit in bytes for the message whose turn it is has it for one that goes before" do
      reader = client.receives("q", credit: 10, credit_bytes: 10)
      sender = client
      sender.sends_all("q", ["12345678", "x" * 100])
      assert_equal %w[12345678], reader.payloads
      sender.sends("q", "9", priority: 9)
      assert_equal %w[9], reader.payloads
    end

    test "when a message that was too large is gone, those behind it come" do
      small = client("", max_frame: 4096).receives("q", credit: 10, credit_bytes: 11)
      able = client.receives("q", credit: 1)
      sender = client
      sender.sends_all("q", %w[12345678 busy])
      sender.sends("q", "x" * 100, time_to_live: 1000)
      sender.sends("q", "s")
      assert_equal [%w[12345678], %w[busy]], [small.payloads, able.payloads]
      wait(1.1)
      assert_equal %w[s], small.payloads
      sender.sends("q", "x" * 5000, time_to_live: 1000)
      sender.sends("q", "t")
      assert_empty small.payloads
      wait(1.1)
      assert_equal %w[t], small.payloads
      sender.sends("q", "x" * 5000)
      sender.sends("q", "u")
      assert_equal 2, sender.queries(PURGE, name: "q")[:count]
      sender.sends("q", "v")
      assert_equal %w[v], small.payloads
    end

    test "credit in bytes can be set anew" do
      reader = client.receives("q", credit: 10, credit_bytes: 1)
      client.sends_all("q", %w[aa bb cc])
      assert_equal %w[aa], reader.payloads
      reader.credits(10, bytes: 4)
      assert_equal %w[bb], reader.payloads
      reader.credits(10, bytes: 0)
      assert_equal %w[cc], reader.payloads
    end

    test "who has no credit is passed over" do
      full = client.receives("q", credit: 1)
      free = client.receives("q", credit: 10)
      client.sends_all("q", %w[a b c d])
      assert_equal [%w[a], %w[b c d]], [full.payloads, free.payloads]
    end

    test "a message is not sent to who takes no such frame, but to another" do
      small = client("", max_frame: 4096).receives("q")
      large = client.receives("q")
      sender = client
      3.times { sender.sends("q", "x" * 5000) }
      assert_equal [0, 3], [small.payloads.size, large.payloads.size]
      2.times { sender.sends("q", "small") }
      assert_includes small.payloads + [], "small"
      large.vanishes
      small.take { true }
      sender.sends("other", "x" * 4048)
      small.receives("other", number: 2)
      assert_equal 1, small.payloads.count { |payload| payload.bytesize == 4048 }
    end

    test "a message that no receiver takes holds up no other, and comes first to one that does" do
      small = client("", max_frame: 4096).receives("q")
      sender = client
      sender.sends("q", "L" * 5000, time_to_live: 10_000)
      sender.sends_all("q", ["a", "M" * 6000, "b"])
      assert_equal %w[a b], small.payloads
      assert_equal 2, figures("q")[:ready]
      told = sender.queries(EXPLAIN, name: "q")
      assert_equal 5004, told[:message][:bytes] + 4
      assert_match(/size/, told[:because])
      sender.sends("q", "c")
      assert_equal %w[c], small.payloads
      medium = client("", max_frame: 5500).receives("q", credit: 1)
      assert_equal ["L" * 5000], medium.payloads
      small.credits(0)
      sender.sends("q", "d")
      large = client.receives("q")
      assert_equal ["M" * 6000, "d"], large.payloads
      assert_equal 0, figures("q")[:ready]
    end

    test "nor does one that is only for a receiver that pauses, or goes" do
      small = client("", max_frame: 4096).receives("q")
      large = client.receives("q", credit: 1)
      sender = client
      sender.sends_all("q", %w[a b])
      assert_equal [%w[a], %w[b]], [small.payloads, large.payloads]
      sender.sends_all("q", ["x" * 5000, "c"])
      assert_empty small.payloads
      large.credits(0)
      assert_equal %w[c], small.payloads
      sender.sends("q", "d")
      assert_equal %w[d], small.payloads
      large.credits(2)
      taken = large.pushes
      assert_equal ["x" * 5000], taken.map(&:payload)
      large.frees(taken.first)
      large.credits(1)
      sender.sends_all("q", ["y" * 5000, "e"])
      assert_empty small.payloads
      large.ask(:unsubscribe, subscription: 1)
      assert_equal %w[e], small.payloads
      assert_equal 1, figures("q")[:ready]
    end

    test "what no receiver takes expires, is purged and is kept as everything else" do
      begin_engine(storage: true)
      client("", max_frame: 4096).receives("q")
      sender = client
      large = Array.new(4) { |i| i.to_s * 5000 }
      sender.sends("q", large[0], time_to_live: 1000)
      first = sender.queries(EXPLAIN, name: "q")[:message][:id]
      large.drop(1).each { |payload| sender.sends("q", payload, level: 1, id: 50) }
      settle
      assert_equal 4, figures("q")[:ready]
      wait(1.1)
      assert_equal [3, 1], figures("q").values_at(:ready, :expired)
      assert_equal first + 1, sender.queries(EXPLAIN, name: "q")[:message][:id]
      crash
      assert_equal large.drop(1), client.receives("q").payloads
      begin_engine
      client("", max_frame: 4096).receives("q")
      client.sends_all("q", large)
      assert_equal 4, client.queries(PURGE, name: "q")[:count]
      assert_empty client.receives("q").payloads
    end

    test "a client has subscriptions to as many queues as it likes, each with its number" do
      reader = client.receives("a", number: 1).receives("b", number: 65_535)
      sender = client
      sender.sends("b", "to b")
      sender.sends("a", "to a")
      assert_equal [[65_535, "to b"], [1, "to a"]], reader.pushes.map { |push| [push.subscription, push.payload] }
    end

    test "a subscription that is not allowed is refused" do
      reader = client.receives("q")
      invalid = Code::INVALID
      assert_refused invalid, reader.ask(:subscribe, subscription: 0, name: "q")
      assert_refused invalid, reader.ask(:subscribe, subscription: 1, name: "other")
      assert_refused invalid, reader.ask(:subscribe, subscription: 2, name: "")
      assert_refused invalid, reader.ask(:subscribe, subscription: 2, name: "a\tb")
      assert_refused invalid, reader.ask(:subscribe, subscription: 2, name: "q", kind: 2)
      assert_refused Code::NO_SUCH_SUBSCRIPTION, reader.ask(:unsubscribe, subscription: 2)
      assert_refused Code::NO_SUCH_SUBSCRIPTION, reader.credits(5, number: 2)
      assert_equal 1, figures("q")[:receivers]
    end

    test "after UNSUBSCRIBE nothing more is delivered, and what is out stays out" do
      reader = client.receives("q", credit: 1)
      client.sends_all("q", %w[a b])
      push = reader.pushes.first
      assert_taken reader.ask(:unsubscribe, subscription: 1)
      assert_equal 1, reader.frees(push).count
      assert_empty reader.pushes
      assert_equal [1, 0, 0], figures("q").values_at(:ready, :out, :receivers)
      reader.receives("q", number: 1)
      assert_equal %w[b], reader.payloads
    end

    test "what is freed is done with" do
      reader = client.receives("q")
      client.sends("q", "a")
      ack = reader.frees(reader.pushes.first)
      assert_equal [7, 0, 1], [ack.request, ack.level, ack.count]
      reader.vanishes
      assert_empty client.receives("q").payloads
      assert_equal [0, 1, 1], [stats[:messages], stats[:freed], figures("q")[:freed]]
    end

    test "FREE is acknowledged at the level that it asks for" do
      begin_engine(storage: true)
      reader = client.receives("q")
      sender = client
      4.times { |i| sender.sends("q", i.to_s) }
      pushes = reader.pushes
      assert_equal 1, reader.frees(pushes[0]).level
      assert_equal 0, reader.frees(pushes[1], level: 0).level
      assert_equal 1, reader.frees(pushes[2], level: 1).level
      assert_nil reader.frees(pushes[3], level: 2, id: 99)
      settle
      assert_equal 2, reader.answer(99).level
    end

    test "a range of deliveries is freed, on whatever subscription, and those that are not out are passed over" do
      reader = client.receives("a", number: 1).receives("b", number: 2)
      sender = client
      6.times { |i| sender.sends(i.even? ? "a" : "b", i.to_s) }
      pushes = reader.pushes
      assert_equal %w[0 1 2 3 4 5], pushes.map(&:payload)
      assert_equal 1, reader.frees(pushes[1]).count
      assert_equal 2, reader.frees(pushes[0], pushes[2]).count
      assert_equal 0, reader.frees(pushes[0], pushes[2]).count
      assert_equal 2, reader.frees(0, pushes[4]).count
      assert_equal 1, reader.frees(0, 2**64 - 1).count
      assert_equal 0, reader.frees(1, 2**63).count
      assert_refused Code::INVALID, reader.frees(9, 8)
      assert_equal 0, stats[:messages]
    end

    test "a delivery of somebody else, or none, is stale" do
      one = client.receives("q")
      other = client
      client.sends("q", "a")
      push = one.pushes.first
      %i[frees touches releases rejects buries].each do |verb|
        [push.id, 0, push.id + 1].each do |id|
          next if verb == :frees && id.zero?
          error = assert_refused(Code::STALE, other.public_send(verb, id))
          assert_equal id, error.delivery
        end
      end
      assert_equal 1, stats[:out]
      other.say(Wire.free(first: push.id))
      assert_equal [[0, push.id]], other.errors.map { |error| [error.id, error.delivery] }
      assert_operator stats[:stale], :>=, 10
    end

    test "when a lease has ended the message is somebody else's" do
      one = client.receives("q", lease: 1000, credit: 1)
      client.sends("q", "a")
      first = one.pushes.first
      assert_equal 1000, first.lease
      wait(0.9)
      assert_empty one.pushes
      two = client.receives("q", lease: 5000)
      one.credits(0)
      wait(0.3)
      second = two.pushes.first
      assert_equal ["a", first.message, 2, 1, true, true, 5000], [second.payload, second.message, second.attempt, second.crashes, second.redelivered?, second.poison_candidate?, second.lease]
      refute_equal first.id, second.id
      %i[frees touches rejects].each { |verb| assert_refused Code::STALE, one.public_send(verb, first) }
      assert_equal 1, two.frees(second).count
    end

    test "the same receiver's next delivery has another number" do
      reader = client.receives("q", lease: 1000)
      client.sends("q", "a")
      first = reader.pushes.first
      wait(1.5)
      assert_refused Code::STALE, reader.frees(first)
      second = reader.pushes.first
      assert_equal first.id + 1, second.id
      assert_equal 1, reader.frees(second).count
    end

    test "a lease is the one that was asked for, the broker's usual, or the longest that there is" do
      begin_engine(lease: 7000, lease_most: 60_000)
      reader = client.receives("a", number: 1).receives("b", number: 2, lease: 3_600_000)
      sender = client
      sender.sends("a", "x")
      sender.sends("b", "x")
      assert_equal [7000, 60_000], reader.pushes.map(&:lease)
    end

    test "TOUCH lets leases begin anew" do
      reader = client.receives("q", lease: 1000)
      client.sends_all("q", %w[a b])
      pushes = reader.pushes
      wait(0.8)
      ack = reader.touches(pushes[0])
      assert_equal [9, 1, 1000], [ack.request, ack.count, ack.value]
      wait(0.5)
      assert_refused Code::STALE, reader.frees(pushes[1])
      assert_equal 1, reader.touches(pushes[0], lease: 10_000).count
      wait(9)
      assert_equal 1, reader.frees(pushes[0]).count
    end

    test "TOUCH of a range passes over what is not out" do
      reader = client.receives("q", lease: 1000)
      client.sends_all("q", %w[a b c])
      pushes = reader.pushes
      reader.frees(pushes[1])
      ack = reader.touches(0, pushes[2], lease: 4000)
      assert_equal [2, 4000], [ack.count, ack.value]
      assert_equal 0, reader.touches(1, 2).count
      wait(3)
      assert_equal 2, reader.frees(0, pushes[2]).count
    end

    test "an ACK for what is not out changes nothing" do
      reader = client.receives("q")
      reader.holds(5)
      assert_empty reader.frames
      client.sends("q", "a")
      assert_equal %w[a], reader.payloads
    end

    test "a receiver that takes nothing is listened to, and no more than so much waits for it" do
      reader = client.receives("q", credit: 100_000)
      first = (@welcome.session << 36) + 1
      reader.room = 0
      sender = client
      100.times { sender.sends_all("q", Array.new(50) { "x" * 1000 }) }
      out = figures("q")[:out]
      assert_includes 1..1500, out
      refute @engine.full?(reader.session)
      out.times { |i| reader.say(Wire.free(first: first + i, last: first + i)) }
      refute @engine.full?(reader.session)
      assert_equal [out, 0, 5000 - out], figures("q").values_at(:freed, :out, :ready)
      assert_equal out, stats[:delivered]
      reader.room = nil
      @engine.writable(reader.session)
      deliver
      assert_equal 5000, reader.payloads.size
      assert_equal 5000, stats[:delivered]
    end

    test "one large delivery alone does not stop the reading" do
      begin_engine(max_frame: 16 * 1024 * 1024)
      reader = client("", max_frame: 16 * 1024 * 1024).receives("q", credit: 100_000)
      reader.room = 0
      client.sends("q", "x" * (15 * 1024 * 1024))
      assert_equal 1, figures("q")[:out]
      refute @engine.full?(reader.session)
    end

    test "who asks and takes no answers is read from no more, until it does" do
      sender = client
      100.times { |i| sender.sends("q#{i}".ljust(250, "x"), "x") }
      asking = client
      asking.room = 0
      asked = (1..10_000).find do |id|
        asking.say(Wire.query(what: QUEUES, id: id))
        @engine.full?(asking.session)
      end
      assert asked
      asking.room = nil
      @engine.writable(asking.session)
      deliver
      refute @engine.full?(asking.session)
      assert_equal asked, asking.take { |frame| frame.is_a?(Frames::Report) }.size
    end

    test "a receiver whose socket takes nothing holds up nobody else" do
      slow = client.receives("q", credit: 100_000)
      slow.room = 0
      quick = client.receives("q", credit: 100_000)
      sender = client
      40.times { sender.sends_all("q", Array.new(50) { "x" * 1000 }) }
      assert_operator quick.payloads.size, :>, 1000
      assert_operator figures("q")[:out], :==, 2000
      assert_operator stats[:delivered], :==, 2000
      slow.room = nil
      @engine.writable(slow.session)
      deliver
      assert_operator slow.payloads.size, :>, 100
    end
  end
end
