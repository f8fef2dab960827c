# frozen_string_literal: true

require "test_helper"
require "digest"
require "minitest/mock"
require "socket"
require "support/fake_cable"
require_relative "../bench/harness/command"
require_relative "../bench/link/self_test"
require_relative "../bench/peers/rails/within"

Bench::Scenario.all # loads them

class BenchActionCableTest < Minitest::Test
  COMMAND = JSON.generate(command: "subscribe", identifier: JSON.generate(channel: "NewsChannel", topic: "{t}"))

  test "a client of Action Cable subscribes once it is welcomed, and gets what is broadcast to its topic" do
    cable = FakeCable.new
    figures = load(cable, cable: COMMAND, subscribers: 4, topics: 2, messages: 3, sync: true)

    assert figures["whole"]
    assert_equal [4, 6], [figures["subscribers"], figures["delivery"]["delivered"]]
    assert_equal [%w[0 0 1 1], []], [cable.topics.sort, cable.too_early]
    upgrade = cable.requests.first
    assert_match(/^Sec-WebSocket-Protocol: actioncable-v1-json, actioncable-unsupported\r$/, upgrade)
    frame = 2 + 4 + COMMAND.sub("{t}", "0").bytesize # a command of up to 125 bytes would have this head
    assert_equal upgrade.bytesize + frame + ((COMMAND.bytesize > 127) ? 2 : 0), figures["connect"]["bytes_out_each"]
    assert_operator figures["connect"]["bytes_in_each"], :>, 100
  ensure
    cable.close
  end

  test "a client that is not let in is counted, and said" do
    cable = FakeCable.new(refuse: true)
    figures = nil
    _out, err = capture_io { figures = load(cable, cable: COMMAND, subscribers: 2, messages: 1) }

    assert_equal [0, 2, false], [*figures.values_at("subscribers", "dead"), figures["whole"]]
    assert_match(/subscriber refused: HTTP\/1.1 101/, err.b)
  ensure
    cable.close
  end

  test "clients of Action Cable publish over their own WebSockets, in turn, in masked frames of any length" do
    [[60, 0], [300, 0], [60_000, 6_000]].each do |size, more|
      cable = FakeCable.new
      figures = load(cable, cable: COMMAND, speak: true, subscribers: 3, messages: 6, sync: true, together: 3, size: size,
        publish_prefix: %({"command":"message","more":"#{"m" * more}","text":"), publish_suffix: %("}))

      assert figures["whole"], size
      assert_equal [6, 18], [figures["publish"]["accepted"], figures["delivery"]["delivered"]]
      assert_equal [[size] * 6, [2, 2, 2]], [cable.spoken.map { |_, text| text.bytesize }, cable.spoken.map(&:first).tally.values]
    ensure
      cable.close
    end
  end

  test "of those that leave together the next leave when all have the last" do
    cable = FakeCable.new
    load(cable, cable: COMMAND, subscribers: 2, messages: 9, publishers: 3, sync: true, together: 3)

    waves = cable.published.map { |text| text[18, 8].to_i(16) }.each_slice(3).map(&:sort)
    assert_equal [[0, 1, 2], [3, 4, 5], [6, 7, 8]], waves
  ensure
    cable.close
  end

  test "readers may subscribe with a form, and what is published may go elsewhere" do
    asked = Queue.new
    streams = serve { |request, socket| (asked << request) && socket.write("HTTP/1.1 200 OK\r\n\r\n") }
    doors = serve { |request, socket| (asked << request) && socket.write("HTTP/1.1 204 No Content\r\n\r\n") }
    capture_io do # nothing is delivered, which it says
      Bench::Load.run(port: streams, publish_port: doors, subscribers: 1, messages: 1, settle: 20, timeout: 1, subscribe_path: "/r{n}/poll",
        subscribe_body: "/{t}=-1", publish_path: "/{t}", publish_suffix: "&end={t}")
    end

    first, second = Array.new(2) { asked.pop(true) }
    form = "Content-Type: application/x-www-form-urlencoded\\r\\nContent-Length: 5\\r\\n"
    assert_match(%r{\APOST /r0/poll HTTP/1.1\r\nHost: 127.0.0.1:#{streams}\r\n#{form}.*\r\n/0=-1\z}m, first)
    assert_match(%r{\APOST /0 HTTP/1.1\r\nHost: 127.0.0.1:#{doors}\r\n.*@x+&end=0\z}m, second)
  end

  test "options that contradict each other get one line" do
    {%w[--speak] => /--speak goes with --cable/, %w[--cable x --stalled 1] => /--cable does not go with/, %w[--together 0] => /--together starts at 1/,
     %w[--host nowhere] => /nowhere is no IPv4 address/}.each do |flags, complaint|
      _out, err, status = Open3.capture3(Bench::Build.program("load"), "--port", "1", *flags)
      assert_equal [2, 1], [status.exitstatus, err.lines.size]
      assert_match complaint, err
    end
  end

  test "the CPU of processes is looked at while they work" do
    busy = Process.spawn(RbConfig.ruby, "--disable-gems", "-e", "loop {}")
    idle = Process.spawn(RbConfig.ruby, "--disable-gems", "-e", "sleep")
    used, highest, none = Bench::CpuMeter.run([busy]) do |meter|
      from = meter.look
      Thread.pass until meter.used(from, meter.look) > 0.02
      to = meter.look
      other = Bench::CpuMeter.new([idle])
      [meter.used(from, to), meter.highest(from, to), other.highest(other.look, other.look)]
    end

    assert_operator used, :>, 0.02
    assert_operator highest, :>, 0
    assert_operator none, :<, 1
  ensure
    [busy, idle].each { |pid| Process.kill("KILL", pid) && Process.wait(pid) }
  end

  # In the tests' own bundle: that of bench/peers is installed by bin/bench alone.
  %w[cable-async rails-ruby rails-c].each do |name|
    test "one publishes to #{name} through each of its doors" do
      entrant = Bench::Entrants.fetch(name)
      with_own_gems do
        entrant.run do |server|
          entrant.doors.each do |door|
            figures = entrant.stage(server, door: door).load(subscribers: 6, topics: 2, messages: 4, publishers: 2, sync: true, settle: 50)
            assert figures["whole"], door
            assert_equal 12, figures["delivery"]["delivered"]
          end
        end
      end
    end
  end

  test "Action Cable over Redis is one program and one Redis, which are measured together" do
    with_own_gems do
      command, environment = Bench::Entrants.fetch("cable-redis").command(4711, "FOLDER", {host: "127.0.0.1"})
      assert_match(/both\.sh\z/, command.last)
      assert_match(/redis-server --port \d+ --bind 127\.0\.0\.1 .*--save '' /, environment["FIRST"])
      assert_match(/config\.ru\z/, environment["SECOND"])
      assert_match(%r{\Aredis://127\.0\.0\.1:\d+\z}, environment["BENCH_REDIS"])
    end
  end

  test "a thread within a process publishes what it is told, on one connection after the other" do
    published = Queue.new
    port = Within.open("127.0.0.1") { |topic, text| published << [topic, text] }
    TCPSocket.open("127.0.0.1", port) do |socket|
      2.times do |number|
        body = "topic=#{number}&data=a&b=c"
        socket.write("POST / HTTP/1.1\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
        assert_equal Within::ANSWER, socket.gets("\r\n\r\n")
      end
    end

    assert_equal [["0", "a&b=c"], ["1", "a&b=c"]], Array.new(2) { published.pop }
  end

  test "the lock files of the benchmarks name no registry but the public ones" do
    remotes = File.read("#{Bench::GEMS.gemfile}.lock").scan(/^  remote: (.+)$/).flatten
    assert_equal ["../..", "https://rubygems.org/"], remotes.sort
    assert_empty File.read(Bench::NodePackages::LOCK).scan(/"resolved": "([^"]+)"/).flatten.grep_v(%r{\Ahttps://registry\.npmjs\.org/})
  end

  test "the lock file of the peers fits the gem's own dependencies" do
    locked = Bundler::LockfileParser.new(File.read("#{Bench::GEMS.gemfile}.lock")).specs.find { |spec| spec.name == "hikyaku" }
    gemspec = Gem::Specification.load(File.expand_path("../hikyaku.gemspec", __dir__))
    assert_equal(*[gemspec.runtime_dependencies, locked.dependencies].map { |dependencies| dependencies.to_h { |its| [its.name, its.requirement] } })
  end

  test "fronts are configured for their addresses and folders" do
    values = {"address" => "10.0.0.1", "port" => 4711, "server" => "10.0.0.1:80", "secure" => 4712, "root" => "ROOT", "gzip" => "on"}
    templates = Dir.children(Bench::Front::FOLDER)
    refute_empty templates
    templates.each do |template|
      text = Dir.mktmpdir { |folder| Bench::Front.new(template).configuration(folder, values) }

      refute_match(/{{|}}/, text)
      assert_match(/10\.0\.0\.1/, text)
      assert_match(/4711/, text)
    end
  end

  # Without root or TUN there is no link, and a reason.
  test "what goes over a shaped link takes its time, is counted, and is lost as often as was set" do
    why = Bench::ShapedLink.obstacle
    next assert_match(/root|ip|tun/, why) if why
    link = Bench::ShapedLink.new(up: 2_000_000, delay: 20, loss: 0.1, seed: 3)
    figures = over(link) { probe(link, 400, 500) }

    arrived = figures["delay_ms"]["count"]
    counts = link.counts["up"]
    assert_equal counts["packets"], counts.values_at("dropped", "lost", "delivered").sum
    assert_in_delta counts["delivered"], arrived, 20 # the networks say a few words of their own
    assert_in_delta 0.1, counts["lost"].fdiv(counts["packets"]), 0.06
    assert_operator figures["delay_ms"]["min"], :>=, 20
    assert_operator figures["bytes"] * 8 / figures["seconds"], :<, 2_000_000 * 1.02
    refute_match(/hks[ls]#{Process.pid}/, `ip netns list`)
  end

  test "a shaped link drops what its queue cannot hold" do
    next assert_match(/root|ip|tun/, Bench::ShapedLink.obstacle) if Bench::ShapedLink.obstacle
    link = Bench::ShapedLink.new(up: 100_000, queue: 3_000)
    over(link) { probe(link, 20, 1_000) }

    assert_operator link.counts["up"]["dropped"], :>=, 20 - 3 - 2 # three fit, and one or two leave meanwhile
    assert_equal 0, link.counts["up"]["lost"]
  end

  test "a link that cannot be is told in a line" do
    _out, err, status = Open3.capture3(Bench::Build.program("shaper"), "--left", "a", "--right", "b", "--loss", "2")
    assert_equal ["shaper: --loss is 0 to 1 (see shaper --help)\n", 2], [err, status.exitstatus]
    check = Bench::LinkSelfTest::Check.new(link: "x", what: "y", set: 10, measured: 12, tolerance: 1)
    assert_equal [false, "**off**"], [check.passed?, check.row.last]
    check.tolerance = 2
    assert check.passed?
  end

  test "other ways to push take part wherever the load generators can read them" do
    everywhere = [Bench::ActionCableLoad, Bench::ActionCableCost, Bench::ActionCableLatency, Bench::ActionCableNode, Bench::ActionCableTalk,
      Bench::ActionCableOutage]
    everywhere.each { |type| assert_empty %w[iodine threads naive hikyaku-c rails-c cable-async] - type.new.groups.flatten.map(&:entrant), type.key }

    clients = Bench::ActionCableLoad.new.groups.flatten.group_by(&:entrant).transform_values { |cells| cells.map(&:test) }
    assert_equal [%w[node c], %w[node c], %w[c]], clients.values_at("threads", "naive", "message-bus")
  end

  test "every table of a publish names the publisher" do
    Bench::Suite::ALL.fetch("action_cable").scenarios.each do |type|
      tables = type.new.tables.reject { |table| table.title.match?(/subscri/i) }
      refute_empty tables
      tables.each do |table|
        column = table.head.index("Published by")
        assert_equal 1, column, "#{type.key}: #{table.title}"
        publishers = table.rows.group_by(&:first).transform_values { |rows| rows.map { |row| row[column] }.uniq }
        assert_includes publishers["Action Cable, async"], "an action", table.title
        assert_equal ["the hub's own address"], publishers["Hikyaku, C engine"], table.title
        assert_equal [table.head.size], table.rows.map(&:size).uniq, table.title
      end
    end
  end

  test "fewer bytes are fewer: as many are too many" do
    {99 => "reached", 100 => "**missed**", 101 => "**missed**"}.each do |bytes, verdict|
      target = Bench::Page.new([bytes_part({"cable-async" => 100, "rails-c" => bytes})]).targets.first
      assert_equal [verdict, "less than 1"], [target.verdict, target.bound]
    end
  end

  test "what was measured apart stands beside the rest of its scenario, with facts of its own, and stays in the file" do
    addition = bytes_part({"cable-async" => 100, "rails-c" => 100, "threads" => 50}, date: "2026-01-02 03:04 UTC",
      command: "bin/bench action-cable-load --entrants threads", cpu: "Elsewhere 9")
    page = Bench::Page.new([bytes_part({"cable-async" => 100, "rails-c" => 99}), addition])

    text = page.to_s
    assert_match(/^\| .*: fewer +\| .*reached/, text)
    assert_match(/^\| .*: fewer, measured apart +\| .*missed/, text)
    first, apart = text.split("\n*Measured apart, 2026-01-02*")
    assert_match(/\| Elsewhere 9 +\|.*### Measured apart, 2026-01-02: 100 clients subscribe .*thread and queue per client/m, apart)
    assert_includes apart, "`bin/bench action-cable-load --entrants threads`"
    refute_match(/thread and queue|Elsewhere/, first)
    refute_match(/did other work/, text)

    Dir.mktmpdir do |folder|
      page.write(folder)
      assert_equal text, Bench::Page.new(Bench::Part.load(File.read(File.join(folder, "results.jsonl")))).to_s
    end
  end

  test "what was measured apart on a machine that did other work says so" do
    text = [nil, 0.1, 0.3].map do |others|
      part = bytes_part({"threads" => 50})
      part.scenarios.first.results.runs.each { |run| run.others = others }
      Bench::Page.new([bytes_part({"cable-async" => 100}), part]).to_s
    end
    assert_equal [false, false, true], text.map { |one| one.include?("The machine did other work") }
  end

  test "what was measured apart is added to a page that is made anew" do
    Dir.mktmpdir do |folder|
      more, all = %w[more all].map { |name| File.join(folder, name) }
      Bench::Page.new([bytes_part({"threads" => 50}, date: "2026-01-02")]).write(more)
      Bench::Page.new([bytes_part({"cable-async" => 100})]).write(all)
      capture_io do
        arguments = ["--from", "#{all}/results.jsonl", "--out", all]
        assert_equal [0, 0], [[*arguments, "--from", "#{more}/results.jsonl"], arguments].map { |these| Bench::Command.run("action_cable", these) }
      end
      assert_equal 1, File.read(File.join(all, "README.md")).scan("### Measured apart, 2026-01-02: 100 clients subscribe").size
    end
  end

  test "the committed pages lead to each other and to their files" do
    results = Bench::Page::RESULTS
    links = Dir["**/*.md", base: results].to_h { |page| [page, File.read(File.join(results, page)).scan(/\]\(([^)#]+)\)/).flatten.uniq] }

    assert_includes links.fetch("README.md"), "action_cable/README.md"
    assert_includes links.fetch("action_cable/README.md"), "../README.md"
    assert_empty links.flat_map { |page, its| its.reject { |link| File.exist?(File.join(results, File.dirname(page), link)) }.map { |link| [page, link] } }
  end

  private

  # @param bytes [Hash{String => Integer}] that each has on the wire
  def bytes_part(bytes, date: "2026-01-01", command: "bin/bench action_cable", **machine)
    scenario = Bench::ActionCableLoad.new(entrants: bytes.keys)
    runs = scenario.groups.flatten.map do |cell|
      phases = %w[subscribe publish].to_h { |phase| [phase, {"bytes" => bytes.fetch(cell.entrant)}] }
      Bench::Run.new(cell: cell, round: 0, figures: {"whole" => true, "wire" => phases})
    end
    scenario.results = Bench::Results.new(runs)
    Bench::Part.new({"page" => "action_cable", "command" => command, "rounds" => 1, "interrupted" => false,
      "machine" => {"commit" => "abc", "date" => date, **machine.transform_keys(&:to_s)}, "left_out" => {}}, [scenario])
  end

  def over(link)
    link.open
    yield
  ensure
    link.close
  end

  # All at once.
  def probe(link, count, size) = Bench::LinkSelfTest.probe(link.load, link.server, link.host, count, size, 0)

  def load(cable, **options) = Bench::Load.run(port: cable.port, settle: 20, timeout: 10, **options)

  def with_own_gems(&block)
    command = ->(program) { [RbConfig.ruby, Gem.bin_path(program, program)] }
    Bench::GEMS.stub(:environment, {}) { Bench::GEMS.stub(:command, command, &block) }
  end

  # A server in this process that reads requests, each with its body, and leaves the connection open.
  def serve
    listener = TCPServer.new("127.0.0.1", 0)
    Thread.new do
      loop do
        Thread.new(listener.accept) do |socket|
          while (head = socket.gets("\r\n\r\n"))
            yield head + socket.read(head[/content-length: (\d+)/i, 1].to_i), socket
          end
        end
      end
    end
    listener.addr[1]
  end
end
