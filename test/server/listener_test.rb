# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "hikyaku/config/types"
require "hikyaku/server/listener"
require "tmpdir"

class ServerListenerTest < Minitest::Test
  Listener = Hikyaku::Server::Listener

  def listen(text)
    listener = Listener.new(Hikyaku::Config::Address.parse(text))
    yield listener
  ensure
    listener&.close
  end

  def refused(text) = assert_raises(Hikyaku::Server::CannotListen) { listen(text) {} }.message

  test "port 0 is a free port, the same in every family" do
    listen("localhost:0") do |listener|
      ports = listener.sockets.map { |socket| socket.local_address.ip_port }.uniq
      assert_equal [listener.address.port], ports
      assert_operator ports.first, :>, 0
    end
  end

  test "every address is listened on, and nobody else can" do
    listen(":0") do |listener|
      TCPSocket.new("127.0.0.1", listener.address.port).close
      assert_includes refused("0.0.0.0:#{listener.address.port}"), "another process listens there"
    end
  end

  test "a port can be taken before it is listened on: connections are refused until then" do
    Dir.mktmpdir do |folder|
      ["localhost:0", "unix:#{folder}/hub.sock"].each do |text|
        listener = Listener.new(Hikyaku::Config::Address.parse(text), listening: false)
        connect = -> { text.start_with?("unix") ? UNIXSocket.new("#{folder}/hub.sock") : TCPSocket.new("localhost", listener.address.port) }
        assert_raises(Errno::ECONNREFUSED, Errno::ENOENT, &connect)
        listener.listen
        connect.call.close
      ensure
        listener.close
      end
    end
  end

  test "a port that is taken in one family only is taken" do
    taken = TCPServer.new("127.0.0.1", 0)
    assert_includes refused(":#{taken.addr[1]}"), "another process listens there"
  ensure
    taken.close
  end

  test "a closed listener lets its port go" do
    port = listen("127.0.0.1:0") { |listener| listener.address.port }
    listen("127.0.0.1:#{port}") { |listener| assert_equal port, listener.address.port }
  end

  test "connections do not wait to fill a packet" do
    listen("127.0.0.1:0") do |listener|
      client = TCPSocket.new("127.0.0.1", listener.address.port)
      connection = listener.sockets.first.accept
      assert connection.getsockopt(:TCP, :NODELAY).bool
    ensure
      [client, connection].each(&:close)
    end
  end

  test "addresses that cannot be listened on are refused with the reason" do
    assert_equal "cannot listen on 192.0.2.1:3030: this machine does not have that address", refused("192.0.2.1:3030")
    assert_equal "cannot listen on no-such-host.invalid:3030: the host name is not known", refused("no-such-host.invalid:3030")
    assert_equal "cannot listen on unix:/does/not/exist/x.sock: there is no such folder", refused("unix:/does/not/exist/x.sock")
  end

  test "a port that takes a privilege is refused with the reason" do
    forbidden = ->(*) { raise Errno::EACCES }
    Socket.stub(:new, forbidden) do
      assert_equal "cannot listen on 127.0.0.1:81: permission denied; ports below 1024 need a privilege", refused("127.0.0.1:81")
      assert_equal "cannot listen on 127.0.0.1:8081: permission denied", refused("127.0.0.1:8081")
    end
  end

  test "a socket that a dead process left is replaced, one that is listened on is not" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/hub.sock"
      UNIXServer.new(path).close
      assert File.socket?(path)
      listen("unix:#{path}") do
        UNIXSocket.new(path).close
        assert_includes refused("unix:#{path}"), "another process listens there"
        assert File.socket?(path)
      end
      refute File.exist?(path)
    end
  end

  test "a file that is no socket is left alone" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/precious"
      File.write(path, "data")
      assert_includes refused("unix:#{path}"), "no socket"
      assert_equal "data", File.read(path)
      File.symlink(path, "#{folder}/link")
      assert_includes refused("unix:#{folder}/link"), "no socket"
      assert_includes refused("unix:#{folder}"), "no socket"
    end
  end

  test "the socket of another process, which took the place, is not removed" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/hub.sock"
      listen("unix:#{path}") do
        File.rename(path, "#{path}.old")
        UNIXServer.new(path).close
      end
      assert File.socket?(path)
    end
  end

  test "a Unix socket is for user and group, whatever the umask, which stays" do
    Dir.mktmpdir do |folder|
      mask = File.umask(0o000)
      listen("unix:#{folder}/hub.sock") { assert_equal 0o660, File.stat("#{folder}/hub.sock").mode & 0o777 }
      assert_equal 0o000, File.umask
    ensure
      File.umask(mask)
    end
  end
end
