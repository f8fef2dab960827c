# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy"
require "socket"

# Whether browsers are still there while their answers are awaited.
class HTTPProxyDisconnectMonitorTest < Minitest::Test
  BrowserConnection = Hikyaku::HTTP::Proxy::BrowserConnection
  # What it is told to let go.
  Client = Struct.new(:told) do
    def abandon(streams) = told << streams.map(&:name)
  end
  Stream = Struct.new(:name, :withdrawn, :ended) do
    def withdraw = self.withdrawn = true

    def done? = !!ended
  end
  private_constant :BrowserConnection, :Client, :Stream

  def setup
    @monitor = Hikyaku::HTTP::Proxy::DisconnectMonitor.new
    @pairs = Array.new(3) { UNIXSocket.pair }
    @browsers = @pairs.map { |_, near| BrowserConnection.new(near) }
    @done = Queue.new
    @threads = []
  end

  def teardown
    9.times { @done << true }
    @threads.each(&:join)
    @monitor.close
    @pairs.flatten.each(&:close)
  end

  test "when nobody has asked for some time there is a rest, once until somebody asks again, and none while an answer is awaited" do
    rested = Queue.new
    monitor = Hikyaku::HTTP::Proxy::DisconnectMonitor.new(quiet: 0.2) { rested << true }
    2.times do
      monitor.watch(@browsers[0], -> {}) do
        sleep 0.5
        assert_empty rested
      end
      assert rested.pop
    end
    sleep 0.5
    assert_empty rested
  ensure
    monitor&.close
  end

  test "what is left counts until it has come, with what is left later, of one client" do
    client, other = Client.new(Queue.new), Client.new(Queue.new)
    streams = %w[a b c].map { |name| Stream.new(name) }
    await(0) { [client, streams[0]] }
    await(1) { [other, streams[1]] }
    await(2) { [client, streams[2]] }
    leave(0)
    assert_equal %w[a], client.told.pop
    leave(1)
    assert_equal [%w[b], %w[a]], [other.told.pop, client.told.pop]
    streams[0].ended = true
    leave(2)
    assert_equal %w[c], client.told.pop
    assert streams.all?(&:withdrawn)
  end

  test "who is silent, who says the next thing, and whose answer has come is not taken for one who has left" do
    client = Client.new(Queue.new)
    left = []
    await(0) { (left << :silent) && nil }
    await(1) { (left << :speaking) && nil }
    @pairs[1].first.write("GET")
    leave(1)
    @monitor.watch(@browsers[2], -> { left << :answered }) { nil }
    leave(2)
    await(0) { [client, Stream.new("a")] }
    leave(0)
    assert_equal %w[a], client.told.pop
    assert_empty left
  end

  private

  # @yieldreturn [Array, nil] what the browser has left
  def await(number, &leaves)
    begun = Queue.new
    @threads << Thread.new { @monitor.watch(@browsers[number], leaves) { (begun << true) && @done.pop } }
    begun.pop
  end

  def leave(number) = @pairs[number].first.close
end
