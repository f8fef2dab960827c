# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/client"

class BrokerClientTransportTest < Minitest::Test
  def setup
    @socket, @broker = UNIXSocket.pair
    @lock = Mutex.new
    @transport = Hikyaku::Broker::Client::Transport.new(@socket, lock: @lock, max_frame: 4096)
  end

  def teardown = [@socket, @broker].each(&:close)

  test "one thread writes at a time, and finds what was enqueued meanwhile" do
    @transport.enqueue("a")
    bytes = @transport.take
    @transport.enqueue("b")
    assert_nil @transport.take
    assert_predicate @transport, :busy?
    @transport.write(bytes)
    @transport.write(@transport.take)
    assert_nil @transport.take
    refute_predicate @transport, :busy?
    assert_equal "ab", @broker.readpartial(10)
  end

  test "a write that fails breaks the connection, as a part of a frame may have been written" do
    @broker.close
    @transport.enqueue("a" * 100)
    @transport.write(@transport.take)
    assert_predicate @transport, :closed?
    @transport.enqueue("b")
    assert_nil @transport.take
  end
end
