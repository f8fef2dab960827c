# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/client"

# The frames that settle deliveries, without a connection (docs/protocol.md, section 7).
class BrokerClientUnsettledDeliveriesTest < Minitest::Test
  Client = Hikyaku::Broker::Client
  Wire = Hikyaku::Broker::Wire

  def setup
    @deliveries = Client::UnsettledDeliveries.new
  end

  def add(number, lease: 30_000, now: 0)
    push = Wire.push(id: number, subscription: 1, message: number, payload: "", sent_at: 0, lease: lease)
    delivery = Client::Delivery.new(parse(push), "q", nil, nil, now)
    [delivery, @deliveries.add(delivery, now)]
  end

  def parse(bytes)
    found = nil
    Wire::Reader.new(from: :broker).read(bytes) { |frame,| found = frame }
    found
  end

  def ranges(frames)
    found = []
    Wire::Reader.new(from: :client).read(frames.join) { |frame,| found << [frame.first, frame.last] }
    found
  end

  def acked = ranges([].tap { |frames| @deliveries.each_ack_frame { |frame| frames << frame } })

  test "one FREE covers consecutive acknowledgements, and passes over what was settled in between" do
    (1..6).each { |number| add(number) }
    @deliveries.remove(2)
    [4, 1, 6, 3].each { |number| @deliveries.ack(number) }
    assert_equal 4, @deliveries.acked_count
    assert_equal [[1, 4], [6, 6]], acked
    assert_equal [], acked
    refute_predicate @deliveries, :empty?
    @deliveries.ack(5)
    refute_predicate @deliveries, :empty?
    assert_equal [[5, 5]], acked
    assert_predicate @deliveries, :empty?
  end

  test "a range passes over no more than 256 numbers" do
    [1, 257, 514].each { |number| @deliveries.ack(number) }
    assert_equal [[1, 257], [514, 514]], acked
  end

  test "leases are renewed after a third of the shortest, in ranges, and only those that the client keeps" do
    assert_equal [true, 10.0], [add(1).last, @deliveries.renew_at]
    assert_equal [true, 4.0], [add(2, lease: 9_000, now: 1).last, @deliveries.renew_at]
    pulled, = add(3, now: 1)
    pulled.kept = false
    kept, earlier = add(4, now: 1)
    refute earlier
    assert_equal [[1, 2], [4, 4]], ranges(@deliveries.renew(4))
    assert_equal [34.0, 31.0, 7.0], [kept.lease_until, pulled.lease_until, @deliveries.renew_at]
  end

  test "nothing is renewed, or reported, for a connection that broke" do
    one, = add(1)
    add(2)
    @deliveries.ack(2)
    assert_equal [one], @deliveries.clear
    assert_nil @deliveries.renew_at
    assert_equal [], acked
    assert_predicate @deliveries, :empty?
  end

  test "no lease is renewed when none is out" do
    add(1)
    @deliveries.remove(1)
    assert_equal [], @deliveries.renew(10)
    assert_nil @deliveries.renew_at
  end
end
