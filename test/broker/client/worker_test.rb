# frozen_string_literal: true

require "test_helper"
require "support/broker_script"
require "support/running_broker"
require "timeout"

# Blocks that hang, and receivers that nobody asks: how long the client keeps their leases.
class BrokerClientWorkerTest < Minitest::Test
  include BrokerScript

  def teardown
    @gate&.close
    super
    @running&.close
  end

  # A queue on which a block of the test hangs until the test ends.
  def gate = @gate ||= Queue.new

  # A broker that delivers these to the first subscription, and tells what it hears.
  def delivering(*pushes)
    heard = Queue.new
    broker(lambda do |peer|
      peer.welcome
      number = peer.accept_subscription
      pushes.each { |fields| peer.push(subscription: number, **fields) }
      serve(peer, heard)
    end)
    heard
  end

  test "a block that runs for too long loses its message, is told so, and is told again when it ends" do
    heard = delivering({message: 42, failures: 2})
    told = Queue.new
    client.subscribe("books", timeout: 0.05, on_error: ->(error, delivery) { told << [error, delivery.id] }) { gate.pop }
    nack = next_of(heard, :NACK)
    assert_equal [1, 1, 4000], [number(nack.delivery), nack.kind, nack.delay]
    assert_match(/BlockTimeout.*0\.05 seconds/, nack.reason)
    error, id = Timeout.timeout(60) { told.pop }
    assert_kind_of Client::BlockTimeout, error
    assert_kind_of Hikyaku::Error, error
    assert_match(/message 42 of "books" has run for 0\.05 seconds.*4 seconds.*timeout:/, error.message)
    assert_equal 42, id
    assert_empty told
    gate << true
    late, id = Timeout.timeout(60) { told.pop }
    assert_kind_of Client::Stale, late
    assert_match(/message 42 of "books" has ended too late: it had run for too long/, late.message)
    assert_equal 42, id
    @client.ping
    refute_includes Array.new(heard.size) { Wire::Frames.name_of(heard.pop) }, :FREE
  end

  test "what the block says itself of a message that it has lost does nothing, and a failure is told" do
    heard = delivering({})
    told = Queue.new
    answers = nil
    client.subscribe("q", timeout: 0.05, on_error: ->(error, _) { told << error.class }) do |delivery|
      gate.pop
      answers = [delivery.ack, delivery.ack(wait: true), delivery.reject("x"), delivery.touch, delivery.stale?, delivery.settled?]
      raise ArgumentError, "too late"
    end
    next_of(heard, :NACK)
    gate << true
    assert_equal [Client::BlockTimeout, ArgumentError], Array.new(2) { Timeout.timeout(60) { told.pop } }
    assert_equal [false, false, false, false, true, false], answers
  end

  test "without a handler of the subscription the client's is told, and without that it is a warning" do
    delivering({message: 42})
    told = Queue.new
    client(on_error: ->(error) { told << error }).subscribe("q", timeout: 0.05) { gate.pop }
    assert_kind_of Client::BlockTimeout, Timeout.timeout(60) { told.pop }
    @gate.close
    @client.close(timeout: 2)
    @gate = nil
    @broker.close
    delivering({message: 43})
    _, said = capture_io do
      client.subscribe("q", timeout: 0.05) { gate.pop }
      eventually { $stderr.string.include?("message 43") }
      @client.close(timeout: 0)
    end
    assert_match(/\Ahikyaku: the block for message 43/, said)
  end

  test "what waits behind a block that hangs goes back, and nothing more is delivered until a block is free" do
    heard = Queue.new
    more = Queue.new
    broker(lambda do |peer|
      peer.welcome
      number = peer.accept_subscription
      3.times { |index| peer.push(subscription: number, message: index) }
      heard << peer.read_until(:CREDIT)
      Array.new(3) { peer.read_until(:NACK) }.each { |nack| heard << nack }
      peer.push(subscription: number, message: 9)
      heard << peer.read_until(:NACK)
      more << true
      heard << peer.read_until(:CREDIT)
      peer.push(subscription: number, message: 10)
      serve(peer, heard)
    end)
    done = Queue.new
    client.subscribe("q", credit: 50, timeout: 0.05, on_error: ->(*) {}) { |delivery| delivery.id.zero? ? gate.pop : done << delivery.id }
    assert_equal 0, Timeout.timeout(60) { heard.pop }.credit
    nacks = Array.new(3) { Timeout.timeout(60) { heard.pop } }
    assert_equal [[1, 1], [2, 0], [3, 0]], nacks.map { |nack| [number(nack.delivery), nack.kind] }.sort
    assert_equal [4, 0], Timeout.timeout(60) { heard.pop }.then { |nack| [number(nack.delivery), nack.kind] }
    more.pop
    gate << true
    assert_equal 50, Timeout.timeout(60) { heard.pop }.credit
    assert_equal 10, Timeout.timeout(60) { done.pop }
  end

  test "a subscription that is paused comes back paused, and keeps the credit that it was given meanwhile" do
    heard = Queue.new
    broker(
      lambda do |peer|
        peer.welcome
        peer.push(subscription: peer.accept_subscription)
        peer.read_until(:NACK)
      end,
      ->(peer) { peer.welcome(session: 2).then { serve(peer, heard) } }
    )
    subscription = client.subscribe("q", credit: 50, timeout: 0.05, on_error: ->(*) {}) { gate.pop }
    assert_equal 0, next_of(heard, :SUBSCRIBE).credit
    subscription.credit = 7
    assert_equal 0, next_of(heard, :CREDIT).credit
    gate << true
    assert_equal 7, next_of(heard, :CREDIT).credit
  end

  test "one block that hangs does not stop the others" do
    heard = delivering(*(0..4).map { |index| {message: index} })
    done = Queue.new
    client.subscribe("q", concurrency: 2, timeout: 0.2, on_error: ->(*) {}) { |delivery| delivery.id.zero? ? gate.pop : done << delivery.id }
    assert_equal [1, 2, 3, 4], Array.new(4) { Timeout.timeout(60) { done.pop } }
    nack = next_of(heard, :NACK)
    assert_equal [1, 1], [number(nack.delivery), nack.kind]
    @client.ping
    refute_includes Array.new(heard.size) { Wire::Frames.name_of(heard.pop) }, :CREDIT
  end

  test "a block that says that it makes progress has the time anew" do
    heard = delivering({})
    told = Queue.new
    client.subscribe("q", timeout: 2, on_error: ->(error, _) { told << error }) do |delivery|
      30.times { delivery.touch.then { sleep 0.1 } }
    end
    next_of(heard, :FREE)
    assert_empty told
  end

  [nil, false].each do |off|
    test "with #{off.inspect} a block may run for as long as it likes" do
      heard = delivering({lease: 60})
      receiver = client.receiver("q", timeout: off)
      assert_nil receiver.limit_at
      thread = Thread.new { receiver.work { gate.pop } }
      5.times { next_of(heard, :TOUCH) }
      gate << true
      next_of(heard, :FREE)
      receiver.close
      thread.join
    end
  end

  test "a block may run for half an hour unless it is told otherwise" do
    delivering
    assert_equal 1800, Client::Receiver::DEFAULT_TIMEOUT
    receiver = client.receiver("q")
    left = receiver.limit_at - Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_includes 1700..1800, left
  end

  [0, -1, "10", :never].each do |wrong|
    test "#{wrong.inspect} is no time that a block may run" do
      broker(->(peer) { serve(peer.welcome) })
      client
      assert_match(/timeout/, assert_raises(ArgumentError) { @client.receiver("q", timeout: wrong) }.message)
      assert_match(/timeout/, assert_raises(ArgumentError) { @client.subscribe("q", timeout: wrong) { nil } }.message)
    end
  end

  test "what nobody asks a receiver for goes back, until somebody asks" do
    heard = delivering({message: 1}, {message: 2})
    receiver = client.receiver("q", credit: 30, timeout: 0.05)
    assert_equal 0, next_of(heard, :CREDIT).credit
    assert_equal [[1, 0], [2, 0]], Array.new(2) { next_of(heard, :NACK).then { |nack| [number(nack.delivery), nack.kind] } }
    assert_nil receiver.receive(timeout: 0.01)
    assert_equal 30, next_of(heard, :CREDIT).credit
  end

  test "a receiver that waits for deliveries is not paused" do
    heard = delivering
    receiver = client.receiver("q", timeout: 0.05)
    assert_nil receiver.receive(timeout: 0.5)
    names = Array.new(heard.size) { Wire::Frames.name_of(heard.pop) }
    refute_includes names, :CREDIT
  end

  test "a receiver whose taker has dropped a delivery says that it is there when the lease has ended" do
    heard = delivering({lease: 100})
    receiver = client.receiver("q", credit: 3)
    dropped = receiver.receive(timeout: 60)
    assert_nil receiver.receive(timeout: 0.3)
    assert_equal 3, next_of(heard, :CREDIT).credit
    assert_predicate dropped, :stale?
    # And again, lest the broker's clock is behind.
    assert_nil receiver.receive(timeout: 0.2)
    assert_equal 3, next_of(heard, :CREDIT).credit
  end

  test "a receiver that is asked without waiting says so, too" do
    heard = delivering({lease: 100})
    receiver = client.receiver("q", credit: 3)
    dropped = receiver.receive(timeout: 60)
    eventually { dropped.stale? }
    eventually { receiver.receive(timeout: 0) || !heard.empty? }
    assert_equal 3, next_of(heard, :CREDIT).credit
  end

  test "the limit of a block holds beyond its connection, and the end of its subscription" do
    heard = Queue.new
    broker(
      ->(peer) { peer.welcome.then { peer.push(subscription: peer.accept_subscription, message: 42) }.then { peer.read_until(:ACK) } },
      ->(peer) { peer.welcome(session: 2).then { peer.push(subscription: peer.accept_subscription, message: 43) }.then { serve(peer, heard) } }
    )
    told = Queue.new
    subscription = client.subscribe("q", timeout: 0.3, concurrency: 2, on_error: ->(error, delivery) { told << [error.class, delivery.id] }) { gate.pop }
    next_of(heard, :ACK)
    subscription.close(timeout: 0)
    assert_equal 1, next_of(heard, :NACK).kind
    assert_equal [[Client::BlockTimeout, 42], [Client::BlockTimeout, 43]], Array.new(2) { Timeout.timeout(60) { told.pop } }.sort_by(&:last)
  end

  test "what the broker refuses of what nobody waited for is told" do
    broker(lambda do |peer|
      peer.welcome
      peer.push(subscription: peer.accept_subscription)
      peer.write(Wire.error(code: Code::STALE, sentence: "over", delivery: peer.read_until(:FREE).first))
      serve(peer)
    end)
    told = Queue.new
    receiver = client(on_error: ->(error) { told << error }).receiver("q")
    assert_equal :unconfirmed, receiver.receive(timeout: 60).ack
    error = Timeout.timeout(60) { told.pop }
    assert_kind_of Client::Stale, error
    assert_match(/refused.*delivery #{(1 << 36) + 1}.*delivers the message again/, error.message)
  end

  %w[ruby c].each do |engine|
    test "a message on which one receiver hangs goes to another, and the late end frees nothing (#{engine})" do
      @running = begin
        RunningBroker.new(engine: engine)
      rescue Hikyaku::NativeUnavailable => error
        skip error.message
      end
      told = Queue.new
      done = Queue.new
      @running.client do |hangs|
        hangs.subscribe("q", timeout: 0.2, lease: 1, retry_in: 0.05, on_error: ->(error, _) { told << error.class }) { gate.pop }
        id = hangs.send_message("q", "x").id
        assert_equal Client::BlockTimeout, Timeout.timeout(60) { told.pop }
        @running.client do |works|
          works.subscribe("q") { |delivery| done << [delivery.id, delivery.failures, delivery.crashes] }
          assert_equal [id, 1, 0], Timeout.timeout(60) { done.pop }
          gate << true
          assert_equal Client::Stale, Timeout.timeout(60) { told.pop }
          eventually { works.queues("q").first.values_at("ready", "out", "dead", "freed") == [0, 0, 0, 1] }
        end
      end
    end
  end
end
