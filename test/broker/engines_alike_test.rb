# frozen_string_literal: true

require "test_helper"
require "contracts/broker_contract"
require "hikyaku/broker/native_engine"
require "hikyaku/broker/ruby_engine"

# Each engine opens what the other has kept, and a client who has nobody beside him hears the same, but for the sentences of
# errors. (Which of several receivers gets a message is an engine's to choose.)
class BrokerEnginesAlikeTest < Minitest::Test
  RUBY = Hikyaku::Broker::RubyEngine
  NATIVE = Hikyaku::Broker::NativeEngine
  Wire = Hikyaku::Broker::Wire

  class Bench
    include Minitest::Assertions

    attr_accessor :assertions

    def setup = @assertions = 0

    def teardown
    end
  end

  # An engine, driven as in the contract.
  class Side < Bench
    include BrokerContract::Driving

    attr_accessor :engine_class
    attr_reader :engine, :now, :wall

    def initialize(engine_class)
      @engine_class = engine_class
      setup
    end

    def new_engine(**options) = @engine_class.new(**options)
  end

  # A client that keeps all that it hears.
  class Recorder < BrokerContract::Client
    def heard = @heard ||= []

    def hear(bytes)
      known = @frames.size
      super
      heard.concat(@frames.drop(known).map { |frame| [frame.class.name[/\w+\z/], frame.to_h.except(:sentence)] })
    end
  end

  def setup
    @sides = [RUBY, NATIVE].map { |engine_class| Side.new(engine_class) }
  end

  def teardown = @sides.each(&:teardown)

  # [[what the client sends, what the broker answers], …] in the last section of docs/protocol.md.
  def documented_session
    text = File.read(File.expand_path("../../docs/protocol.md", __dir__))[/^## 12\..*?^```\n(.*?)^```/m, 1]
    frames = text.scan(/^([<>]) .*\n((?:    .*\n)+)/).map { |side, hex| [side, [hex.delete(" \n")].pack("H*")] }
    frames.slice_before { |side, _| side == ">" }.map { |(_, sent), *answers| [sent, answers.map(&:last)] }
  end

  test "the session that docs/protocol.md shows is that of each engine, byte for byte" do
    wall = 1_795_000_000_000
    [RUBY, NATIVE].each do |engine_class|
      engine = engine_class.new(open: true, now: 0.0, wall: wall)
      session = engine.connect(now: 0.0)
      assert_equal 4, documented_session.size
      documented_session.each do |sent, answers|
        assert engine.receive(session, sent, now: 0.0, wall: wall)
        engine.commit(wall: wall)
        assert_equal answers.sort, frames(engine).sort, engine_class.name
      end
      engine.close(now: 0.0, wall: wall)
    end
  end

  # The frames that an engine has for its only session.
  def frames(engine)
    bytes = +""
    while (session = engine.next_ready)
      bytes << engine.take(session, 65_536).tap { |taken| engine.wrote(session, taken.bytesize) }
    end
    found = []
    Wire::Reader.new(from: :broker).read(bytes) { |_, size| found << bytes.byteslice(found.sum(&:bytesize), size) }
    found
  end

  # What a client hears of a conversation, with each engine.
  def heard(**options)
    @sides.map do |side|
      side.begin_engine(**options)
      client = Recorder.new(side, side.engine.connect(now: side.now, address: "192.0.2.1"))
      side.instance_variable_get(:@clients)[client.session] = client
      yield side, client
      client.heard
    end
  end

  def converse(side, client, seed, storage)
    random = Random.new(seed)
    client.ask(:hello, identity: "me", epoch: 1)
    client.receives("q", credit: 20)
    deliveries = []
    120.times do |i|
      deliveries.concat(client.pushes.map(&:id))
      case random.rand(9)
      when 0..2 then client.sends("q", "message #{i}" * random.rand(1..40), priority: random.rand(3..5), sequence: random.rand(2).zero? ? i + 1 : 0, level: storage ? random.rand(3) : 0)
      when 3 then client.sends_all("q", Array.new(random.rand(1..5)) { |j| "message #{i}.#{j}" })
      when 4, 5 then deliveries.shift&.then { |delivery| client.frees(delivery) }
      when 6 then deliveries.shift&.then { |delivery| client.releases(delivery) }
      when 7 then deliveries.shift&.then { |delivery| client.rejects(delivery, reason: "no") }
      when 8 then client.frees(1 << 60)
      end
      side.settle
    end
  end

  [false, true].product([1, 2, 3]).each do |storage, seed|
    test "a client alone hears the same#{" with storage" if storage} (#{seed})" do
      one, other = heard(storage: storage) { |side, client| converse(side, client, seed, storage) }
      assert_operator one.size, :>, 100
      at = one.zip(other).index { |a, b| a != b }
      assert_nil at, "frame #{at}: #{one[at]} with Ruby, #{other[at]} in C, after #{one[at - 1]}" if at
      assert_equal one.size, other.size
    end
  end

  # Every REPORT, byte by byte: fields, their names and their order are the same, whoever asks whichever engine.
  def look_round(client)
    client.say(*[0, 1].product(["", "q", "me"]).map { |kind, name| Wire.query(what: BrokerContract::QUEUES, kind: kind, name: name, id: client.next_id) })
    client.say(Wire.query(what: BrokerContract::SESSIONS, id: client.next_id))
    client.say(*[1, 2].map { |limit| Wire.query(what: BrokerContract::DEAD, name: "q", limit: limit, id: client.next_id) })
    client.say(*(0..20).map { |id| Wire.query(what: BrokerContract::EXPLAIN, name: "q", number: id, id: client.next_id) })
  end

  test "whoever looks in reads the same of a receiver that is passed over, and of what is too large for all" do
    one, other = heard do |side, client|
      client.ask(:hello, identity: "me", epoch: 1, agent: "test/\u00E9", max_frame: 4096)
      client.receives("q", credit: 2, lease: 1000)
      client.sends_all("q", %w[a b c])
      client.sends("large", "x" * 5000)
      client.receives("large", number: 2)
      side.wait(1.5)
      client.say(Wire.query(what: BrokerContract::EXPLAIN, name: "large", id: client.next_id))
      look_round(client)
      client.frees(client.pushes.first)
      look_round(client)
    end
    assert(one.any? { |_, fields| fields[:document].to_s.include?("passed over") })
    assert(one.any? { |_, fields| fields[:document].to_s.include?("5048 bytes") })
    one.zip(other).each { |a, b| assert_equal a, b }
  end

  test "whoever looks in reads the same of queues, sessions, dead letters and messages" do
    one, other = heard(max_failures: 1) do |side, client|
      client.ask(:hello, identity: "me", epoch: 1, agent: "test/1")
      client.receives("q", credit: 4)
      client.sends_all("q", Array.new(9) { |i| "message #{i}" })
      client.sends("q", "later", delay: 5000, time_to_live: 9000)
      client.sends("q", "short", time_to_live: 1000)
      client.sends("ü\"", "x", priority: 9)
      client.sends("me", "mine", kind: 1)
      side.wait(2)
      client.frees(client.pushes.first)
      client.rejects(client.pushes.first, reason: "no \"ä\"")
      client.buries(client.pushes.first)
      client.releases(client.pushes.first, delay: 500)
      side.wait(1)
      look_round(client)
    end
    reports = one.filter_map { |name, frame| frame[:document] if name == "Report" }
    assert_operator reports.size, :>=, 15
    assert_equal [1, 2, 1, 2], JSON.parse(reports.first)["queues"].first.values_at("freed", "failed", "expired", "dead")
    one.zip(other).each { |mine, others| assert_equal mine, others }
    assert_equal one.size, other.size
  end

  test "each opens what the other has kept" do
    side = @sides.first
    side.begin_engine(storage: true)
    kept = []
    8.times do |round|
      side.client.sends_all("q", Array.new(5) { |i| "#{round}.#{i}" }, level: 2)
      kept.concat(Array.new(5) { |i| "#{round}.#{i}" })
      reader = side.client.receives("q")
      pushes = reader.pushes
      assert_equal kept.sort, pushes.map(&:payload).sort
      pushes.each { |push| (kept.size > 2 * round + 2) ? (reader.frees(push) and kept.delete(push.payload)) : reader.releases(push, delay: 1) }
      side.cut(reader)
      side.settle
      side.engine_class = (side.engine_class == RUBY) ? NATIVE : RUBY
      (round % 4 < 2) ? side.restart : side.crash
      side.wait(1)
    end
  end
end
