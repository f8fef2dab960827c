# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/server"
require "hikyaku/broker/server/acceptor"
require "hikyaku/server/log"
require "nio"
require "stringio"
require "tmpdir"

class BrokerAcceptorTest < Minitest::Test
  # A listening socket of a process that has no file descriptor left.
  class Exhausted
    def accept_nonblock(exception:) = raise(Errno::EMFILE)
  end

  Listener = Struct.new(:sockets) do
    def close = sockets.each(&:close)
  end

  def setup
    @log = StringIO.new
    @folder = Dir.mktmpdir
    @selector = NIO::Selector.new
    @server = UNIXServer.new("#{@folder}/s")
    @acceptor = Hikyaku::Broker::Server::Acceptor.new(@selector, logger: Hikyaku::Server::Log.new(@log))
    @acceptor.listen(Listener.new([@server]))
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    @acceptor.close
    @selector.close
    FileUtils.rm_rf(@folder)
  end

  def connect = @clients << UNIXSocket.new("#{@folder}/s")

  def accepted(now)
    found = []
    @acceptor.accept(@server, now) { |socket| found << socket }
    found.each(&:close).size
  end

  test "it accepts what waits, and no more than 64 at once" do
    70.times { connect }
    assert_equal [64, 6, 0], Array.new(3) { accepted(0) }
  end

  test "without a file descriptor it watches for nothing for a tenth of a second, and logs that every ten seconds" do
    connect
    [0, 5, 10].each do |now|
      @acceptor.accept(Exhausted.new, now) { flunk }
      assert_in_delta now + 0.1, @acceptor.paused_until
      assert_nil @selector.select(0)
      @acceptor.resume(now + 0.05)
      assert_nil @selector.select(0)
      @acceptor.resume(now + 0.1)
      assert_nil @acceptor.paused_until
      assert_equal [@server], @selector.select(0).map(&:value)
    end
    assert_equal 2, @log.string.scan("no file descriptor is left").size
    assert_equal 1, accepted(11)
  end

  test "it closes its listeners once" do
    2.times { @acceptor.close }
    assert_predicate @server, :closed?
  end
end
