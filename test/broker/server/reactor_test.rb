# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/server"
require "hikyaku/broker/server/reactor"
require "hikyaku/server/log"
require "stringio"
require "support/scripted_engine"
require "timeout"
require "tmpdir"

class BrokerReactorTest < Minitest::Test
  Server = Hikyaku::Broker::Server
  Wire = Hikyaku::Broker::Wire

  def setup
    @log = StringIO.new
    @logger = Hikyaku::Server::Log.new(@log)
    @folder = Dir.mktmpdir
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    @reactor&.stop(seconds: 0)
    FileUtils.rm_rf(@folder)
  end

  def start(engine = ScriptedEngine.new, **options)
    @engine = engine
    @reactor = Server::Reactor.new(engine, logger: @logger, **options)
    @listener = Hikyaku::Server::Listener.new(Hikyaku::Config::Address.new(path: "#{@folder}/broker.sock"), mode: 0o600)
    @reactor.listen(@listener)
    @thread = @reactor.start
  end

  def connect = UNIXSocket.new("#{@folder}/broker.sock").tap { |socket| @clients << socket }

  # What comes within seconds, or nil.
  def read(socket, bytes, seconds = 60)
    deadline = now + seconds
    got = +""
    while got.bytesize < bytes
      return unless socket.wait_readable([deadline - now, 0].max)
      more = socket.read_nonblock(bytes - got.bytesize, exception: false)
      return got if more.nil?
      got << more unless more == :wait_readable
    end
    got
  end

  def ended?(socket, seconds = 60) = socket.wait_readable(seconds) && socket.read_nonblock(100, exception: false).nil?

  def until_happened(what, seconds = 60)
    Timeout.timeout(seconds, Minitest::Assertion, "#{what} did not happen") do
      found = @engine.happened.pop until found && found.first == what
      found
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  test "bytes go to the engine as they come, and back" do
    start
    one = connect
    other = connect
    one.write("eee")
    other.write("oo")
    assert_equal "eee", read(one, 3)
    assert_equal "oo", read(other, 2)
    assert_equal "unix, process #{Process.pid}", @engine.happened.pop.last
  end

  test "whoever hangs up is disconnected, and the others notice nothing" do
    start
    one = connect
    other = connect
    one.write("e")
    assert_equal "e", read(one, 1)
    one.close
    assert_equal [:disconnect, 1], until_happened(:disconnect)
    other.write("o")
    assert_equal "o", read(other, 1)
  end

  test "a mistake of the engine about one connection ends that one alone, and is logged" do
    start
    one = connect
    other = connect
    other.write("o")
    assert_equal "o", read(other, 1)
    one.write("x")
    assert ended?(one)
    third = connect
    third.write("T")
    assert ended?(third)
    other.write("p")
    assert_equal "p", read(other, 1)
    assert_equal 2, @log.string.scan("RuntimeError: a mistake of the engine").size
  end

  test "a failed storage ends the reactor, which says why, and touches no file" do
    start
    connect.write("F")
    assert_instance_of Hikyaku::Broker::StorageFailed, @thread.value
    assert_includes @engine.events.map(&:first), :abort
    refute_includes @engine.events.map(&:first), :close
    assert ended?(@clients.first)
    assert_nil @reactor.stats
    refute File.exist?("#{@folder}/broker.sock")
  end

  test "a sync that fails in its thread is said to everybody before the reactor ends" do
    start
    connect.write("e")
    assert_equal "e", read(@clients.first, 1)
    session = @engine.instance_variable_get(:@sessions).first
    @engine.define_singleton_method(:commit) do |wall:|
      @failing ? say(session, "failed").then { raise Hikyaku::Broker::StorageFailed, "the disk" } : super(wall: wall)
    end
    @engine.define_singleton_method(:sync) do
      @failing = true
      raise Hikyaku::Log::Journal::Failed, "the disk"
    end
    @clients.first.write("s")
    assert_instance_of Hikyaku::Log::Journal::Failed, @thread.value
    assert_equal "failed", @clients.first.read
  end

  test "whatever ends the reactor is what its thread says, and nobody waits for it" do
    start
    connect.write("M")
    assert_instance_of NoMemoryError, @thread.value
    assert_includes @engine.events.map(&:first), :abort
    assert ended?(@clients.first)
    refute File.exist?("/broker.sock")
  end

  test "who asked for figures is told that there are none when the engine ends over them" do
    start
    @engine.define_singleton_method(:stats) { raise NoMemoryError, "failed to allocate memory" }
    assert_nil Timeout.timeout(60) { @reactor.stats }
    assert_instance_of NoMemoryError, @thread.value
  end

  test "what goes wrong in another thread ends the reactor, too" do
    start
    @engine.define_singleton_method(:sync) { raise NoMemoryError, "failed to allocate memory" }
    connect.write("s")
    assert_instance_of NoMemoryError, @thread.value
  end

  test "a session that has ended gets what was still to be said, then the connection is closed" do
    start
    client = connect
    client.write("bq")
    assert_equal 1_000_000, read(client, 1_000_000).bytesize
    assert ended?(client)
  end

  test "nothing is read of a session that has as many unanswered requests as it may" do
    start
    client = connect
    client.write("b.")
    sleep 0.05 until @engine.sessions.first&.full
    client.write("e" * 100)
    # Its output blocks, so it stays full.
    refute_equal 0, client.wait_readable(1)
    assert_equal 1_000_000, read(client, 1_000_000).count("B")
    assert_equal "e" * 100, read(client, 100)
  end

  test "a reader that takes nothing is closed after the write timeout, and one that takes something is not" do
    start(write_timeout: 0.3)
    slow = connect
    slow.write("bbb")
    good = connect
    good.write("e")
    assert_equal "e", read(good, 1)
    until_happened(:disconnect)
    good.write("e")
    assert_equal "e", read(good, 1)
  end

  test "whoever says nothing that is answered is closed after a while" do
    start(hello_timeout: 2)
    greeted = connect
    greeted.write("e")
    assert_equal "e", read(greeted, 1)
    silent = connect
    assert ended?(silent)
    # The older one's time was over before.
    refute greeted.wait_readable(0.1)
    greeted.write("e")
    assert_equal "e", read(greeted, 1)
  end

  test "one connection too many is told so, and closed" do
    start(ScriptedEngine.new(most: 1))
    first = connect
    first.write("e")
    read(first, 1)
    second = connect
    frame = read(second, 1_000)
    errors = []
    Wire::Reader.new(from: :broker).read(frame) { |error,| errors << error }
    assert_equal [Wire::Code::LIMIT, 2, 1000], [errors.first.code, errors.first.scope, errors.first.retry_after]
    assert ended?(second)
  end

  test "while one sync runs the others go on, and what they ask for gathers for one more" do
    start
    one = connect
    other = connect
    one.write("s")
    until_happened(:sync)
    other.write("o")
    assert_equal "o", read(other, 1)
    3.times do
      other.write("so")
      assert_equal "o", read(other, 1)
    end
    assert_empty @engine.events.select { |event| event.first == :sync }
    @engine.in_sync << true
    assert_equal "S", read(one, 1)
    until_happened(:sync)
    @engine.in_sync << true
    other.write("p")
    assert_includes read(other, 4), "S"
    assert_empty @engine.events.select { |event| event.first == :sync }
  end

  test "who may is decided by others, and nobody waits for it" do
    gate = Thread::Queue.new
    decide = lambda do |hello|
      gate.pop
      hello.serial.odd? ? Server::Decision.permit([Hikyaku::Broker::Permission.all], until_ms: 7) : Server::Decision.refuse("no")
    end
    auth_pool = Server::AuthPool.new(decide, logger: @logger)
    start(auth_pool: auth_pool)
    one = connect
    one.write("h")
    one.write("e")
    assert_equal "e", read(one, 1)
    other = connect
    other.write("h")
    2.times { gate << true }
    assert_equal "Y", read(one, 1)
    assert_equal "N", read(other, 1)
    events = @engine.events
    assert_includes events, [:permit, 1, 1, 7]
    assert_includes events, [:refuse, 2, "no"]
  ensure
    auth_pool&.close
  end

  test "a decider that breaks refuses, and its log says nothing of what was given" do
    auth_pool = Server::AuthPool.new(->(hello) { raise "the secret is #{hello.credentials}xyzzy" }, logger: @logger)
    start(auth_pool: auth_pool)
    client = connect
    client.write("h")
    assert_equal "N", read(client, 1)
    refute_includes @log.string, "xyzzy"
    assert_includes @log.string, "RuntimeError while a client was authenticated"
  ensure
    auth_pool&.close
  end

  test "a stop waits for the engine to be drained, and closes it in order" do
    start
    client = connect
    client.write("e")
    read(client, 1)
    stopping = Thread.new { @reactor.stop(seconds: 10) }
    until_happened(:drain)
    assert_raises(Errno::ENOENT, Errno::ECONNREFUSED) { connect }
    client.write("e")
    assert_equal "e", read(client, 1)
    client.close
    stopping.join
    assert_equal %i[disconnect close], @engine.events.map(&:first)
    assert_nil @thread.value
  end

  test "a stop waits no longer than it was told" do
    start
    client = connect
    client.write("e")
    read(client, 1)
    @reactor.stop(seconds: 0.2)
    assert_equal [:close], @engine.events.last
    assert ended?(client)
  end

  test "a socket file that a dead process left is replaced, one that answers is not" do
    dead = UNIXServer.new("#{@folder}/broker.sock")
    dead.close
    start
    connect.write("e")
    assert_equal "e", read(@clients.first, 1)
    assert_equal 0o600, File.stat("#{@folder}/broker.sock").mode & 0o777
    assert_raises(Hikyaku::Server::CannotListen) { Hikyaku::Server::Listener.new(Hikyaku::Config::Address.new(path: "#{@folder}/broker.sock")) }
  end

  test "figures are asked for on the engine's thread, and are none when it has ended" do
    start
    connect.write("e")
    read(@clients.first, 1)
    assert_equal({sessions: 1}, @reactor.stats)
    assert_equal [], @reactor.queues
    @reactor.stop(seconds: 0)
    assert_nil @reactor.stats
  end
end
