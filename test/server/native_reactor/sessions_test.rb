# frozen_string_literal: true

require "test_helper"
require "logger"
require "socket"
require "stringio"
require "timeout"
require "tmpdir"
require "hikyaku/broker"
require "hikyaku/broker/native_engine"
require "hikyaku/hub"
require "hikyaku/server/native_reactor"

class NativeReactorSessionsTest < Minitest::Test
  Wire = Hikyaku::Broker::Wire
  Permission = Hikyaku::Broker::Permission
  HUB_URL = "https://hub.example.com/.well-known/mercure"

  def setup
    @folder = Dir.mktmpdir("hikyaku-sessions")
    @open = []
    @log = StringIO.new
  end

  def teardown
    @open.each { |socket| socket.close unless socket.closed? }
    @reactor&.stop
    @engine&.close(now: 2.0, wall: 2) unless @closed
    FileUtils.rm_rf(@folder)
  end

  def begin_reactor(hub: nil, storage: false, **options)
    @engine = Hikyaku::Broker::NativeEngine.new(open: true, storage: (@folder if storage), **options)
    @reactor = Hikyaku::Server::NativeReactor.new(hub, broker: @engine, drain_timeout: 1, logger: Logger.new(@log))
    listen
  end

  def listen(server = UNIXServer.new(@path = "#{@folder}/b.sock"))
    @open << server
    @reactor.listen_broker(server)
  end

  # A socket, and the frames that came on it.
  class Client
    def initialize(socket)
      @socket = socket
      @reader = Wire::Reader.new(from: :broker, max_frame: 1 << 20)
      @frames = []
    end

    def say(*frames)
      @socket.write(frames.join)
      self
    end

    # The next frame; nil at the end.
    def hear
      Timeout.timeout(60) do
        @reader.read(@socket.readpartial(65_536)) { |frame, _| @frames << frame } while @frames.empty?
        @frames.shift
      end
    rescue EOFError, Errno::ECONNRESET
      nil
    end

    def close = @socket.close
  end

  def connect(socket = UNIXSocket.new(@path))
    @open << socket
    Client.new(socket)
  end

  def enter
    connect.say(Wire.hello(id: 1)).tap { |client| assert_kind_of Wire::Frames::Welcome, client.hear }
  end

  test "messages go from client to client, and figures say so" do
    begin_reactor
    sender, receiver = enter, enter
    receiver.say(Wire.subscribe(id: 2, subscription: 1, name: "q", credit: 5)).hear
    assert_equal 3, sender.say(Wire.send_message(id: 3, to: "q", payload: "hello")).hear.id
    push = receiver.hear
    assert_equal "hello", push.payload
    assert_equal 4, receiver.say(Wire.free(id: 4, first: push.id)).hear.id
    assert_equal [2, 1, 1], @reactor.broker_stats.values_at(:sessions, :delivered, :freed)
    assert_equal [["q", 1]], @reactor.broker_queues.map { |queue| queue.values_at(:name, :freed) }
    assert_equal 2, @reactor.stats[:sessions]
  end

  test "over TCP it is the same, beside a hub" do
    begin_reactor(hub: Hikyaku::Hub.new(hub_url: HUB_URL, engine: Hikyaku::Hub::NativeEngine))
    listen(server = TCPServer.new("127.0.0.1", 0))
    client = connect(TCPSocket.new("127.0.0.1", server.addr[1])).say(Wire.hello(id: 1))
    assert_kind_of Wire::Frames::Welcome, client.hear
    assert_includes @reactor.stats.keys, :decisions
  end

  test "what is to be synced is, in threads that Ruby does not see" do
    begin_reactor(storage: true)
    client = enter
    threads = Thread.list.size
    assert_equal 2, client.say(Wire.send_message(id: 2, to: "q", payload: "x", level: 2)).hear.level
    assert_operator @reactor.broker_stats[:journal][:syncs], :>, 0
    assert_equal threads, Thread.list.size
  end

  test "who is asked about is permitted, refused, or forgotten, which is refused" do
    begin_reactor(open: false)
    client, hello = introduce("one")
    assert_equal ["one", "secret of one", 1, "test", "unix, process #{Process.pid}"], [hello.identity, hello.credentials, hello.kind, hello.agent, hello.address]
    refute_includes hello.inspect, "secret"
    refute hello.decided?
    @reactor.permit(hello, [Permission.all], until_ms: nil)
    assert hello.decided?
    assert_raises(IOError) { @reactor.refuse(hello, "twice") }
    assert_kind_of Wire::Frames::Welcome, client.hear
    client, hello = introduce("two")
    @reactor.refuse(hello, "go away")
    assert_unauthorized "go away", client
    client = forgotten("three")
    assert_nil @reactor.next_hello(timeout: 0)
    GC.start
    assert_unauthorized "nobody has decided about this client", client
  end

  def introduce(identity)
    client = connect.say(Wire.hello(id: 1, identity: identity, authentication: 1, credentials: "secret of #{identity}", agent: "test"))
    [client, @reactor.next_hello(timeout: 60)]
  end

  # The object is on no stack any more.
  def forgotten(identity) = Thread.new { introduce(identity).first }.value

  def assert_unauthorized(sentence, client)
    error = client.hear
    assert_equal [Wire::Code::UNAUTHORIZED, sentence], [error.code, error.sentence]
    assert_nil client.hear
  end

  test "permissions are those that were given" do
    begin_reactor(open: false)
    client = connect.say(Wire.hello(id: 1))
    @reactor.permit(@reactor.next_hello(timeout: 60), [Permission.new("allowed.*", Permission::SEND)])
    client.hear
    assert_kind_of Wire::Frames::Ack, client.say(Wire.send_message(id: 2, to: "allowed.a", payload: "x")).hear
    assert_equal Wire::Code::FORBIDDEN, client.say(Wire.send_message(id: 3, to: "other", payload: "x")).hear.code
  end

  test "whoever waits for somebody to be asked about wakes when the reactor stops" do
    begin_reactor(open: false)
    waiter = Thread.new { @reactor.next_hello }
    @reactor.stop
    assert waiter.join(60)
    assert_nil waiter.value
  end

  test "a stop lets receivers finish, and the engine can be closed then" do
    begin_reactor(storage: true)
    client = enter.say(Wire.subscribe(id: 2, subscription: 1, name: "q", credit: 5), Wire.send_message(id: 3, to: "q", payload: "x"))
    push = nil
    push = [client.hear].grep(Wire::Frames::Push).first until push
    assert_raises(IOError) { @engine.close(now: 1.0, wall: 1) }
    stopping = Thread.new { @reactor.stop(seconds: 5) }
    frame = client.hear until frame.is_a?(Wire::Frames::Draining)
    client.say(Wire.free(id: 4, first: push.id))
    frame = client.hear until frame.nil? || frame.id == 4
    assert_equal 4, frame&.id
    assert_nil client.hear
    client.close
    assert stopping.join(60)
    @engine.close(now: 1.0, wall: 1)
    @closed = true
    assert_nil @reactor.broker_stats
    assert_raises(IOError) { @engine.stats }
  end

  test "when the storage fails, clients, the log and a block are told" do
    begin_reactor(storage: true)
    failures = Thread::Queue.new
    @reactor.on_storage_failure { |error| failures << error }
    client = enter
    without_room { assert_equal Wire::Code::FAILED, client.say(Wire.send_message(id: 2, to: "q", payload: "x", level: 1)).hear.code }
    error = Timeout.timeout(60) { failures.pop }
    assert_kind_of Hikyaku::Broker::StorageFailed, error
    assert_same error, @reactor.storage_failure
    assert_includes @log.string, "the broker's storage has failed: #{error.message}"
    assert_nil client.hear
    @reactor.stop
    assert_raises(Hikyaku::Broker::StorageFailed) { @engine.close(now: 1.0, wall: 1) }
    @closed = true
  end

  # No file can be written any more.
  def without_room
    soft, hard = Process.getrlimit(:FSIZE)
    before = trap("XFSZ", "IGNORE")
    Process.setrlimit(:FSIZE, 0, hard)
    yield
  ensure
    Process.setrlimit(:FSIZE, soft, hard)
    trap("XFSZ", before || "DEFAULT")
  end

  test "while a reactor has the broker nobody else drives it" do
    begin_reactor
    [-> { @engine.connect(now: 1.0) }, -> { @engine.tick(now: 1.0, wall: 1) }, -> { @engine.commit(wall: 1) }, -> { @engine.work },
      -> { @engine.next_ready }, -> { @engine.drain(1) }, -> { @engine.abort }].each do |call|
      assert_match(/a reactor has the broker/, assert_raises(IOError, &call).message)
    end
    assert_raises(IOError) { Hikyaku::Server::NativeReactor.new(nil, broker: @engine).listen_broker(@open.first) }
    assert_raises(IOError) { @reactor.carry(@engine) }
  end

  test "without a broker there is nothing to listen for" do
    reactor = Hikyaku::Server::NativeReactor.new(Hikyaku::Hub.new(hub_url: HUB_URL, engine: Hikyaku::Hub::NativeEngine))
    server = UNIXServer.new("#{@folder}/none.sock").tap { |socket| @open << socket }
    assert_raises(IOError) { reactor.listen_broker(server) }
    assert_nil reactor.broker_stats
    assert_nil reactor.broker_queues
  end

  # Of the journal, by this process.
  def files_open
    Dir["/proc/self/fd/*"].count do |link|
      File.readlink(link).start_with?(@folder)
    rescue Errno::ENOENT
      false
    end
  end

  test "a forked child has no broker, and keeps nobody from the journal" do
    begin_reactor(storage: true)
    enter
    reader, writer = IO.pipe
    child = fork do
      reader.close
      writer.write([@reactor.broker_stats.inspect, @reactor.running?, files_open].join(" "))
      writer.close
      exit!(0)
    end
    writer.close
    assert_equal "nil false 0", reader.read
    assert_operator files_open, :>, 0
    Process.wait(child)
    assert_equal 1, @reactor.broker_stats[:sessions]
    enter
  ensure
    reader&.close
  end
end
