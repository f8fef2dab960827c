# frozen_string_literal: true

# What a QUERY reports (docs/protocol.md, section 9).
module BrokerContract
  tests do
    test "queues are reported with their figures" do
      reader = client.receives("mails", credit: 2)
      sender = client
      sender.sends_all("mails", %w[aa bb cc dd])
      sender.sends("mails", "ee", delay: 5000)
      sender.sends("other", "x")
      sender.sends("web", "x", kind: 1)
      pushes = reader.pushes
      reader.buries(pushes[0])
      reader.credits(1)
      wait(1)
      list = sender.queries(QUEUES)[:queues]
      assert_equal %w[mails other], list.map { |queue| queue[:name] }
      assert_equal({name: "mails", kind: 0, ready: 1, delayed: 1, out: 2, dead: 1, bytes: 10, oldest_ms: 1000, receivers: 1, sent: 5, freed: 0, redelivered: 0,
        failed: 1, crashed: 0, expired: 0}, list.first)
      assert_equal list.first, figures("mails")
      assert_equal %w[other], sender.queries(QUEUES, name: "o")[:queues].map { |queue| queue[:name] }
      assert_equal %w[web], sender.queries(QUEUES, kind: 1)[:queues].map { |queue| queue[:name] }
      assert_equal 1, sender.queries(QUEUES, limit: 1)[:queues].size
      assert_empty sender.queries(QUEUES, name: "nothing")[:queues]
    end

    test "explain says where a message is and why it waits" do
      sender = client
      id = sender.sends("q", "hello", priority: 3, time_to_live: 60_000).value
      wait(2)
      told = sender.queries(EXPLAIN, number: id)
      assert_equal({id: id, queue: "q", kind: 0, state: "ready", age_ms: 2000, priority: 3, level: 0, failures: 0, crashes: 0, returns: 0, bytes: 5, expires_in_ms: 58_000},
        told[:message])
      assert_kind_of String, told[:because]
      refute_empty told[:because]
      delayed = sender.sends("q", "x", delay: 5000).value
      assert_equal ["delayed", 5000], sender.queries(EXPLAIN, number: delayed)[:message].values_at(:state, :due_in_ms)
    end

    test "explain says how long it is until then, though the clock was set meanwhile" do
      sender = client
      delayed = sender.sends("q", "x", delay: 5000).value
      brief = sender.sends("q", "x", time_to_live: 6000).value
      [1_000_000, -2_000_000].each_with_index do |clock, number|
        wait(1, clock: clock)
        assert_in_delta 4000 - 1000 * number, sender.queries(EXPLAIN, number: delayed)[:message][:due_in_ms], 16
        assert_in_delta 5000 - 1000 * number, sender.queries(EXPLAIN, number: brief)[:message][:expires_in_ms], 16
      end
    end

    test "explain says who holds a message, and how long its lease is" do
      reader = client("worker", agent: "test/1").receives("q", lease: 10_000)
      serial = @welcome.session
      id = client.sends("q", "x").value
      wait(4)
      message = client.queries(EXPLAIN, number: id)[:message]
      assert_equal({identity: "worker", session: serial, delivery: reader.pushes.first.id, lease_in_ms: 6000, agent: "test/1"}, message[:holder])
      assert_equal "out", message[:state]
    end

    test "explain says why a letter is dead, and of a queue what stands before its oldest" do
      reader = client.receives("q", credit: 1)
      sender = client
      ids = sender.sends_all("q", %w[a b c]).value
      reader.buries(reader.pushes.first)
      message = sender.queries(EXPLAIN, number: ids)[:message]
      assert_equal ["dead", 3], message.values_at(:state, :reason)
      told = sender.queries(EXPLAIN, name: "q")
      assert_equal ids + 2, told[:message][:id]
      assert_match(/credit/, told[:because])
      sender.sends("lonely", "a")
      assert_match(/nobody/, sender.queries(EXPLAIN, name: "lonely")[:because])
      reader.receives("empty", number: 2)
      assert_equal [:because], sender.queries(EXPLAIN, name: "empty").keys
    end

    test "explain says that a receiver with credit left gets nothing beside a suspect" do
      sender = client
      first = client.receives("q", credit: 1)
      sender.sends_all("q", %w[m0 m1 m2])
      first.frees(first.pushes.first)
      first.holds(first.pushes.first).vanishes
      reader = client.receives("q", credit: 5)
      suspect = reader.pushes
      assert_equal [["m1", true]], suspect.map { |push| [push.payload, push.poison_candidate?] }
      assert_equal "a receiver has a suspect, and gets nothing else until it is done with it", sender.queries(EXPLAIN, name: "q")[:because]
      reader.credits(1)
      assert_equal "no receiver has credit left", sender.queries(EXPLAIN, name: "q")[:because]
      last = sender.sends("q", "m3").value
      assert_match(/\Amessages before it wait/, sender.queries(EXPLAIN, number: last)[:because])
      reader.frees(suspect.first)
      assert_equal %w[m2], reader.payloads
    end

    test "explain says that a receiver with credit left is kept free for a suspect" do
      sender = client
      reader = client.receives("q", credit: 5)
      sender.sends("q", "held")
      held = reader.pushes.first
      reader.credits(0)
      victim = client.receives("q", credit: 1)
      sender.sends("q", "poison")
      victim.holds(victim.pushes.first)
      waiting = sender.sends("q", "waiting").value
      victim.vanishes
      reader.credits(5)
      assert_empty reader.pushes
      assert_equal "its receiver has vanished with it: it waits for one that has nothing else", sender.queries(EXPLAIN, name: "q")[:because]
      assert_equal "a receiver is kept free for a suspect, and gets nothing else before it", sender.queries(EXPLAIN, number: waiting)[:because]
      reader.frees(held)
      assert_equal %w[poison], reader.payloads
    end

    test "explain says that receivers with credit left leave, or do not read" do
      sender = client
      reader = client.receives("q", credit: 100_000)
      reader.room = 0
      30.times { sender.sends_all("q", Array.new(50) { "x" * 1000 }) }
      assert_equal "who has credit left does not read what was sent to it", sender.queries(EXPLAIN, name: "q")[:because]
      reader.vanishes
      leaving = client.receives("other", credit: 5)
      leaving.say(Wire.drain)
      sender.sends("other", "a")
      assert_equal "who has credit left has said that it leaves", sender.queries(EXPLAIN, name: "other")[:because]
    end

    test "explain says of a queue in which all are delayed when the earliest comes" do
      sender = client
      sender.sends("q", "a", delay: 5000)
      earliest = sender.sends("q", "b", delay: 3000).value
      sender.sends("q", "c", delay: 4000)
      told = sender.queries(EXPLAIN, name: "q")
      assert_equal [earliest, "delayed", 3000], told[:message]&.values_at(:id, :state, :due_in_ms)
      assert_match(/time has not come/, told[:because])
      ready = sender.sends("q", "d").value
      assert_equal ready, sender.queries(EXPLAIN, name: "q")[:message][:id]
    end

    test "as many are listed as there are, however many are asked for" do
      begin_engine(storage: true)
      reader = client.receives("q", credit: 10)
      client.sends_all("q", %w[a b c])
      settle
      reader.pushes.each { |push| reader.buries(push) }
      most = 2**32 - 1
      assert_equal 1, reader.queries(QUEUES, limit: most)[:queues].size
      assert_equal 3, reader.queries(DEAD, name: "q", limit: most)[:dead].size
      refute_empty reader.queries(SEGMENTS, limit: most)[:segments]
      assert_equal 2, reader.queries(SESSIONS, limit: most)[:sessions].size
    end

    test "no more than 10,000 are listed, the first of them" do
      large = 64 * 1024 * 1024
      begin_engine(storage: true, max_frame: large, max_queues: 20_000)
      reader = client("", max_frame: large).receives("q", credit: 20_000)
      sender = client("", max_frame: large)
      first = sender.sends_all("q", Array.new(10_001, "")).value
      random = Random.new(1)
      reader.pushes.shuffle(random: random).each { |push| reader.say(Wire.nack(delivery: push.id, kind: 2)) } while figures("q")[:dead] < 10_001
      {0 => 100, 10_001 => 10_000, 2**32 - 1 => 10_000}.each do |limit, most|
        dead = sender.queries(DEAD, name: "q", limit: limit)[:dead]
        assert_equal (first...first + most).to_a, dead.map { |each| each[:id] }
      end
      assert_equal [first + 10_000], sender.queries(DEAD, name: "q", number: first + 9999, limit: 10_001)[:dead].map { |each| each[:id] }
      10_001.times { |i| sender.say(Wire.send_message(to: format("r%05d", i), payload: "")) }
      queues = sender.queries(QUEUES, name: "r", limit: 10_001)[:queues]
      assert_equal [10_000, "r00000", "r09999"], [queues.size, queues.first[:name], queues.last[:name]]
    end

    test "each state has a sentence of its own" do
      begin_engine(max_failures: 1)
      reader = client.receives("q", credit: 3)
      sender = client
      sender.sends_all("q", %w[a b c d])
      sender.sends("q", "e", delay: 1000)
      pushes = reader.pushes
      reader.credits(0)
      reader.buries(pushes[0])
      reader.rejects(pushes[1])
      ids = [pushes[0], pushes[1], pushes[2]].map(&:message) + [pushes[2].message + 1, pushes[2].message + 2]
      sentences = ids.map { |id| sender.queries(EXPLAIN, number: id)[:because] }
      assert_equal sentences.uniq, sentences
    end

    test "dead letters are listed above a number, with the beginning of what they say" do
      reader = client.receives("q", credit: 10)
      properties = Wire::Properties.pack("a" => "b")
      sender = client
      3.times { |i| sender.sends("q", "#{i}#{"\xFF" * 500}", properties: properties) }
      reader.pushes.each { |push| reader.buries(push, reason: "wegen \u00FC") }
      wait(3)
      all = sender.queries(DEAD, name: "q")[:dead]
      assert_equal 3, all.size
      assert_equal [3, "wegen \u00FC", 0, 0, 3000], all[0].values_at(:reason, :words, :failures, :crashes, :age_ms)
      assert_equal ["0" + "\xFF" * 255, 501 + properties.bytesize], [all[0][:payload].unpack1("m0").force_encoding("UTF-8"), all[0][:bytes]]
      assert_equal all.drop(1), sender.queries(DEAD, name: "q", number: all[0][:id])[:dead]
      assert_equal all.first(2), sender.queries(DEAD, name: "q", limit: 2)[:dead]
    end

    test "dead letters are replayed and dropped one by one, in whatever order, and the others stay" do
      begin_engine(storage: true)
      reader = client.receives("q", credit: 4000)
      sender = client
      sender.sends_all("q", Array.new(3000) { |i| "letter #{i}" }, level: 1, id: 99)
      settle
      pushes = reader.pushes
      ids = pushes.map(&:message)
      random = Random.new(1)
      pushes.shuffle(random: random).each { |push| reader.say(Wire.nack(delivery: push.id, kind: 2, reason: "no")) }
      reader.credits(0)
      order = ids.shuffle(random: random)
      order.first(2900).each_with_index do |id, i|
        assert_equal({count: 1}, sender.queries(i.odd? ? REPLAY : DROP, number: id))
        next unless (i % 500).zero?
        assert_equal order.drop(i + 1).sort, sender.queries(DEAD, name: "q", limit: 4000)[:dead].map { |each| each[:id] }
      end
      assert_refused Code::NO_SUCH_MESSAGE, sender.queries(REPLAY, number: order.first)
      assert_equal [1450, 100], figures("q").values_at(:ready, :dead)
      settle
      crash
      left = client
      dead = left.queries(DEAD, name: "q")[:dead]
      assert_equal order.drop(2900).sort, dead.map { |each| each[:id] }
      assert_equal ["no"], dead.map { |each| each[:words] }.uniq
      assert_equal({count: 100}, left.queries(REPLAY, name: "q"))
      waiting = left.receives("q", credit: 4000).pushes
      assert_equal (order.drop(2900) + order.first(2900).select.with_index { |_, i| i.odd? }).sort, waiting.map(&:message).sort
      waiting.each { |push| assert_equal "letter #{ids.index(push.message)}", push.payload }
    end

    test "a dead letter that was replayed alone is delayed, and explained, like any other message" do
      reader = client.receives("q")
      client.sends("q", "a")
      push = reader.pushes.first
      reader.buries(push, reason: "no")
      assert_equal({count: 1}, client.queries(REPLAY, number: push.message))
      again = reader.pushes.first
      assert_equal [push.message, "a", 1, false], [again.message, again.payload, again.attempt, again.redelivered?]
      reader.releases(again, delay: 1000)
      assert_equal [push.message, "delayed"], client.queries(EXPLAIN, number: push.message)[:message].values_at(:id, :state)
      wait(1.1)
      assert_equal %w[a], reader.payloads
      assert_equal [0, 0, 1, 0], figures("q").values_at(:ready, :delayed, :out, :dead)
    end

    test "a report is no larger than the client's frames" do
      reader = client("", max_frame: 4096).receives("q", credit: 200)
      client.sends_all("q", Array.new(100) { "x" * 256 })
      reader.pushes.each { |push| reader.buries(push) }
      id = reader.next_id
      reader.say(Wire.query(what: DEAD, name: "q", id: id))
      document = reader.answer(id).document
      assert_operator document.bytesize, :<=, 4080
      listed = JSON.parse(document)["dead"]
      assert_equal (1..listed.size).to_a, listed.map { |each| each["id"] }
      assert_operator document.bytesize + JSON.generate(listed.last).bytesize + 1, :>, 4080, "one more would have fitted"
    end

    test "purge drops all that wait, and nothing else" do
      reader = client.receives("q", credit: 1)
      sender = client
      sender.sends_all("q", %w[a b c])
      sender.sends("q", "d", delay: 1000)
      sender.sends("q", "e", priority: 9)
      sender.sends("other", "x")
      assert_equal({count: 4}, sender.queries(PURGE, name: "q"))
      push = reader.pushes.first
      assert_equal "a", push.payload
      reader.releases(push)
      assert_equal %w[a], reader.payloads
      sender.sends("q", "new")
      reader.credits(5)
      assert_equal %w[new], reader.payloads
      assert_equal 1, figures("other")[:ready]
    end

    test "sessions are reported" do
      client("worker", agent: "test/1").receives("q").receives("r", number: 2)
      serial = @welcome.session
      sender = client
      sender.sends("q", "a")
      sessions = sender.queries(SESSIONS)[:sessions]
      assert_equal 2, sessions.size
      assert_equal({session: serial, identity: "worker", agent: "test/1", address: "192.0.2.1", out: 1, unanswered: 0, subscriptions: 2}, sessions.find { |each| each[:session] == serial })
      assert_equal 1, sender.queries(SESSIONS, limit: 1)[:sessions].size
    end

    test "segments are reported with what holds each" do
      assert_empty client.queries(SEGMENTS)[:segments]
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      ids = Array.new(30) { sender.sends("q", "x" * 5000, level: 1, id: 7).tap { settle }&.value }
      segments = sender.queries(SEGMENTS)[:segments]
      assert_operator segments.size, :>=, 3
      assert_equal 30, segments.sum { |segment| segment[:live] }
      assert_equal SEGMENT, segments.first[:bytes]
      assert_equal({id: ids.first, queue: "q"}, segments.first[:oldest])
      assert_equal segments.first[:number], sender.queries(EXPLAIN, number: ids.first)[:message][:segment]
      begin_engine(storage: true)
      sender = client
      sender.queries(PURGE, name: "q")
      id = sender.sends("me", "x", kind: 1, level: 1, id: 7).tap { settle }&.value || sender.answer(7).value
      assert_includes sender.queries(SEGMENTS)[:segments].filter_map { |segment| segment[:oldest] }, {id: id, queue: "@me"}
    end

    test "a QUERY of what there is not is refused" do
      asking = client
      invalid = Code::INVALID
      [0, 9, 255].each { |what| assert_refused invalid, asking.queries(what) }
      assert_refused invalid, asking.queries(QUEUES, kind: 2)
      [EXPLAIN, DEAD, REPLAY, DROP, PURGE].each do |what|
        assert_refused Code::NO_SUCH_QUEUE, asking.queries(what, name: "nothing")
      end
      [EXPLAIN, REPLAY, DROP].each do |what|
        assert_refused Code::NO_SUCH_MESSAGE, asking.queries(what, number: 4711)
      end
      id = asking.sends("q", "a").value
      assert_refused Code::NO_SUCH_MESSAGE, asking.queries(DROP, number: id)
    end
  end
end
