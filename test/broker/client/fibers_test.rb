# frozen_string_literal: true

require "test_helper"
require "support/broker_script"
require "support/small_scheduler"

# One thread with a fibre scheduler: a fibre that waits for the broker lets the others go on.
class BrokerClientFibersTest < Minitest::Test
  include BrokerScript

  test "fibres that wait for their acknowledgements wait together" do
    broker(lambda do |peer|
      peer.welcome
      # Nothing is answered before everybody has asked.
      Array.new(10) { peer.read }.reverse_each { |frame| peer.take(frame) }
      peer.write(Wire.receipt(id: peer.read_until(:PING).id))
    end)
    client
    ids = []
    scheduler = SmallScheduler.run { 10.times { Fiber.schedule { ids << @client.send_message("q", "x", timeout: 60).id } } }
    assert_equal (101..110).to_a, ids.sort
    assert_operator scheduler.waits, :>=, 10
  end

  test "a fibre receives while another works and a third sends" do
    broker(lambda do |peer|
      peer.welcome
      number = peer.accept_subscription
      sent = peer.read_until(:SEND)
      2.times { peer.push(subscription: number) }
      peer.take(sent)
      freed = 0
      freed += peer.read_until(:FREE).then { |frame| frame.last - frame.first + 1 } until freed == 2
      peer.write(Wire.receipt(id: peer.read_until(:PING).id))
    end)
    client
    done = []
    SmallScheduler.run do
      receiver = @client.receiver("q")
      Fiber.schedule do
        receiver.work do |delivery|
          sleep 0.01
          done << [:worked, delivery.id]
          receiver.close if done.size == 3
        end
      end
      Fiber.schedule { done << [:sent, @client.send_message("q", "x").id] }
    end
    assert_equal [[:sent, 101], [:worked, 7], [:worked, 7]], done.sort
  end

  test "a client is opened and closed by a fibre" do
    broker(->(peer) { peer.welcome.then { peer.write(Wire.receipt(id: peer.read_until(:PING).id)) }.then { peer.read_to_end } })
    clean = nil
    SmallScheduler.run { clean = Client.open(@broker.address).close }
    assert clean
  end
end
