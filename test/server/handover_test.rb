# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/handover"
require "fileutils"
require "logger"
require "stringio"
require "timeout"
require "tmpdir"

class HandoverTest < Minitest::Test
  Handover = Hikyaku::Server::Handover

  def setup
    @folder = Dir.mktmpdir
    @path = "#{@folder}/handover.sock"
    @log = StringIO.new
    @taken = Queue.new
  end

  def teardown
    @receiver&.close
    @sender&.close
    FileUtils.remove_entry(@folder)
  end

  def receive = @receiver = Handover::Receiver.new(@path, logger: Logger.new(@log)) { |socket, request| @taken << [socket, request] }

  def sender = @sender ||= Handover::Sender.new(@path)

  def taken = Timeout.timeout(60) { @taken.pop }

  test "a connection goes to the other side with what was read from it, and its client notices nothing" do
    receive
    client, server = UNIXSocket.pair
    assert sender.call(server, "GET / HTTP/1.1\r\n\r\n")
    server.close
    socket, request = taken
    assert_equal "GET / HTTP/1.1\r\n\r\n", request
    socket.write("hello")
    socket.close
    assert_equal "hello", client.read
    client.close
  end

  test "connections that are given away side by side keep their requests" do
    receive
    threads = Array.new(8) do |thread|
      Thread.new do
        Array.new(50) do |number|
          client, server = UNIXSocket.pair
          assert sender.call(server, "#{thread}/#{number}#{"x" * rand(3000)}")
          server.close
          [client, "#{thread}/#{number}"]
        end
      end
    end
    clients = threads.flat_map(&:value)
    clients.size.times do
      socket, request = taken
      socket.write(request.delete("x"))
      socket.close
    end
    clients.each do |client, name|
      assert_equal name, client.read
      client.close
    end
  end

  test "what cannot be given away stays with the caller" do
    client, server = UNIXSocket.pair
    refute sender.call(server, "nobody listens")
    receive
    refute sender.call(server, "x" * (Handover::MAX_REQUEST_BYTES + 1))
    assert sender.call(server, "x" * Handover::MAX_REQUEST_BYTES)
    assert_equal Handover::MAX_REQUEST_BYTES, taken.last.bytesize
    [client, server].each(&:close)
  end

  test "when the process that takes is another one, the way leads there" do
    receive
    client, server = UNIXSocket.pair
    assert sender.call(server, "one")
    taken.first.close
    @receiver.close
    receive
    assert sender.call(server, "two")
    assert_equal "two", taken.last
    [client, server].each(&:close)
  end

  test "from a receiver that takes nothing the caller has its connection back, and another is not held up for ever" do
    mute = Socket.new(:UNIX, Handover::KIND)
    mute.bind(Socket.sockaddr_un(@path))
    mute.listen(1)
    @sender = Handover::Sender.new(@path, seconds: 0.01)
    pair = UNIXSocket.pair
    taken = Array.new(20) { sender.call(pair.last, "x" * 100_000) }
    assert_equal [true, false], [taken.first, taken.last]
    pair.last.write("still here")
    assert_equal "still here", pair.first.readpartial(100)
    crowd = Array.new(3) { Handover::Sender.new(@path, seconds: 0.01) }
    refute crowd.map { |each| each.call(pair.last, "x") }.all?, "the queue of those who want to be let in is finite"
  ensure
    [mute, *pair].compact.each(&:close)
    crowd&.each(&:close)
  end

  test "who knocks while no file is left is let in as soon as there is one" do
    receive
    way = Socket.new(:UNIX, Handover::KIND)
    client, server = UNIXSocket.pair
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, 3, hard)
    way.connect(Socket.sockaddr_un(@path))
    way.sendmsg("x", 0, nil, Socket::AncillaryData.unix_rights(server))
    Timeout.timeout(60) { sleep 0.005 until @log.string.include?("ERROR") }
    Process.setrlimit(:NOFILE, soft, hard)
    assert_equal "x", taken.last
  ensure
    Process.setrlimit(:NOFILE, soft, hard) if soft
    [way, client, server].compact.each(&:close)
  end

  test "a forked child opens a way of its own and leaves its parent's alone" do
    receive
    client, server = UNIXSocket.pair
    assert sender.call(server, "parent")
    pid = fork { exit!(sender.call(server, "child") ? 0 : 1) }
    assert Process.wait2(pid).last.success?
    assert sender.call(server, "parent again")
    assert_equal %w[child parent parent\ again], Array.new(3) { taken.last }.sort
    [client, server].each(&:close)
  end

  test "the socket is this user's alone, and what a process that has ended left there is replaced" do
    UNIXServer.new(@path).close
    receive
    assert_equal 0o600, File.stat(@path).mode & 0o777
    assert_raises(Errno::EADDRINUSE) { Handover::Receiver.new(@path, logger: Logger.new(@log)) { flunk } }
  end

  test "a message without a connection is dropped, and the next one is not" do
    receive
    way = Socket.new(:UNIX, Handover::KIND)
    way.connect(Socket.sockaddr_un(@path))
    way.sendmsg("alone")
    client, server = UNIXSocket.pair
    way.sendmsg("whole", 0, nil, Socket::AncillaryData.unix_rights(server))
    assert_equal "whole", taken.last
    assert_match(/without its connection/, @log.string)
    [client, server, way].each(&:close)
  end
end
