# frozen_string_literal: true

require "test_helper"
require "contracts/broker_contract"
require "hikyaku/broker/native_engine"

class BrokerNativeEngineTest < Minitest::Test
  include BrokerContract

  def new_engine(**options) = Hikyaku::Broker::NativeEngine.new(**options)

  # No file can be written any more.
  def with_failing_storage
    soft, hard = Process.getrlimit(:FSIZE)
    before = trap("XFSZ", "IGNORE")
    Process.setrlimit(:FSIZE, 0, hard)
    yield
  ensure
    Process.setrlimit(:FSIZE, soft, hard)
    trap("XFSZ", before || "DEFAULT")
  end

  test "a session is taken in portions, and is not blocked by them" do
    reader, sender = client.receives("q"), client
    sends = Array.new(20) { |i| Wire.send_message(to: "q", payload: i.to_s * 3000) }
    @engine.receive(sender.session, sends.join, now: @now, wall: @wall)
    @engine.commit(wall: @wall)
    while (session = @engine.next_ready)
      bytes = @engine.take(session, 1000)
      assert_operator bytes.bytesize, :<=, 1000
      reader.hear(bytes)
      @engine.wrote(session, bytes.bytesize)
    end
    assert_equal Array.new(20) { |i| i.to_s * 3000 }, reader.payloads
  end

  test "every call works with the garbage collector running at each allocation" do
    begin_engine(storage: true, open: false)
    GC.stress = true
    session = @engine.connect(now: @now, address: "192.0.2.1")
    assert @engine.receive(session, Wire.hello(id: 1, identity: "me"), now: @now, wall: @wall)
    hello = @engine.next_auth_request
    assert_equal ["me", "192.0.2.1"], [hello.identity, hello.address]
    assert @engine.permit(hello.serial, [Permission.new("q*", 3), Permission.new("@me", 7)], now: @now, wall: @wall)
    refute @engine.permit(hello.serial, [], now: @now, wall: @wall)
    refute @engine.refuse(hello.serial, "twice")
    assert @engine.receive(session, Wire.subscribe(id: 2, subscription: 1, name: "q", credit: 5) + Wire.send_message(id: 3, to: "q", payload: "x", level: 2), now: @now, wall: @wall)
    @engine.tick(now: @now, wall: @wall)
    @engine.commit(wall: @wall)
    @engine.work
    assert_same session, @engine.next_ready
    bytes = @engine.take(session, 10_000)
    @engine.wrote(session, bytes.bytesize)
    assert_equal [["q"], 1], [@engine.queues(wall: @wall).map { |queue| queue[:name] }, @engine.stats[:delivered]]
    @engine.disconnect(session, now: @now, wall: @wall)
  ensure
    GC.stress = false
  end

  test "sessions outlive their broker, and say that it is closed" do
    session = client.session
    @engine.close(now: @now, wall: @wall)
    [-> { @engine.receive(session, "", now: @now, wall: @wall) }, -> { @engine.full?(session) }, -> { @engine.connect(now: @now) }, -> { @engine.stats },
      -> { @engine.close(now: @now, wall: @wall) }, -> { @engine.commit(wall: @wall) }].each do |call|
      assert_match(/closed/, assert_raises(IOError, &call).message)
    end
    refute session.ended?
    begin_engine
  end

  test "a session that has ended, and one of another broker, are refused" do
    session = client.session
    cut(@clients[session])
    assert session.ended?
    assert_raises(IOError) { @engine.finished?(session) }
    @engine.disconnect(session, now: @now, wall: @wall)
    other = new_engine(open: true)
    assert_raises(ArgumentError) { other.full?(client.session) }
    other.abort
  end

  test "threads do the disk's work, and the next commit tells of it" do
    begin_engine(storage: true)
    sender = client
    settle
    sender.say(Wire.send_message(id: 50, to: "q", payload: "x", level: 2))
    assert_nil sender.answer(50)
    assert @engine.sync_wanted?
    Thread.new { @engine.sync }.join
    refute @engine.sync_wanted?
    turn
    assert_equal 2, sender.answer(50).level
    @engine.make_space while @engine.space_wanted? && @engine.commit(wall: @wall).nil?
  end

  test "limits that do not exist are refused" do
    assert_match(/unknown limits: max_speed/, assert_raises(ArgumentError) { new_engine(max_speed: 1) }.message)
  end

  test "a journal is opened by one process, in folders that exist" do
    begin_engine(storage: true)
    assert_raises(Hikyaku::Log::Journal::Locked) { new_engine(storage: @folder) }
    error = assert_raises(SystemCallError) { new_engine(storage: "#{@folder}/none") }
    assert_kind_of Errno::ENOENT, error
  end

  test "in a forked child it is closed" do
    begin_engine(storage: true)
    reader, writer = IO.pipe
    child = fork do
      @engine.stats
    rescue IOError => error
      writer.write(error.message)
    ensure
      exit!(0)
    end
    writer.close
    assert_match(/another process's/, reader.read)
    Process.wait(child)
    assert_taken client.sends("q", "x", level: 1)
  end

  test "the checksum of the journal is that of the one in Ruby" do
    bytes = Random.new(1).bytes(5000)
    [[0, "123456789"], [7, ""], [0, bytes], [0xffffffff, bytes]].each do |crc, text|
      assert_equal Hikyaku::Log::CRC32C.native(Hikyaku::Log::CRC32C.native(crc, text), text), Hikyaku::Log::CRC32C.native(crc, text * 2)
    end
    assert_equal 0xe3069283, Hikyaku::Log::CRC32C.native(0, "123456789")
  end
end
