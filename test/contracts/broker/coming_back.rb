# frozen_string_literal: true

# Messages that come back: NACK, crashes, suspects, dead letters (docs/protocol.md, section 8).
module BrokerContract
  tests do
    test "what is released waits again, and counts as nothing" do
      reader = client.receives("q", credit: 1)
      client.sends_all("q", %w[a b])
      ack = reader.releases(reader.pushes.first)
      assert_equal 8, ack.request
      push = reader.pushes.first
      assert_equal ["a", 2, 0, 0, true, false], [push.payload, push.attempt, push.failures, push.crashes, push.redelivered?, push.poison_candidate?]
      assert_equal 1, stats[:released]
    end

    test "what is rejected counts its failures" do
      reader = client.receives("q")
      client.sends("q", "a")
      reader.rejects(reader.pushes.first)
      push = reader.pushes.first
      assert_equal [2, 1, 0, true, false], [push.attempt, push.failures, push.crashes, push.redelivered?, push.poison_candidate?]
      assert_equal [1, 1], [stats[:failed], figures("q")[:failed]]
    end

    test "what comes back is delivered before what was never delivered, in its old order" do
      reader = client.receives("q", credit: 3)
      sender = client
      %w[a b c d e].each { |payload| sender.sends("q", payload) }
      sender.sends("q", "high", priority: 9)
      a, b, c = reader.pushes
      together do
        reader.say(Wire.credit(subscription: 1, credit: 0))
        [c, a, b].each { |push| reader.say(Wire.nack(delivery: push.id)) }
      end
      reader.credits(6)
      assert_equal %w[high a b c d e], reader.payloads
    end

    test "what comes back later is delivered then" do
      reader = client.receives("q", credit: 1)
      client.sends_all("q", %w[a b])
      reader.rejects(reader.pushes.first, delay: 2000)
      assert_equal %w[b], reader.pushes.map(&:payload).tap { reader.frees(0, 2**63) }
      assert_equal [0, 1], figures("q").values_at(:ready, :delayed)
      wait(1.9)
      assert_empty reader.payloads
      wait(0.2)
      assert_equal %w[a], reader.payloads
    end

    test "a message that has failed as often as the queue allows is dead" do
      begin_engine(max_failures: 3)
      reader = client.receives("q")
      id = client.sends("q", "a").value
      3.times { |i| reader.rejects(reader.pushes.first, reason: "failure #{i}") }
      assert_empty reader.pushes
      letter = reader.queries(DEAD, name: "q")[:dead].first
      assert_equal [id, 1, "failure 2", 3, 0], letter.values_at(:id, :reason, :words, :failures, :crashes)
      assert_equal [1, 1], [stats[:dead], figures("q")[:dead]]
    end

    test "a receiver may say that a message is dead" do
      reader = client.receives("q")
      client.sends("q", "a")
      reader.buries(reader.pushes.first, reason: "schlecht")
      assert_empty reader.pushes
      assert_equal [3, "schlecht"], reader.queries(DEAD, name: "q")[:dead].first.values_at(:reason, :words)
    end

    test "a NACK that is not allowed changes nothing" do
      reader = client.receives("q")
      client.sends("q", "a")
      push = reader.pushes.first
      assert_refused Code::INVALID, reader.releases(push, kind: 3)
      assert_refused Code::INVALID, reader.rejects(push, reason: "x" * 1025)
      assert_refused Code::INVALID, reader.rejects(push, reason: "\xFF")
      assert_taken reader.rejects(push, reason: "x" * 1024)
    end

    test "of a receiver that vanishes and never says ACK, the oldest on each subscription is suspect, and the others were in no one's hand" do
      reader = client.receives("a", number: 1).receives("b", number: 2)
      sender = client
      %w[a1 a2].each { |payload| sender.sends("a", payload) }
      %w[b1 b2].each { |payload| sender.sends("b", payload) }
      reader.vanishes
      %w[a b].each do |queue|
        other = client.receives(queue, credit: 1)
        seen = Array.new(2) { other.pushes.first.tap { |push| other.frees(push) } }
        assert_equal [["#{queue}1", 1, true], ["#{queue}2", 0, false]], seen.map { |push| [push.payload, push.crashes, push.poison_candidate?] }.sort
        assert_equal [[2, true]], seen.map { |push| [push.attempt, push.redelivered?] }.uniq
      end
      assert_equal 2, stats[:crashed]
    end

    test "a receiver that says ACK has in hand what it said ACK for, and nothing else" do
      reader = client.receives("q")
      client.sends_all("q", %w[a b c d])
      pushes = reader.pushes
      reader.holds(pushes[1]).holds(pushes[3])
      reader.frees(pushes[3])
      reader.vanishes
      other = client.receives("q", credit: 1)
      seen = Array.new(3) { other.pushes.first.tap { |push| other.frees(push) } }
      assert_equal [["a", 0], ["b", 1], ["c", 0]], seen.map { |push| [push.payload, push.crashes] }.sort
    end

    test "who says DRAIN and closes has crashed with nothing, and gets nothing more" do
      reader = client.receives("q", credit: 2)
      sender = client
      sender.sends_all("q", %w[a b c])
      pushes = reader.pushes
      reader.say(Wire.drain)
      assert_equal 1, reader.frees(pushes[0]).count
      assert_empty reader.pushes
      reader.vanishes
      other = client.receives("q")
      assert_equal [["b", 0], ["c", 0]], other.pushes.map { |push| [push.payload, push.crashes] }
    end

    test "a suspect is delivered alone, to a receiver that has nothing else" do
      client.receives("q", credit: 1).tap { |reader| client.sends("q", "poison") && reader.pushes }.vanishes
      reader = client
      sender = client
      sender.sends_all("other", %w[x])
      reader.receives("q", credit: 10)
      push = reader.pushes
      assert_equal [["poison", true]], push.map { |each| [each.payload, each.poison_candidate?] }
      sender.sends_all("q", %w[a b])
      assert_empty reader.pushes
      reader.frees(push.first)
      assert_equal %w[a b], reader.payloads
    end

    test "while a suspect waits one receiver is kept free for it, and the others go on" do
      one = client.receives("q", credit: 2)
      numbers = {one => @welcome.session}
      two = client.receives("q", credit: 2)
      numbers[two] = @welcome.session
      victim = client.receives("q", credit: 1)
      sender = client
      5.times { |i| sender.sends("q", i.to_s) }
      kept = one.pushes + two.pushes
      assert_equal 4, kept.size
      poison = victim.pushes.first.payload
      victim.vanishes
      20.times { |i| sender.sends("q", "more #{i}") }
      suspects = []
      ordinary = []
      200.times do
        [one, two].each do |reader|
          fresh = reader.pushes + kept.select { |push| push.id >> 36 == numbers[reader] }
          kept -= fresh
          fresh.each do |push|
            (push.poison_candidate? ? suspects : ordinary) << push.payload
            reader.frees(push)
          end
        end
      end
      assert_equal [poison], suspects
      assert_equal 24, ordinary.size
      assert_equal 0, stats[:messages]
    end

    test "when the receiver that was kept free leaves, another is" do
      client.receives("q", credit: 1).tap { |reader| client.sends("q", "poison") && reader.pushes }.vanishes
      sender = client
      sender.sends_all("z", %w[x])
      busy = client.receives("q2", credit: 5)
      assert_empty busy.pushes
      one = client
      one.receives("q", credit: 0)
      assert_empty one.pushes
      one.credits(2)
      assert_equal %w[poison], one.payloads
      one.vanishes
      two = client.receives("q", credit: 2)
      assert_equal [["poison", 2]], two.pushes.map { |push| [push.payload, push.crashes] }
    end

    test "a message that has crashed as often as the queue allows is dead" do
      begin_engine(max_crashes: 2)
      id = client.sends("q", "poison").value
      2.times { client.receives("q").tap(&:pushes).vanishes }
      reader = client.receives("q")
      assert_empty reader.pushes
      assert_equal [[id, 2, 2, 0]], reader.queries(DEAD, name: "q")[:dead].map { |letter| letter.values_at(:id, :reason, :crashes, :failures) }
    end

    test "a lease that ends counts as a crash" do
      begin_engine(max_crashes: 2)
      reader = client.receives("q", lease: 1000)
      client.sends("q", "a")
      wait(1.1)
      reader.credits(100)
      assert_equal [1, 2], reader.pushes.map(&:crashes).last.then { |crashes| [crashes, stats[:delivered]] }
      wait(1.1)
      reader.credits(100)
      assert_empty reader.pushes
      assert_equal [1, 0], [stats[:dead], stats[:out]]
    end

    test "dead letters are replayed, one or all, with no failures and no crashes" do
      begin_engine(max_failures: 1)
      reader = client.receives("q")
      client.sends_all("q", %w[a b c])
      reader.pushes.each { |push| reader.rejects(push) }
      dead = reader.queries(DEAD, name: "q")[:dead]
      assert_equal 3, dead.size
      assert_equal({count: 1}, reader.queries(REPLAY, number: dead[1][:id]))
      push = reader.pushes.first
      assert_equal ["b", 0, 0], [push.payload, push.failures, push.crashes]
      reader.frees(push)
      assert_refused Code::NO_SUCH_MESSAGE, reader.queries(REPLAY, number: dead[1][:id])
      assert_equal({count: 2}, reader.queries(REPLAY, name: "q"))
      assert_equal %w[a c], reader.payloads
      assert_equal 0, stats[:dead]
    end

    test "dead letters are dropped by hand, one or all" do
      reader = client.receives("q")
      client.sends_all("q", %w[a b c])
      reader.pushes.each { |push| reader.buries(push) }
      dead = reader.queries(DEAD, name: "q")[:dead]
      assert_equal({count: 1}, reader.queries(DROP, number: dead[0][:id]))
      assert_equal({count: 2}, reader.queries(DROP, name: "q"))
      assert_equal({count: 0}, reader.queries(DROP, name: "q"))
      assert_equal [0, 0], [stats[:messages], stats[:bytes]]
    end
  end
end
