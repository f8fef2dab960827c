# frozen_string_literal: true

require "test_helper"
require "support/broker_script"
require "timeout"

# How the client receives, against a broker that follows a script.
class BrokerClientReceiverTest < Minitest::Test
  include BrokerScript

  # A broker that delivers these, and tells what it hears.
  def delivering(*pushes, **welcome)
    heard = Queue.new
    broker(lambda do |peer|
      peer.welcome(**welcome)
      frame = peer.read
      heard << frame
      peer.write(Wire.ack(id: frame.id, request: 4))
      pushes.each { |fields| peer.push(subscription: frame.subscription, **fields) }
      serve(peer, heard)
    end)
    heard
  end

  test "SUBSCRIBE says credit, lease and queue, and a delivery has all that PUSH says" do
    heard = delivering({payload: "caf\u00E9", message: 42, attempt: 3, failures: 1, crashes: 1, priority: 7, redelivered: true, poison_candidate: true, lease: 1500,
                        properties: Wire::Properties.pack("reply-to" => "ann")})
    receiver = client.receiver("books", credit: 5, credit_bytes: 1000, lease: 1.5)
    frame = next_of(heard, :SUBSCRIBE)
    assert_equal ["books", 0, 5, 1000, 1500], [frame.name, frame.kind, frame.credit, frame.credit_bytes, frame.lease]
    delivery = receiver.receive(timeout: 60)
    assert_equal ["caf\u00E9", Encoding::UTF_8, {"reply-to" => "ann"}, "ann", "books"], [delivery.payload, delivery.payload.encoding, delivery.properties, delivery[:"reply-to"], delivery.queue]
    assert_equal [42, 1, 3, 1, 1, 7, 1.5, 1_700_000_000], [delivery.id, number(delivery.number), delivery.attempt, delivery.failures, delivery.crashes, delivery.priority, delivery.lease, delivery.sent_at.to_i]
    assert_equal [true, true, false, false], [delivery.redelivered?, delivery.poison_candidate?, delivery.stale?, delivery.settled?]
    refute_includes delivery.inspect, "caf"
  end

  test "the client's own queue is subscribed to by its kind" do
    heard = delivering({})
    assert_equal "ann", client(identity: "ann").receiver.queue
    assert_equal [1, ""], next_of(heard, :SUBSCRIBE).then { |frame| [frame.kind, frame.name] }
  end

  test "a client without an identity has no queue of its own" do
    delivering
    assert_raises(ArgumentError) { client(identity: "").receiver }
  end

  test "a subscription that is refused raises" do
    broker(->(peer) { peer.welcome.then { peer.refuse(peer.read, Code::FORBIDDEN, "not yours") }.then { serve(peer) } })
    assert_match(/not yours/, assert_raises(Client::Forbidden) { client.subscribe("q") { nil } }.message)
  end

  test "a subscription that is taken away later raises for those who wait" do
    gate = Queue.new
    broker(lambda do |peer|
      peer.welcome
      number = peer.accept_subscription
      gate.pop
      peer.write(Wire.error(code: Code::FORBIDDEN, sentence: "not any more", subscription: number, scope: 1))
      serve(peer)
    end)
    errors = Queue.new
    subscription = client(on_error: ->(error) { errors << error }).subscribe("q") { nil }
    gate << true
    assert_raises(Client::Forbidden) { subscription.join }
    assert_kind_of Client::Forbidden, Timeout.timeout(60) { errors.pop }
    assert_predicate subscription, :closed?
  end

  test "the broker is told what was taken, acknowledged, released and rejected" do
    heard = delivering({}, {message: 8}, {message: 9})
    receiver = client.receiver("q")
    deliveries = Array.new(3) { receiver.receive(timeout: 60) }
    assert_equal [1, 2, 3], Array.new(3) { number(next_of(heard, :ACK).id) }
    assert_equal :unconfirmed, deliveries[1].ack(level: :synced)
    assert_equal false, deliveries[1].ack
    assert_predicate deliveries[1], :settled?
    assert_equal [2, 2, 3], next_of(heard, :FREE).then { |frame| [number(frame.first), number(frame.last), frame.level] }
    assert_equal :unconfirmed, deliveries[0].release(delay: 0.5)
    assert_equal :unconfirmed, deliveries[2].reject("no \xFF such book", delay: 1)
    nacks = Array.new(2) { next_of(heard, :NACK) }
    assert_equal [[1, 0, 500, ""], [3, 1, 1000, "no ? such book"]], nacks.map { |frame| [number(frame.delivery), frame.kind, frame.delay, frame.reason] }
    assert_equal false, deliveries[0].dead("x")
  end

  test "an acknowledgement that no caller waits for is sent long before its lease is renewed" do
    heard = delivering({lease: 3_600_000})
    assert_equal :unconfirmed, client.receiver("q").receive(timeout: 5).ack
    assert_equal [1, 1], next_of(heard, :FREE).then { |frame| [number(frame.first), number(frame.last)] }
  end

  test "a dead letter gets a reason that fits" do
    heard = delivering({})
    client.receiver("q").receive(timeout: 60).dead("\u00E9" * 1000)
    assert_equal [2, "\u00E9" * 512], next_of(heard, :NACK).then { |frame| [frame.kind, frame.reason.dup.force_encoding("UTF-8")] }
  end

  test "a delivery that the broker calls stale is stale, and to wait for its end says so" do
    heard = Queue.new
    broker(lambda do |peer|
      peer.welcome
      number = peer.accept_subscription
      2.times { peer.push(subscription: number) }
      2.times do
        frame = peer.read_until(:FREE)
        peer.write(Wire.error(id: frame.id, code: Code::STALE, sentence: "over", delivery: frame.first))
      end
      serve(peer, heard)
    end)
    receiver = client.receiver("q")
    first, second = Array.new(2) { receiver.receive(timeout: 60) }
    assert_equal false, first.ack(wait: true)
    assert_predicate first, :stale?
    assert_equal :unconfirmed, second.ack(level: :written)
    Timeout.timeout(60) { Thread.pass until heard.empty? }
    assert_equal false, second.ack
  end

  test "what a delivery is told is true when, and only when, the broker has said so" do
    heard = Queue.new
    broker(lambda do |peer|
      peer.welcome
      number = peer.accept_subscription
      10.times { peer.push(subscription: number) }
      loop do
        frame = peer.read
        heard << frame
        next if frame.is_a?(Wire::Frames::Receipt)
        peer.write(frame.is_a?(Wire::Frames::Ping) ? Wire.receipt(id: frame.id) : Wire.ack(id: frame.id, request: 7, count: 1)) if frame.id > 0
      end
    end)
    receiver = client.receiver("q")
    verbs = [[:ack], [:release], [:reject, "x"], [:dead, "x"], [:touch]]
    verbs.each do |verb, *words|
      assert_equal :unconfirmed, receiver.receive(timeout: 60).public_send(verb, *words), verb
      assert_equal true, receiver.receive(timeout: 60).public_send(verb, *words, wait: true), verb
    end
  end

  test "a touch that comes too late makes a delivery stale" do
    broker(lambda do |peer|
      peer.welcome
      peer.push(subscription: peer.accept_subscription)
      peer.write(Wire.error(code: Code::STALE, sentence: "over", delivery: peer.read_until(:TOUCH).first))
      serve(peer)
    end)
    delivery = client.receiver("q").receive(timeout: 60)
    assert_equal :unconfirmed, delivery.touch
    Timeout.timeout(60) { Thread.pass until delivery.stale? }
    refute delivery.ack
  end

  test "what waited here when the connection broke is not given to anybody" do
    broker(
      lambda do |peer|
        peer.welcome
        number = peer.accept_subscription
        3.times { |index| peer.push(subscription: number, message: index) }
        peer.read_until(:FREE)
      end,
      ->(peer) { peer.welcome(session: 2).then { peer.push(subscription: peer.accept_subscription, message: 2) }.then { serve(peer) } }
    )
    receiver = client.receiver("q", report_start: false)
    assert receiver.receive(timeout: 60).then { |delivery| delivery.id.zero? && delivery.ack }
    Timeout.timeout(60) { Thread.pass until @broker.connections == 2 }
    found = receiver.receive(timeout: 60)
    assert_equal [2, false], [found.id, found.stale?]
  end

  test "a delivery of a connection that broke is stale, and does nothing" do
    heard = Queue.new
    broker(
      ->(peer) { peer.welcome.then { peer.push(subscription: peer.accept_subscription) }.then { peer.read } },
      ->(peer) { peer.welcome(session: 2).then { peer.push(subscription: peer.accept_subscription, message: 7, redelivered: true) }.then { serve(peer, heard) } }
    )
    receiver = client.receiver("q")
    first = receiver.receive(timeout: 60)
    second = receiver.receive(timeout: 60)
    assert_equal [true, false, true], [first.stale?, second.stale?, second.redelivered?]
    assert_equal [false, false, false, false], [first.ack, first.release, first.reject("x"), first.touch]
    assert second.ack
    assert_equal [(2 << 36) + 1] * 2, next_of(heard, :FREE).then { |frame| [frame.first, frame.last] }
  end

  test "subscriptions come back with the credit that they have" do
    heard = Queue.new
    broker(
      ->(peer) { peer.welcome.then { 2.times { peer.accept_subscription } }.then { peer.read } },
      ->(peer) { peer.welcome(session: 2).then { serve(peer, heard) } }
    )
    client.receiver("a", credit: 3)
    @client.receiver("b").credit = 0
    again = Array.new(2) { next_of(heard, :SUBSCRIBE) }
    assert_equal [["a", 3, 1], ["b", 0, 2]], again.map { |frame| [frame.name, frame.credit, frame.subscription] }
  end

  test "credit is set anew, and the end of a subscription returns what nobody has taken" do
    heard = delivering({}, {message: 8})
    receiver = client.receiver("q", credit: 10)
    taken = receiver.receive(timeout: 60)
    receiver.credit = 3
    assert_equal [3, 1], next_of(heard, :CREDIT).then { |frame| [frame.credit, frame.subscription] }
    assert_raises(ArgumentError) { receiver.credit = -1 }
    receiver.close
    assert_equal 1, next_of(heard, :UNSUBSCRIBE).subscription
    assert_equal [2, 0], next_of(heard, :NACK).then { |frame| [number(frame.delivery), frame.kind] }
    assert_nil receiver.receive
    assert taken.ack
    assert_equal 1, number(next_of(heard, :FREE).first)
  end

  test "receive gives up in time, and each ends with the receiver" do
    delivering({}, {message: 8})
    receiver = client.receiver("q")
    ids = []
    thread = Thread.new { receiver.each { |delivery| ids << delivery.id } }
    Timeout.timeout(60) { Thread.pass until ids.size == 2 }
    assert_nil receiver.receive(timeout: 0.01)
    receiver.close
    assert_same receiver, thread.value
    assert_equal [7, 8], ids
  end

  # --- work ---

  test "a block frees what it has done with, says what it has in hand, and rejects what it fails at" do
    heard = delivering({payload: "good"}, {payload: "bad", failures: 3}, {payload: "mine"})
    errors = Queue.new
    client.subscribe("q", on_error: ->(error, delivery) { errors << [error.message, delivery.payload] }) do |delivery|
      raise ArgumentError, "not #{delivery.payload}" if delivery.payload == "bad"
      delivery.dead("I say so") if delivery.payload == "mine"
    end
    assert_equal 1, number(next_of(heard, :ACK).id)
    frames = Array.new(5) { Timeout.timeout(60) { heard.pop } }
    said = frames.map { |frame| [Wire::Frames.name_of(frame), frame.respond_to?(:reason) ? [frame.kind, frame.delay, frame.reason] : nil].compact }
    assert_equal [[:ACK], [:FREE], [:NACK, [1, 8000, "ArgumentError: not bad"]], [:ACK], [:NACK, [2, 0, "I say so"]]].sort_by(&:to_s), said.sort_by(&:to_s)
    assert_equal ["not bad", "bad"], errors.pop
  end

  test "a block that fails with what is no StandardError rejects, and its thread goes on" do
    heard = delivering({payload: "not written yet"}, {payload: "endless"}, {payload: "good"})
    endless = ->(number) { endless.call(number + 1) + 1 }
    done = Queue.new
    client.subscribe("q") do |delivery|
      raise NotImplementedError, "not yet" if delivery.payload.start_with?("not")
      endless.call(0) if delivery.payload == "endless"
      done << delivery.payload
    end
    assert_equal "good", Timeout.timeout(60) { done.pop }
    assert_equal ["NotImplementedError: not yet", "SystemStackError: stack level too deep"], Array.new(2) { next_of(heard, :NACK).reason }
  end

  test "a thread that ends because on_error does not work says so" do
    delivering({})
    subscription = nil
    _, said = capture_io do
      subscription = client.subscribe("q", on_error: ->(_error, _delivery) { raise "broken" }) { raise "x" }
      assert_raises(RuntimeError) { subscription.join(60) }
    end
    assert_match(/terminated with exception.*broken/m, said)
  end

  test "in hand is said before the block begins" do
    heard = delivering({})
    found = Queue.new
    client.subscribe("q") { found << Timeout.timeout(60) { next_of(heard, :ACK) } }
    assert_equal 1, number(found.pop.id)
  end

  test "how long a failed message waits is the caller's to say" do
    heard = delivering({}, {failures: 4})
    client.subscribe("q", retry_in: ->(delivery) { delivery.failures / 10.0 }) { raise "x" }
    assert_equal [0, 400], Array.new(2) { next_of(heard, :NACK).delay }
  end

  test "a block that is left in another way releases" do
    heard = delivering({}, {message: 8}, {message: 9})
    receiver = client.receiver("q")
    catch(:away) { receiver.work { throw :away } }
    receiver.work { break }
    inside = Queue.new
    thread = Thread.new { receiver.work { (inside << true) && sleep } }
    Timeout.timeout(60) { inside.pop }
    thread.kill.join
    assert_equal [[1, 0], [2, 0], [3, 0]], Array.new(3) { next_of(heard, :NACK).then { |frame| [number(frame.delivery), frame.kind] } }
  end

  test "leases are kept while blocks run and while deliveries wait, not while somebody has one" do
    heard = delivering({lease: 60_000}, {lease: 1500}, {lease: 1500})
    receiver = client.receiver("q")
    taken = receiver.receive(timeout: 60)
    gate = Queue.new
    thread = Thread.new { receiver.work { gate.pop } }
    2.times { assert_equal [2, 3], next_of(heard, :TOUCH).then { |frame| [number(frame.first), number(frame.last)] } }
    assert taken.touch(lease: 20)
    frame = next_of(heard, :TOUCH) until frame && number(frame.first) == 1
    assert_equal [1, 20_000], [number(frame.last), frame.lease]
    gate << true << true
    receiver.close
    thread.join
  end

  test "as many threads work as were asked for" do
    delivering(*Array.new(3) { |index| {message: index} })
    together = Queue.new
    gate = Queue.new
    subscription = client.subscribe("q", concurrency: 3) do |delivery|
      together << delivery.id
      gate.pop
    end
    assert_equal [0, 1, 2], Array.new(3) { Timeout.timeout(60) { together.pop } }.sort
    3.times { gate << true }
    assert subscription.close(timeout: 60)
  end

  # --- the end ---

  test "close says DRAIN, returns what was not begun, and waits for what was" do
    heard = delivering({}, {message: 8})
    began = Queue.new
    gate = Queue.new
    client.subscribe("q") do
      began << true
      gate.pop
      @client.send_message("answers", "from the block")
    end
    began.pop
    closing = Thread.new { @client.close }
    assert next_of(heard, :DRAIN)
    assert_equal 2, number(next_of(heard, :NACK).delivery)
    assert_predicate closing, :alive?
    gate << true
    assert closing.value
    rest = Array.new(heard.size) { heard.pop }.map { |frame| Wire::Frames.name_of(frame) }
    assert_operator rest.index(:SEND), :<, rest.index(:FREE)
    assert_operator rest.index(:FREE), :<, rest.rindex(:PING)
  end

  test "close does not wait for ever for a block" do
    delivering({})
    began = Queue.new
    gate = Queue.new
    client.subscribe("q") { began.push(true).then { gate.pop } }
    began.pop
    refute @client.close(timeout: 0.05)
    gate << true
  end

  test "a block may close its client" do
    delivering({})
    result = Queue.new
    client.subscribe("q") { |delivery| delivery.ack && result << @client.close(timeout: 60) }
    assert Timeout.timeout(60) { result.pop }
  end

  test "a subscription ends with its client for those who join it" do
    delivering
    subscription = client.subscribe("q") { nil }
    waiting = Thread.new { subscription.join }
    @client.close
    assert_same subscription, waiting.value
  end

  test "what comes for a subscription that is no more goes back" do
    heard = delivering({subscription: 9}.then { {} })
    gate = Queue.new
    @broker.close
    broker(->(peer) { peer.welcome.then { peer.push(subscription: 9) }.then { serve(peer, gate) } })
    client
    assert_equal 0, next_of(gate, :NACK).kind
    assert_empty heard
  end
end
