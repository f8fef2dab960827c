# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "set"
require "socket"
require "tmpdir"
require "zlib"
require_relative "../bench/harness/command"
require_relative "../bench/pipelining/clients/visit"

Bench::Scenario.all # loads them

class BenchPipeliningTest < Minitest::Test
  SMALL = Bench::Sheet.new(256, 12)

  test "an image has exactly the bytes that it should, is a picture, and is told from every other" do
    [*100..700, 2_000, 16_000].each do |size|
      bytes = Bench::Image.bytes(size, size % 100)
      assert_equal [size, [size % 100 + 1, 1]], [bytes.bytesize, dimensions(bytes)]
      assert Bench::Image.own?(bytes, size, size % 100)
    end
    bytes = Bench::Image.bytes(256, 7)
    assert_equal bytes, Bench::Image.bytes(256, 7)
    assert_operator Zlib.deflate(bytes).bytesize, :>, 230
    [[256, 8], [256, 70], [257, 7], [255, 7]].each { |size, number| refute Bench::Image.own?(bytes, size, number) }
    refute Bench::Image.own?(bytes[0..-2], 256, 7)
    refute Bench::Image.own?("", 256, 7)
    assert_raises(ArgumentError) { Bench::Image.bytes(99, 0) }
  end

  test "a page is known by its address, and has what its text says" do
    sheet = Bench::Sheet.named("D", 5)
    assert_equal [1_200, 77, "/s1200x77.html"], [sheet.size, sheet.count, sheet.path]
    assert_equal [sheet, Bench::Sheet.new(256, 40)], [Bench::Sheet.at(sheet.path), Bench::Sheet.named("256", 40)]
    assert_raises(ArgumentError) { Bench::Sheet.at("/index.html") }
    visit = Visit.new("http://10.0.0.1:80#{sheet.path}", {})
    assert_equal sheet.images, visit.paths(sheet.html)
    assert_equal sheet.images.map { |path| "http://10.0.0.1:80#{path}" }, visit.absolute(visit.paths(sheet.html))
    assert_equal "http://10.0.0.1:80/s1200/76.gif", visit.absolute(sheet.images).last
  end

  test "a visit is whole only when each body is the right one" do
    bodies = Array.new(SMALL.count) { |number| Bench::Image.bytes(SMALL.size, number) }
    {[SMALL.html, bodies] => true, [SMALL.html, bodies.reverse] => false, [SMALL.html, bodies[0..-2]] => false, [SMALL.html.chop, bodies] => false,
     [SMALL.html, [nil.to_s, *bodies.drop(1)]] => false}.each do |got, whole|
      visit = Visit.new("http://10.0.0.1:80#{SMALL.path}", {})
      visit.start { visit.got(*got) }
      assert_equal whole, visit.to_h["whole"]
      assert_operator visit.to_h["seconds"], :>=, 0
    end
    refute Visit.new("http://10.0.0.1:80#{SMALL.path}", {}).whole?
  end

  # By another program, with heads of 333 bytes, in seconds.
  test "the bound is what was worked out before, within a hundredth" do
    {["wcdma-260", 1_200, 77] => 3.39, ["wcdma-260", 2_000, 24] => 2.06, ["wcdma-260", 6_200, 5] => 1.54, ["weak-4g", 1_200, 77] => 1.11,
     ["weak-4g", 2_000, 24] => 0.77, ["satellite", 1_200, 77] => 1.90, ["satellite", 6_200, 5] => 1.83, ["wcdma-260", 256, 10] => 0.96,
     ["wcdma-260", 256, 100] => 2.12, ["wcdma-260", 16_384, 100] => 36.92, ["weak-4g", 4_096, 30] => 1.20}.each do |(link, size, count), seconds|
      found = Bench::Bound.new(head: 333, **Bench::ShapedLink.profile(link)).seconds(Bench::Sheet.new(size, count))
      assert_in_delta seconds, found, [seconds * 0.01, 0.012].max, [link, size, count]
    end
  end

  test "requests that take longer than their answers bound a page too" do
    settings = {up: 8_000, down: 8_000_000, delay: 0, head: 100}
    one, hundred = [1, 100].map { |count| Bench::Bound.new(**settings).seconds(Bench::Sheet.new(100, count)) }
    assert_in_delta 8 * (60 * 99 + 52 * 4) / 8_000.0, hundred - one, 0.01
  end

  test "programs visit a page of nginx, whole, and the server tells how" do
    skip_unless_available("nginx", "curl")
    Bench::Site.run("nginx", sheets: [SMALL]) do |site|
      {"net-http" => [1, 0], "net-http-2" => [2, 0], "curl-6" => [6, 0], "curl-h2" => [1, nil], "heads-60-all" => [1, nil], "heads-450-16" => [1, nil],
       "heads-450-serial" => [1, 0]}.each do |name, (connections, pipelined)|
        figures = Bench::Entrants.fetch(name).visit(site, SMALL)
        assert_equal [true, SMALL.count, SMALL.bytes], figures.values_at("whole", "objects", "bytes"), name
        assert_equal [connections, SMALL.count + 1], figures.values_at("connections", "requests"), name
        assert_equal pipelined, figures["pipelined"], name if pipelined
        assert_operator figures["seconds"], :>, name.start_with?("curl") ? -0.1 : 0, name # curl's own start has been taken off
      end
      assert_equal 450, Bench::Entrants.fetch("heads-450-all").visit(site, SMALL)["request_bytes"]
      assert_operator Bench::Entrants.fetch("heads-60-all").visit(site, SMALL)["pipelined"], :>=, SMALL.count - 1
    end
  end

  test "Puma has the same pages" do
    Bench::Site.run("puma", sheets: [SMALL]) do |site|
      figures = Bench::Entrants.fetch("heads-60-all").visit(site, SMALL)
      assert_equal [true, SMALL.count], figures.values_at("whole", "objects")
      assert_nil figures["requests"]
    end
    assert_operator Bench::Site.head_bytes("puma"), :>, 100
  end

  test "Chromium says itself how long a page took, and checks its images" do
    skip_unless_available("nginx", "chromium")
    Bench::Site.run("nginx", sheets: [SMALL]) do |site|
      %w[chromium chromium-h2].each do |name|
        figures = Bench::Entrants.fetch(name).visit(site, SMALL)
        assert_equal [true, SMALL.count, SMALL.bytes], figures.values_at("whole", "objects", "bytes"), name
        assert_equal (name == "chromium") ? "http/1.1" : "h2", figures["protocol"]
      end
    end
  end

  test "a client that gets a wrong body reports it" do
    bodies = SMALL.images.to_h { |path| [path, Bench::Image.bytes(SMALL.size, 0)] }.merge(SMALL.path => SMALL.html)
    serving(bodies) do |url|
      out, status = Open3.capture2(RbConfig.ruby, File.join(Bench::PageClient::CLIENTS, "library.rb"), "library=raw", url)
      assert_equal [false, 1], [JSON.parse(out)["whole"], status.exitstatus]
    end
  end

  test "a library's requests a second are counted, each for another URL" do
    skip_unless_available("nginx")
    Bench::Site.run("nginx", sheets: [SMALL]) do |site|
      figures = Bench::Entrants.fetch("net-http").rate(site, SMALL, "each", 50)
      assert_equal [true, 50], figures.values_at("whole", "requests")
      assert_operator figures["per_second"], :>, 1
      assert_operator figures["cpu_us_each"], :>, 0
      error = assert_raises(Bench::Load::Failed) { Bench::Entrants.fetch("net-http").rate(site, SMALL, "batch", 50) }
      assert_match(/there is no batch with net-http/, error.message)
    end
  end

  test "a cell is measured over its own link, and told in bounds and round trips" do
    skip_unless_available("nginx")
    next assert_match(/root|ip|tun/, Bench::ShapedLink.obstacle) if Bench::ShapedLink.obstacle
    scenario = Bench::PipeliningPages.new(entrants: %w[heads-60-all], values: {links: ["weak-4g"], servers: ["nginx"], pages: ["Y"]})
    figures = scenario.measure_in(0, scenario.groups.flatten.first)

    assert figures["whole"]
    assert_operator figures["over_bound"], :>, 0.9
    assert_in_delta figures["seconds"], figures["bound"] * figures["over_bound"], 0.001
    assert_in_delta figures["seconds"] / 0.15, figures["round_trips"], 0.001
  end

  test "places are measured at the same time, cells of one place never" do
    meeting = Queue.new
    scenario = Places.new(entrants: %w[one two], meeting: meeting)
    rounds = Places.stub(:at_once, 2) { Bench::Rounds.new([scenario], 2) {}.tap(&:call) }

    refute rounds.interrupted?
    assert_empty scenario.broken
    assert_equal 8, scenario.seen.size
    assert_equal [%w[one two two one]] * 2, scenario.seen.group_by(&:first).values.map { |its| its.map(&:last) }
  end

  test "an interrupt ends what is measured at the same time, and what was there stays" do
    main = Thread.current
    scenario = Places.new(entrants: %w[one two], on_third: -> { main.raise(Interrupt) || sleep })
    rounds = nil
    Places.stub(:at_once, 2) { (rounds = Bench::Rounds.new([scenario], 2) {}).call }

    assert rounds.interrupted?
    assert_operator scenario.results.runs.size, :<, 8
    assert_equal scenario.results.runs.map(&:failure), [nil] * scenario.results.runs.size
  end

  test "what an interrupted measurement has come to is not measured again" do
    Dir.mktmpdir do |folder|
      identity = {"name" => "trial", "words" => ["--quick"], "commit" => "abc"}
      journal = Bench::Journal.new(folder, identity)
      journal.start("date" => "yesterday")
      first = Places.new(entrants: %w[one two])
      cells = first.groups.flatten
      journal.add(first, run_of(cells[0], "whole" => true, "seconds" => 1.0))
      journal.add(first, run_of(cells[1], "whole" => false))
      journal.add(first, Bench::Run.new(cell: cells[2], round: 0, failure: "interrupted"))
      File.write(journal.path, %({"scenario": "places", "te), mode: "a")

      again = Bench::Journal.new(folder, identity)
      again.start("date" => "today")
      assert_equal [1, {"date" => "yesterday"}], [again.size, again.machine]
      second = Places.new(entrants: %w[one two])
      Bench::Rounds.new([second], 1, journal: again) {}.call
      assert_equal [3, 4], [second.seen.size, second.results.runs.size]
      assert_equal 1.0, second.results.spread(cells[0], "seconds").median

      assert_equal 4, Bench::Journal.new(folder, identity).size
      assert_equal [0, 0], [Bench::Journal.new(folder, identity.merge("commit" => "def")), Bench::Journal.new(folder, identity, restart: true)].map(&:size)
      again.finish
      refute File.exist?(journal.path)
    end
  end

  test "several figures of a round come to one, where all are there" do
    cells = %w[a b c].map { |name| Bench::Cell.new("test", name, 1) }
    runs = cells.zip([[2.0, 3.0, 4.0], [4.0, 1.0, nil], [1.0, 6.0, 1.0]]).flat_map do |cell, values|
      values.each_with_index.map { |value, round| Bench::Run.new(cell: cell, round: round, figures: {"x" => value, "whole" => true}.compact) }
    end
    results = Bench::Results.new(runs)

    assert_equal [2.0, 3.0], results.combine(cells, "x") { |own, *others| own / others.min }.values
    assert_equal [-2.0, 2.0], results.combine(cells.first(2), "x") { |one, other| one - other }.values
    assert_nil results.combine([cells.first, Bench::Cell.new("test", "nobody", 1)], "x") { |one, _| one }
  end

  test "of many cells the worst speaks for the target, and one that is not whole spoils it" do
    scenario = Bench::PipeliningPages.new(values: {links: ["weak-4g"], servers: ["nginx"]})
    figures = scenario.groups.flatten.to_h { |cell| [cell, {"seconds" => 1.0, "over_bound" => 1.0, "round_trips" => 5.0, "whole" => true}] }
    figures.each { |cell, its| its["over_bound"] = 1.19 if cell.entrant == "hikyaku" && cell.test.end_with?("G") }
    figures.each { |cell, its| its["round_trips"] = 7.5 if cell.entrant == "hikyaku-new" && cell.test.end_with?("Y") }
    targets = targets_of(scenario, figures)

    assert_equal ["G", "reached", 1.19], worst(targets, /over the bound, new/)
    assert_equal ["Y", "**missed**", 2.5], worst(targets, /round trips more/, "hikyaku-new")
    figures.each { |cell, its| its["whole"] = false if cell.entrant == "hikyaku" && cell.test.end_with?("D") }
    assert_equal ["G", "**incomplete**", 1.19], worst(targets_of(scenario, figures), /over the bound, new/)
  end

  test "Puma is not asked for what needs TLS" do
    names = Bench::PipeliningPages.new.groups.flatten.group_by { |cell| cell.test.split[1] }.transform_values { |cells| cells.map(&:entrant).uniq }
    assert_equal %w[chromium-h2 curl-h2], (names["nginx"] - names["puma"]).sort
  end

  test "a run with loss is the median of its visits, which are other ones in each round" do
    scenario = Bench::PipeliningLoss.new(entrants: %w[hikyaku], values: {links: ["weak-4g"], pages: ["Y"], draws: 3})
    seeds = []
    times = [3.0, 1.0, 2.0].cycle
    scenario.define_singleton_method(:visited) { |*, seed:| {"seconds" => (seeds << seed) && times.next, "whole" => true} }
    lossy, without = scenario.groups.flatten.sort_by { |cell| cell.test.include?("lossy") ? 0 : 1 }

    assert_equal [2.0, [3.0, 1.0, 2.0]], scenario.measure_in(1, lossy).values_at("seconds", "all_seconds")
    assert_equal [4, 5, 6], seeds
    assert_equal 3.0, scenario.measure_in(0, without)["seconds"]
    assert_equal [["weak-4g nginx Y", 5]] * 2, [lossy, without].map { |cell| scenario.place(cell) }
  end

  test "a plot's axis may begin at 0" do
    points = {1 => 1, 50 => 2, 100 => 3}.transform_values { |value| Bench::Spread.new([value]) }
    svg = Bench::Plot.lines(title: "t", x: "n", y: "s", x_log: false, series: {"a" => points}).to_svg
    x = svg.scan(/cx="([\d.]+)"/).flatten.map(&:to_f)
    assert_in_delta 49 * (x[2] - x[0]) / 99, x[1] - x[0], 0.2
  end

  test "the lock file of the libraries names no registry but the public one" do
    remotes = File.read(File.expand_path("../bench/pipelining/Gemfile.lock", __dir__)).scan(/^  remote: (.+)$/).flatten
    assert_equal ["https://rubygems.org/"], remotes
    assert_equal %w[excon httpx], Bench::PageClient::GEMS.with("excon", "httpx", "nothing").versions.keys
  end

  # Two places with two cells each.
  class Places < Bench::Scenario
    REGISTERED.delete(self)

    attr_reader :seen, :broken

    # @param meeting [Queue, nil] by which the two places wait for each other
    # @param on_third [Proc, nil] what happens when the third cell begins
    def initialize(meeting: nil, on_third: nil, **more)
      super(**more)
      @meeting = meeting
      @on_third = on_third
      @seen = []
      @broken = []
      @busy = {}
      @lock = Mutex.new
    end

    def groups = %w[here there].map { |where| entrants.map { |name| cell(where, name) } }

    def place(cell) = cell.test

    def measure(cell)
      count = @lock.synchronize do
        @broken << cell if @busy[cell.test]
        @busy[cell.test] = true
        @seen << [cell.test, cell.entrant]
        @seen.size
      end
      meet(cell.test) if @meeting
      @on_third&.call if count == 3
      @lock.synchronize { @busy[cell.test] = false }
      {"whole" => true, "seconds" => 2.0}
    end

    def headline(_figures) = "fine"

    private

    # The first of either place waits until the other has begun, too.
    def meet(where)
      return unless @lock.synchronize { (@met ||= Set.new).add?(where) }
      @meeting << where
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      sleep 0.001 until @meeting.size == 2 || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      @broken << "alone" if @meeting.size < 2
    end
  end

  private

  def run_of(cell, figures) = Bench::Run.new(cell: cell, round: 0, figures: figures, seconds: 1.0)

  # Width and height of a GIF that is well-formed: blocks, an image, the end.
  def dimensions(bytes)
    assert_equal "GIF89a", bytes[0, 6]
    at = 13 + 6
    while bytes[at] == "\x21"
      at += 2
      at += bytes.getbyte(at) + 1 until bytes.getbyte(at).zero?
      at += 1
    end
    assert_equal [",", ";", bytes.bytesize], [bytes[at], bytes[-1], at + 16]
    bytes[6, 4].unpack("v2")
  end

  def serving(bodies)
    listener = TCPServer.new("127.0.0.1", 0)
    accepting = Thread.new do
      loop do
        Thread.new(listener.accept) do |socket|
          while (head = socket.gets("\r\n\r\n"))
            body = bodies.fetch(head[/\AGET (\S+)/, 1])
            socket.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n".b << body)
          end
        end
      end
    end
    yield "http://127.0.0.1:#{listener.addr[1]}#{SMALL.path}"
  ensure
    accepting&.kill
    listener.close
  end

  def targets_of(scenario, figures)
    scenario.results = Bench::Results.new(figures.map { |cell, its| Bench::Run.new(cell: cell, round: 0, figures: its) })
    scenario.targets
  end

  def worst(targets, name, entrant = nil)
    target = targets.find { |one| one.name.match?(name) && (entrant.nil? || one.entrant == entrant) }
    [target.name[/the worst is (\w+)/, 1], target.verdict, target.spread.median.round(2)]
  end
end
