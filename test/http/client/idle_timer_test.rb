# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "minitest/mock"

# Since when it is the other side that says nothing, and not the line.
class HTTPClientIdleTimerTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  Transport = Client::Transport
  private_constant :Client, :Transport

  def setup
    @line = Client::AccessLink.new
    @silence = Client::IdleTimer.new(@line)
  end

  test "alone on the line, it is since something came" do
    expect(100)
    @silence.look(100, 5.0)
    assert_equal 7.0, @silence.since(7.0)
  end

  test "while what was to come before it still comes, it is since that came" do
    expect(1_000)
    @silence.look(100, 5.0)
    {6.0 => 400, 7.0 => 400}.each do |now, bytes|
      @line.received(bytes, now)
      @silence.look(100, now)
      assert_equal now, @silence.since(5.0)
    end
    @line.received(100, 8.0)
    @silence.look(100, 8.0)
    @line.received(100, 9.0)
    @silence.look(100, 9.0)
    assert_equal 8.0, @silence.since(5.0)
  end

  test "when all that was to come before it has come, or comes no more, it is since then" do
    expect(1_000)
    @silence.look(100, 5.0)
    @line.received(1, 6.0)
    expect(-900)
    @silence.look(100, 6.5)
    @line.received(1, 7.0)
    assert_equal 6.5, @silence.since(5.0)
  end

  test "what is asked for later does not stand before it" do
    expect(1_000)
    @silence.look(100, 5.0)
    expect(50_000)
    @line.received(900, 6.0)
    @silence.look(100, 6.0)
    @line.received(900, 7.0)
    assert_equal 6.0, @silence.since(5.0)
  end

  test "after something came it begins anew" do
    expect(1_000)
    @silence.look(100, 5.0)
    @line.received(900, 6.0)
    @silence.look(100, 6.0)
    @silence.broken
    @silence.look(100, 6.5)
    @line.received(10, 7.0)
    assert_equal 7.0, @silence.since(6.5)
  end

  test "what has not arrived cannot be answered" do
    assert excused?(Transport.new(0.3, true, 9.0, 0.2), since: 5.0, now: 20.0)
    assert_in_delta 20.25, @silence.since(5.0) + 1.5
  end

  test "the time for an answer begins when its request has arrived, and leaves room for packets that are lost" do
    assert excused?(Transport.new(0.3, false, 1.0, 0.2), since: 5.0, now: 6.6)
    assert_in_delta 5.6 + 1.5, @silence.since(5.0) + 1.5
    refute excused?(Transport.new(0.3, false, 1.6, 0.2), since: 5.0, now: 6.6)
    assert excused?(Transport.new(2.0, false, 1.6, 0.2), since: 5.0, now: 6.6)
    assert_in_delta 5.0 + 6.0, @silence.since(5.0) + 1.5
    refute excused?(Transport.new(2.0, false, 6.1, 0.2), since: 5.0, now: 11.1)
  end

  test "where the kernel tells nothing, nothing is excused" do
    refute excused?(nil, since: 5.0, now: 6.6)
    assert_equal 5.0, @silence.since(5.0)
  end

  test "the kernel tells when something was acknowledged" do
    skip "this kernel tells nothing of its connections" unless Socket.const_defined?(:TCP_INFO)
    TCPServer.open("127.0.0.1", 0) do |server|
      socket = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      before = Transport.of(socket)
      socket.write("x")
      server.accept.readpartial(1)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 180
      sleep(0.005) while (after = Transport.of(socket)).unacknowledged && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      refute after.unacknowledged
      assert_operator after.timeout, :>=, 0.1
      assert_operator after.acknowledged_before, :<, 180
      assert_in_delta 8 * (after.round_trip - before.round_trip), after.longer_than(before)
    ensure
      socket&.close
    end
  end

  private

  def expect(bytes) = @line.expect(bytes)

  def excused?(transport, since:, now:)
    Transport.stub(:of, transport) { @silence.excused?(nil, since, 1.5, now) }
  end
end
