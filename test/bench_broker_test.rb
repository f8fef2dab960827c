# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "tmpdir"
require "support/fake_broker"
require_relative "../bench/harness/command"

Bench::Scenario.all # loads them

class BenchBrokerTest < Minitest::Test
  Wire = Hikyaku::Broker::Wire
  FLOORS = %w[broker-floor frames-floor].freeze

  FLOORS.product(Bench::Broker::LEVELS).each do |name, level|
    test "every message goes through the #{name} at level #{level}, once, and the figures say so" do
      entrant = Bench::Entrants.fetch(name)
      figures = entrant.run(level: level) { |server| entrant.stage(server, level: level).load(messages: 60, warmup: 7, senders: 3, receivers: 2, window: 4) }

      assert figures["whole"]
      assert_equal [60, 3, 2, 4, 100], figures.values_at("messages", "senders", "receivers", "window", "message_bytes")
      assert_equal [0, 0, 0, 0], figures.values_at("unanswered", "lost", "wrong", "misdirected")
      assert_equal %w[seconds delivery_seconds per_second cpu_us_each load_us_each server_busy load_busy], figures["run"].keys
      assert_operator figures["run"]["cpu_us_each"], :>, 0
      assert_operator figures["memory"]["rss_kb"], :>, 0
      assert_equal [60, 60], [figures["answer_ms"]["count"], figures["latency_ms"]["count"]]
    end
  end

  test "a floor's log has every message and the end of each, where its level promises that" do
    # With frames one FREE, and one record, may stand for several messages.
    {"broker-floor" => [5], "frames-floor" => 1..5}.each do |name, ends|
      entrant = Bench::Entrants.fetch(name)
      entrant.in_folder do |folder|
        entrant.run(level: "written", folder: folder) { |server| entrant.stage(server, level: "written").load(messages: 5, size: 200) }

        assert_includes ends.map { |count| 5 * (16 + 200) + count * 16 }, File.size(File.join(folder, "log")), name
      end
    end
  end

  test "messages wait where there is no receiver, and are received later" do
    FLOORS.each do |name|
      entrant = Bench::Entrants.fetch(name)
      entrant.run do |server|
        stage = entrant.stage(server)
        filled = stage.load(prefix: "waiting", receivers: 0, queues: 2, messages: 20)
        emptied = stage.load(prefix: "waiting", senders: 0, receivers: 2, messages: 20)

        assert filled["whole"] && emptied["whole"], name
        assert_equal [20, 0], [filled["answer_ms"]["count"], filled["latency_ms"]["count"]]
        assert_equal [0, 20], [emptied["answer_ms"]["count"], emptied["latency_ms"]["count"]]
        assert_operator emptied["first_seconds"], :>, 0
        assert_operator emptied["connect_seconds"], :>=, emptied["ready_seconds"]
      end
    end
  end

  test "messages that a socket does not take at once arrive all the same" do
    entrant = Bench::Entrants.fetch("frames-floor")
    figures = entrant.run { |server| entrant.stage(server).load(messages: 60, size: 900_000, window: 15, senders: 2, receivers: 2, timeout: 30) }

    assert figures["whole"]
    assert_equal 60, figures["latency_ms"]["count"]
  end

  test "a load of so many seconds sends no more than fits into them, and waits for what it sent" do
    entrant = Bench::Entrants.fetch("frames-floor")
    figures = entrant.run { |server| entrant.stage(server).load(messages: 100_000_000, seconds: 0.3, sample: 3, window: 10) }

    assert figures["whole"]
    assert_includes 1...100_000_000, figures["messages"]
    assert_in_delta figures["messages"] / 3.0, figures["latency_ms"]["count"], 1
    assert_equal [0, []], [figures["lost"], figures["done_each_second"]]
  end

  test "at a rate messages leave when they are due" do
    entrant = Bench::Entrants.fetch("frames-floor")
    figures = entrant.run { |server| entrant.stage(server).load(messages: 200, rate: 2_000, window: 50) }

    assert figures["whole"]
    assert_operator figures["run"]["seconds"], :>=, 0.0995
  end

  test "what the load says is the protocol: messages to queues in turn, answers in any order, one FREE for a read" do
    %i[each range backwards].each do |answers|
      frames, figures = with_broker(answers: answers, greeting: Wire.ping(id: 9)) do |broker|
        load(broker, senders: 2, receivers: 3, messages: 12, window: 3, credit: 7, level: "written", size: 30)
      end

      assert figures["whole"], answers
      hello = frames.grep(Wire::Frames::Hello)
      assert_equal [[1, 1, 0, ""]] * 5, hello.map { |frame| [frame.lowest, frame.highest, frame.authentication, frame.identity] }
      assert_equal [["q.0", 7], ["q.1", 7], ["q.2", 7]], frames.grep(Wire::Frames::Subscribe).map { |frame| [frame.name, frame.credit] }.sort
      sends = frames.grep(Wire::Frames::Send)
      assert_equal [[1, 4, 0, 30]] * 12, sends.map { |frame| [frame.level, frame.priority, frame.kind, frame.payload.bytesize] }
      assert_equal({"q.0" => 4, "q.1" => 4, "q.2" => 4}, sends.map(&:destination).tally)
      assert_equal [[0, 2]], frames.grep(Wire::Frames::Free).map { |frame| [frame.first, frame.level] }.uniq
      assert_equal [9] * 5, frames.grep(Wire::Frames::Receipt).map(&:id)
    end
  end

  test "as in the paper: to the receivers' own queues, each PUSH with its ACK and its FREE" do
    frames, figures = with_broker do |broker|
      load(broker, senders: 2, receivers: 2, messages: 8, per_client: true, ack_pushes: true, free_each: true, secret: "s3cret")
    end

    assert figures["whole"]
    hello = frames.grep(Wire::Frames::Hello)
    assert_equal ["", "", "q.0", "q.1"], hello.map(&:identity).sort
    assert_equal [["s3cret", 1]], hello.map { |frame| [frame.credentials, frame.authentication] }.uniq
    assert_equal [true, false], hello.partition { |frame| frame.identity != "" }.map { |some| some.all? { |frame| frame.epoch > 0 } }
    assert_equal [["", 1]], frames.grep(Wire::Frames::Subscribe).map { |frame| [frame.name, frame.kind] }.uniq
    assert_equal({["q.0", 1] => 4, ["q.1", 1] => 4}, frames.grep(Wire::Frames::Send).map { |frame| [frame.destination, frame.kind] }.tally)
    assert_equal [1, 1, 2, 2, 3, 3, 4, 4], frames.grep(Wire::Frames::Receipt).map(&:id).sort
    assert_equal [1, 1, 2, 2, 3, 3, 4, 4], frames.grep(Wire::Frames::Free).map { |frame| (frame.first == frame.last) ? frame.first : nil }.sort
  end

  {
    "is lost" => [->(number, queue) { (number == 3) ? [] : [queue] }, {"lost" => 1}],
    "comes twice" => [->(number, queue) { (number == 3) ? [queue, queue] : [queue] }, {"wrong" => 1}],
    "goes to another queue" => [->(number, queue) { (number == 3) ? ["q.#{1 - queue[-1].to_i}"] : [queue] }, {"misdirected" => 1}]
  }.each do |what, (deliver, faults)|
    test "a message that #{what} is noticed" do
      figures = nil
      capture_io { _, figures = with_broker(deliver: deliver) { |broker| load(broker, senders: 1, receivers: 2, messages: 6, timeout: 1) } }

      refute figures["whole"]
      assert_equal faults, figures.slice("lost", "wrong", "misdirected", "unanswered").reject { |_, count| count.zero? }
    end
  end

  {
    {levels: 1} => /has not that level/,
    {reached: 0} => /at a lower level/,
    {answers: :twice} => /an answer to what was not sent/,
    {greeting: Wire.error(code: 16, sentence: "no room", scope: 2)} => /ERROR 16: no room/
  }.each do |options, words|
    test "a broker that #{options.keys.first} #{options.values.first.inspect[0, 9]} is no figure: the load says why" do
      error = assert_raises(Bench::Load::Failed) { with_broker(**options) { |broker| load(broker, messages: 2, level: "synced") } }
      assert_match words, error.message
    end
  end

  test "a wrong option of the load gets one line and status 2" do
    {["--port", "0"] => "--port must be 1 to 65535", ["--port", "1", "--level", "eternal"] => "--level is memory, written or synced",
     ["--port", "1", "--dialect", "latin"] => "there is no such --dialect", ["--port", "1", "--size", "3"] => "--size must be 24 (the stamp) to 1000000"}
      .each do |options, line|
      _out, err, status = Open3.capture3(Bench::Build.program("queue_load"), *options)
      assert_equal [2, "queue_load: #{line} (see queue_load --help)\n"], [status.exitstatus, err]
    end
  end

  test "the disk's own time is told for space that is new and for space that is not, and no file stays" do
    Dir.mktmpdir do |folder|
      out, = Open3.capture2(Bench::Build.program("append"), folder, "100", "3")
      figures = JSON.parse(out)

      assert_equal [3, 3], figures.values_at("append_ms", "overwrite_ms").map { |its| its["count"] }
      assert_empty Dir.children(folder)
    end
  end

  test "a plain stream goes both ways" do
    entrant = Bench::Entrants.fetch("link-floor")
    figures = entrant.run { |server| entrant.stage(server).stream(3) }

    assert_equal 3_000_000, figures["bytes"]
    assert_operator figures["seconds"], :>, 0
  end

  # Without root there is no link, and a reason; with root a link has its rate, and is removed.
  test "a link is made where that is allowed, and its bytes are counted" do
    why = Bench::EthernetLink.obstacle
    next assert_match(/root|ip|tc/, why) if why
    cell = Bench::Cell.new("100 memory", "frames-floor", 10_000)
    links = Bench::BrokerLinks.new(entrants: ["frames-floor"], values: {messages: 100, clients: 2})
    figures = links.measure(cell)

    assert figures["whole"]
    assert_operator figures["link"]["wire_bytes"].values.min, :>, 100 * 10_000
    assert_in_delta figures["link"]["megabits"] / 100, figures["link"]["utilisation"], 0.001
    assert_operator figures["link"]["wire_utilisation"], :>, figures["link"]["utilisation"]
    assert_operator figures["link"]["wire_utilisation"], :<, 1.1 # it takes no more, but for what its bucket holds at first
    refute_match(/hkb[ls]#{Process.pid}/, `ip netns list`)
  end

  test "each peer is started for the level that it is measured at" do
    {
      "redis" => {"memory" => /appendonly no\z/, "written" => /appendfsync everysec\z/, "synced" => /appendfsync always\z/},
      "beanstalkd" => {"memory" => /1000000\z/, "written" => /-b FOLDER\z/, "synced" => /-f0 -b FOLDER\z/},
      "nats" => {"memory" => /store_dir FOLDER/, "written" => /store_dir FOLDER/}, "rabbitmq" => {"synced" => /both\.sh/},
      "broker-c" => {"memory" => /--engine=c((?!storage).)*\z/, "written" => /--storage=FOLDER/, "synced" => /--storage=FOLDER/}
    }.each do |name, levels|
      entrant = Bench::Entrants.fetch(name)
      assert_equal levels.keys, entrant.levels
      levels.each do |level, words|
        command, = entrant.command(4711, "FOLDER", {level: level, host: "127.0.0.1"})
        assert_match words, command.join(" ")
        assert_kind_of String, entrant.speech(level: level).fetch(:dialect)
      end
    end
    assert_equal %w[memory file], %w[memory written].map { |level| Bench::Entrants.fetch("nats").speech(level: level)[:storage] }
  end

  test "a peer that is not installed, and may not be, says how to get it" do
    package = Bench::DebianPackage.new("x-server", "no-such-program")
    error = package.stub(:install, nil) { assert_raises(Bench::Unavailable) { package.prepare } }

    assert_equal "x-server is not installed: apt-get install x-server", error.message
  end

  %w[broker-c broker-ruby].each do |name|
    test "#{name}: messages that wait are all there after it was killed, and were counted" do
      memory = Bench::BrokerMemory.new(entrants: [name], values: {messages: 30, rest: 0})
      figures = memory.measure(Bench::Cell.new("written", name, 30))

      assert figures["whole"]
      assert_equal [0, 0], figures["restart"].values_at("lost", "wrong")
      assert_operator figures["memory"]["rss_mb"], :>, 1
      assert_operator figures["restart"]["seconds"], :<=, figures["restart"]["all_seconds"]
    end
  end

  test "the hub's page has nothing of the broker's, and the other way round" do
    hub, broker = Bench::Suite::ALL.values_at("all", "broker").map { |suite| suite.scenarios.map(&:key) }

    assert_equal %w[broker-waiting broker-pipelined broker-sustained broker-memory broker-latency broker-links], broker
    assert_empty hub.grep(/broker/)
    assert_includes hub, "fanout"
    {"broker-waiting" => "floor", "fanout" => "redis"}.each do |key, stranger|
      _out, err = capture_io { assert_equal 2, Bench::Command.run(key, ["--entrants", stranger]) }
      assert_match(/#{stranger} has no part in this; there are \w/, err)
    end
    part = Bench::Part.new({"page" => "broker", "machine" => {"commit" => "abc"}, "rounds" => 1}, [Bench::BrokerWaiting.new])
    assert Bench::Page.new([part]).to_s.start_with?("# What the broker costs\n")
  end

  test "what cannot be measured here is left out, and said" do
    out, err = Bench::BrokerLinks.stub(:obstacle, "not today") { capture_io { Bench::Command.run("broker-links", []) } }

    assert_match(/broker-links is not measured: not today/, err)
    assert_match(/broker-links \| not today/, out)
  end

  test "a ratio to the fastest peer compares with the peer of the highest median" do
    scenario = Bench::BrokerPipelined.new(entrants: %w[broker-c redis nats], values: {sizes: [100], levels: ["memory"]})
    rates = {"broker-c" => [300, 330], "redis" => [200, 100], "nats" => [110, 110]}
    runs = rates.flat_map do |name, values|
      values.each_with_index.map do |value, round|
        Bench::Run.new(cell: Bench::Cell.new("memory", name, 100), round: round, figures: {"run" => {"per_second" => value}, "whole" => true})
      end
    end
    scenario.results = Bench::Results.new(runs)
    target = scenario.targets.first

    assert_match(/fastest peer's \(Redis streams\)/, target.name)
    assert_in_delta 2.4, target.spread.median
    assert_predicate target, :reached?
  end

  private

  # @return [Array(Array<Struct>, Object)] what came, and what the block returned
  def with_broker(**options)
    broker = FakeBroker.new(**options)
    figures = yield broker
    [broker.frames, figures]
  ensure
    broker&.close
  end

  def load(broker, **options)
    Bench::Load.run(program: "queue_load", port: broker.port, prefix: "q", settle: 0, timeout: 5, **options)
  end
end
