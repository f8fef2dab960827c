# frozen_string_literal: true

require "test_helper"
require "contracts/broker_contract"
require "objspace"
require "hikyaku/broker/ruby_engine"

class BrokerRubyEngineTest < Minitest::Test
  include BrokerContract

  # Files that can be told to fail.
  class Files < Hikyaku::Log::Journal::Files
    attr_accessor :failing, :full, :scarce
    # Segments for which there is room; nil: any number.
    attr_accessor :room

    def create(*)
      raise Errno::ENOSPC if full || (room && Dir.glob("{*.seg,spare-*.tmp}", base: path).size >= room)
      super
    end

    def open(*)
      raise Errno::EMFILE if scarce
      super
    end

    def write(*)
      raise Errno::EIO if failing == :write
      super
    end

    def sync_data(*)
      raise Errno::EIO if failing == :sync
      super
    end
  end

  def new_engine(**options)
    @files = Files.new(options[:storage]).tap { |files| files.room = @room } if options[:storage]
    Hikyaku::Broker::RubyEngine.new(files: @files, **options)
  end

  def with_failing_storage(call = :write)
    @files.failing = call
    yield
  end

  test "when the disk does not take what was written, nothing is acknowledged as synced, then or later" do
    begin_engine(storage: true)
    sender = client
    sender.sends("q", "a", level: 2, id: 77)
    with_failing_storage(:sync) { assert_raises(Hikyaku::Broker::StorageFailed) { @engine.work } }
    deliver
    assert_nil sender.take { |frame| frame.is_a?(Frames::Ack) && frame.id == 77 }.first
    assert_ended sender, Code::FAILED
    assert_raises(Hikyaku::Broker::StorageFailed) { @engine.commit(wall: @wall) }
  end

  test "where there is no descriptor to read a message with, it is delivered when there is one, and nothing fails" do
    begin_engine(storage: true, segment_bytes: SEGMENT, max_memory: 100_000)
    sender = client
    60.times do |number|
      sender.sends("q", number.to_s.ljust(3_000), level: WRITTEN)
      settle
    end
    assert_equal 60, stats[:messages]
    @files.scarce = true
    reader = client.receives("q", credit: 60)
    settle
    early = reader.pushes.size
    assert_operator early, :<, 60
    assert_operator @engine.next_tick, :<=, @now + 0.2
    @files.scarce = false
    @engine.tick(now: @now += 1, wall: @wall += 1_000)
    settle
    assert_equal 60 - early, reader.pushes.size
  end

  test "a full disk takes frees and a restart, whatever identities there are and come again" do
    begin_engine(storage: true, segment_bytes: SEGMENT)
    most = Hikyaku::Broker::Engine.max_identities(SEGMENT)
    most.times do |number|
      sender = client("%03d#{"i" * 252}" % number)
      sender.sends("q", "x", sequence: 4096, level: WRITTEN)
      sender.vanishes
    end
    @room = @files.room = 4
    sender = client
    400.times do
      sender.sends("q", "x" * 500, level: WRITTEN)
      settle
    end
    assert_operator stats[:refused][Code::DISK_FULL], :>, 0
    200.times { client("007#{"i" * 252}").vanishes }
    messages = stats[:messages]
    8.times do |number|
      @engine.abort
      start_engine
      assert_equal messages - number, stats[:messages]
      reader = client.receives("q", credit: 1)
      assert_taken reader.frees(reader.pushes.first)
    end
    assert_equal most, stats[:identities]
  end

  test "a disk that was full is tried again, and takes more when there is room" do
    begin_engine(storage: true, segment_bytes: SEGMENT)
    @files.full = true
    sender = client
    codes = Array.new(60) do |i|
      answer = sender.sends("q", "x" * 2000, level: 1, id: 100 + i)
      settle
      (answer || sender.answer(100 + i)).then { |each| each.is_a?(Frames::Error) ? each.code : 0 }
    end
    assert_equal [0, Code::DISK_FULL], codes.uniq
    assert_taken sender.sends("q", "memory", level: 0)
    reader = client.receives("q", credit: 5)
    assert_taken reader.frees(reader.pushes.first)
    assert_operator @engine.next_tick, :<=, @now + 1
    @files.full = false
    wait(1.1)
    settle
    assert_taken sender.sends("q", "again", level: 1)
  end

  test "deliveries to who does not read are bounded, and go on when it does" do
    slow = client.receives("q", credit: 100_000)
    slow.room = 0
    sender = client
    60.times { sender.sends_all("q", Array.new(50) { "x" * 1000 }) }
    assert_operator figures("q")[:out], :<, 1500
    assert_equal 3000, figures("q")[:out] + figures("q")[:ready]
    slow.room = nil
    @engine.writable(slow.session)
    deliver
    assert_equal 3000, slow.payloads.size
  end

  test "the engine does what the contract names, and a few things beside for its driver's threads" do
    contract = Hikyaku::Broker::Engine
    documented = File.read(File.expand_path("../../lib/hikyaku/broker/engine.rb", __dir__)).scan(/@!method (\w+\??)/).flatten.map(&:to_sym)
    methods = Hikyaku::Broker::RubyEngine.public_instance_methods - Object.public_instance_methods
    assert_includes Hikyaku::Broker::RubyEngine.ancestors, contract
    assert_empty documented - methods - [:initialize]
    assert_empty methods - documented
  end

  test "numbers are set aside anew before they come to an end" do
    begin_engine(storage: true)
    sender = client
    last = sender.sends("q", "x", level: 0).value
    parts.messages.reserved = last + 1
    last = sender.sends("q", "x", level: 0).value
    parts.sessions.reserved = @welcome.session + 1
    client
    session = @welcome.session
    turn
    assert_equal parts.store.written, parts.store.commit
    crash
    assert_operator client.sends("q", "x", level: 0).value, :>, last + 1000
    assert_operator @welcome.session, :>, session
  end

  test "a message that waits keeps nothing but its own bytes, before a restart and after it" do
    begin_engine(storage: true)
    sender = client
    sender.say(Hikyaku::Broker::Wire.ping(id: 1) + Hikyaku::Broker::Wire.send_message(to: "q", payload: "a" * 100, level: 1))
    sender.sends_all("q", ["b" * 100, "c" * 100], level: 1)
    assert_equal [[]] * 3, strings_behind_messages
    crash
    assert_equal [[]] * 3, strings_behind_messages
  end

  test "a message that was copied stands in its new segment alone, after a restart, too" do
    begin_engine(storage: true, segment_bytes: SEGMENT)
    sender = client
    60.times do
      sender.sends("q", "x" * 2000, level: 1)
      settle
    end
    assert_equal 3, parts.store.compact_segment(parts.store.segments.first, 3, SEGMENT)
    turn
    crash
    assert_equal [60, 60], [@engine.stats[:messages], parts.store.segments.sum { |segment| segment.live.size }]
  end

  test "limits that there are not are refused" do
    assert_match(/max_memroy/, assert_raises(ArgumentError) { Hikyaku::Broker::RubyEngine.new(max_memroy: 1) }.message)
  end

  private

  def parts = @engine.instance_variable_get(:@parts)

  # A String that is a slice of another keeps that whole.
  def strings_behind_messages
    parts.messages.map { |message| ObjectSpace.reachable_objects_from(message.content).grep(String) }
  end
end
