# frozen_string_literal: true

require "test_helper"
require "support/broker_script"

# What becomes of messages when a connection breaks, or a broker drains.
class BrokerClientConnectionTest < Minitest::Test
  include BrokerScript

  # --- connections that break ---

  test "what was not answered is sent again over the next connection, in order, under its numbers" do
    again = Queue.new
    broker(
      lambda do |peer|
        peer.welcome
        frames = Array.new(3) { peer.read }
        peer.take(frames[1], value: 2)
      end,
      lambda do |peer|
        peer.welcome(session: 2, low: 0)
        2.times { again << peer.read }
        first, third = again.pop, again.pop
        again << first.sequence << third.sequence << third.payload
        peer.take(first, value: 0, duplicate: true)
        peer.take(third, value: 3)
        serve(peer)
      end
    )
    client
    receipts = %w[a b c].map { |payload| @client.send_async("q", payload) }.map { |pending| pending.value(60) }
    assert_equal [nil, 2, 3], receipts.map(&:id)
    assert_equal [true, false, false], receipts.map(&:duplicate?)
    assert_equal [1, 3, "c"], Array.new(3) { again.pop }
  end

  test "half a frame, and then the end, is a connection that broke" do
    broker(
      ->(peer) { peer.welcome.then { peer.write(Wire.ack(id: peer.read.id, request: 2, value: 9)[0, 20]) } },
      ->(peer) { serve(peer.welcome) }
    )
    assert_equal 101, client.send_message("q", "x").id
    assert_equal 2, @broker.connections
  end

  test "a broker that says what is no frame is left, and comes back whole" do
    broker(->(peer) { peer.welcome.then { peer.read }.then { peer.write("\x10\x00\x00\x00\xFF#{"\x00" * 11}") }.then { peer.read_to_end } }, ->(peer) { serve(peer.welcome) })
    errors = Queue.new
    assert client(on_error: ->(error) { errors << error }).send_message("q", "x")
    assert_kind_of Client::NotUnderstood, errors.pop
  end

  test "a broker that is silent for two heartbeats is left" do
    broker(->(peer) { peer.welcome(heartbeat: 50).then { peer.read_to_end } }, ->(peer) { serve(peer.welcome) })
    errors = Queue.new
    assert client(on_error: ->(error) { errors << error }).send_message("q", "x")
    assert_match(/silent for two heartbeats/, errors.pop.message)
  end

  test "signs of life are given and answered" do
    heard = Queue.new
    broker(lambda do |peer|
      peer.welcome(heartbeat: 100)
      peer.write(Wire.ping(id: 77))
      3.times do
        frame = peer.read
        heard << [Wire::Frames.name_of(frame), frame.id]
        peer.write(Wire.receipt(id: frame.id)) if frame.is_a?(Wire::Frames::Ping)
      end
      serve(peer)
    end)
    client
    said = Array.new(3) { heard.pop }
    assert_includes said, [:ACK, 77]
    assert_equal 2, said.count { |name, _| name == :PING }
  end

  test "a message that cannot be sent in time is withdrawn" do
    sent = Queue.new
    gate = Queue.new
    broker(->(peer) { peer.welcome }, ->(peer) { gate.pop.then { peer.welcome } && sent.push(peer.read).then { peer.take(sent.pop.tap { |frame| sent << frame.payload }) }.then { serve(peer) } })
    client
    eventually { !@client.connected? }
    assert_raises(Client::Unreachable) { @client.send_message("q", "never", timeout: 0.05) }
    gate << true
    assert_equal 101, @client.send_message("q", "then").id
    assert_equal "then", sent.pop
  end

  test "a client without an identity does not send again what may have been taken" do
    numbers = Queue.new
    broker(->(peer) { peer.welcome.then { numbers << peer.read.sequence } }, ->(peer) { serve(peer.welcome) })
    client(identity: "")
    assert_raises(Client::OutcomeUnknown) { @client.send_message("q", "x") }
    assert_equal 0, numbers.pop
    assert @client.send_message("q", "x")
  end

  test "a client that comes back under its name begins above what is settled, and a number that was used is not taken for an answer" do
    numbers = Queue.new
    broker(lambda do |peer|
      peer.welcome(low: 10)
      serve(peer) do |frame|
        numbers << frame.sequence
        (frame.sequence == 12) ? peer.take(frame, value: 0, duplicate: true) : peer.take(frame)
      end
    end)
    client(identity: "ann")
    assert_equal [111, 113], Array.new(2) { @client.send_message("q", "x").id }
    assert_equal [11, 12, 13], Array.new(3) { numbers.pop }
    assert_equal 3, @client.send_batch("q", %w[a b c]).size
    assert_equal [14, 15, 16], Array.new(3) { numbers.pop }
  end

  test "a broker that has forgotten numbers gets them again" do
    numbers = Queue.new
    broker(
      ->(peer) { peer.welcome.then { 5.times { peer.take(peer.read) } }.then { peer.read } },
      lambda do |peer|
        peer.welcome(session: 2, low: 2)
        serve(peer) do |frame|
          numbers << frame.sequence
          peer.take(frame, duplicate: frame.sequence == 4)
        end
      end
    )
    client
    5.times { @client.send_message("q", "x") }
    assert_equal 106, @client.send_message("q", "in doubt").id
    assert_equal [103, 105, 107], Array.new(3) { @client.send_message("q", "x").id }
    assert_equal [6, 3, 4, 5, 7], Array.new(5) { numbers.pop }
  end

  test "FENCED ends it for good, and tells those who wait" do
    broker(->(peer) { peer.welcome.then { peer.refuse(peer.read, Code::FENCED, "taken over", scope: 2) } })
    client
    assert_raises(Client::Fenced, Client::OutcomeUnknown) { @client.send_message("q", "x") }
    assert_raises(Client::Fenced) { eventually { @client.send_message("q", "x") } }
    assert_predicate @client, :closed?
    assert_equal 1, @broker.connections
  end

  # --- DRAIN ---

  test "a broker that drains is left when what was in hand is done, and what it did not take goes to the next" do
    first = Queue.new
    broker(
      lambda do |peer|
        peer.welcome
        number = peer.accept_subscription
        in_hand = peer.push(subscription: number)
        waiting = peer.push(subscription: number, message: 8)
        first << peer.read_until(:ACK).id
        peer.write(Wire.draining(retry_after: 30))
        first << [in_hand, waiting, peer.read_until(:NACK).delivery, peer.quiet?(0.05)]
        first << peer.read_until(:FREE).first
        first << peer.read_to_end
      end,
      ->(peer) { serve(peer.welcome(session: 2)) }
    )
    client
    gate = Queue.new
    @client.subscribe("q") { gate.pop }
    began = first.pop
    in_hand, waiting, returned, quiet = first.pop
    pending = @client.send_async("q", "during")
    gate << true
    assert_equal [in_hand, in_hand, waiting, true], [began, first.pop, returned, quiet]
    assert_nil first.pop
    assert_equal 101, pending.value(60).id
  end

  test "a message that is refused by a broker that drains is taken by the next" do
    broker(
      lambda do |peer|
        peer.welcome
        frame = peer.read
        peer.write(Wire.draining(retry_after: 0))
        peer.refuse(frame, Code::DRAINING)
        peer.read_to_end
      end,
      ->(peer) { serve(peer.welcome(session: 2)) }
    )
    assert_equal 101, client.send_message("q", "x").id
  end
end
