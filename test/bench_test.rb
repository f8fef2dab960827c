# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../bench/harness/build"
require_relative "../bench/harness/entrants"
require_relative "../bench/harness/load"
require_relative "../bench/harness/plot"
require_relative "../bench/harness/server"
require_relative "../bench/harness/spread"
require_relative "../bench/macro/fanout/options"
require_relative "../bench/macro/fanout/page"
require_relative "../bench/macro/fanout/runs"
require_relative "../bench/macro/fanout/summary"
require_relative "../bench/macro/subscribers/options"
require_relative "../bench/macro/subscribers/page"

class BenchTest < Minitest::Test
  Floor = Bench::Entrants::FLOOR

  def self.compiled
    @compiled ||= Bench::Build::PROGRAMS.keys.to_h do |name|
      [name, Bench::Build.compile(name, File.join(Bench::Build::BINARIES, name))]
    end
  end

  def load_floor(**options)
    self.class.compiled
    port = Bench::Server.free_port
    Bench::Server.run(Floor.command.call(port), port: port) do |server|
      Bench::Load.run(port: port, pid: server.pid, settle: 20, timeout: 5, **options)
    end
  end

  test "the harness compiles without a warning" do
    self.class.compiled.each { |name, said| assert_empty said, name }
  end

  test "every message reaches every subscriber of the floor, and the figures say so" do
    figures = load_floor(subscribers: 5, messages: 3, warmup: 2, sync: true, **Floor.load.call(0))

    assert figures["whole"]
    assert_equal [5, 0, 3, true], figures.values_at("subscribers", "dead", "messages", "sync")
    assert_equal %w[seconds per_second cpu_us_each rss_kb_each], figures["connect"].keys
    assert_equal [3, 0], figures["publish"].values_at("accepted", "refused")
    assert_equal [15, 15, 0, 0], figures["delivery"].values_at("expected", "delivered", "lost", "misdirected")
    assert_operator figures["delivery"]["cpu_us_each"], :>, 0
    latency = figures["delivery"]["latency_ms"]
    assert_equal 15, latency["count"]
    assert_equal %w[count mean median min max p99], latency.keys
    assert_operator latency["min"], :<=, latency["median"]
    assert_operator latency["median"], :<=, latency["p99"]
    assert_operator latency["p99"], :<=, latency["max"]
  end

  test "a subscriber that gets another topic's message is noticed" do
    figures = nil
    capture_io { figures = load_floor(subscribers: 4, messages: 2, topics: 2, sync: true) }

    # The floor sends everything to everyone: 2 of the 4 who get each message listen to the other topic.
    assert_equal 4, figures["delivery"]["expected"]
    assert_operator figures["delivery"]["misdirected"], :>=, 2
    refute figures["whole"]
  end

  test "any other route is timed by its answers" do
    figures = load_floor(subscribers: 0, messages: 1, method: "GET", publish_path: "/ordinary")

    assert_equal 1, figures["publish"]["answer_ms"]["count"]
  end

  test "a wrong option of the load generator gets one line and status 2" do
    self.class.compiled
    _out, err, status = Open3.capture3(Bench::Build.program("load"), "--port", "0")

    assert_equal 2, status.exitstatus
    assert_equal "load: --port must be 1 to 65535 (see load --help)\n", err
  end

  test "a server that ends before it listens is an error with its last words" do
    self.class.compiled
    port = Bench::Server.free_port
    error = assert_raises(RuntimeError) { Bench::Server.run(["sh", "-c", "echo no such luck; exit 1"], port: port) {} }

    assert_match(/no such luck/, error.message)
  end

  test "the median is of all rounds, and the extremes stay" do
    spread = Bench::Spread.new([3, 1, 2, 10])

    assert_equal [2.5, 1.0, 10.0], [spread.median, spread.min, spread.max]
    assert_equal "2.5 (1.0–10.0)", spread.to_s(1)
  end

  test "a target counts as met only when the median of the rounds' own ratios keeps it" do
    assert_equal [true, true], targets(floor: [1.0, 2.0, 1.0], hikyaku: [1.6, 3.2, 9.9], one: 1000, topics: 700).map(&:met?)
    assert_equal [false, false], targets(floor: [1.0, 2.0, 1.0], hikyaku: [1.61, 3.22, 1.0], one: 1000, topics: 699).map(&:met?)
  end

  test "the page tells of a missed target and of runs that lost something" do
    runs = some_runs(floor: [1.0], hikyaku: [9.0], one: 1000, topics: 1000)
    runs.first.figures["whole"] = false
    page = Bench::Fanout::Page.new(Bench::Fanout::Summary.new(runs), options: Bench::Fanout::Options.new, facts: {"commit" => "abc"})

    Dir.mktmpdir do |directory|
      assert_equal %w[fanout-cpu.svg fanout-latency.svg fanout.json fanout.md], page.write(directory).map { |path| File.basename(path) }.sort
      text = File.read(File.join(directory, "fanout.md"))
      assert_match(/at most 1\.6 +\| 9\.00 \(9\.00–9\.00\) \| \*\*missed\*\*/, text)
      assert_match(/Incomplete runs/, text)
      json = JSON.parse(File.read(File.join(directory, "fanout.json")))
      assert_equal [false, true], json["targets"].map { |target| target["met"] }
      assert_equal runs.size, json["runs"].size
    end
  end

  test "thousands of subscribers count as held only when all of them stayed and every ordinary request was answered" do
    assert subscribers_page(4_999, whole: false, answered: true, more: [5_000, true, true]).met?
    refute subscribers_page(5_000, whole: false, answered: true).met?
    refute subscribers_page(5_000, whole: true, answered: false).met?
    refute subscribers_page(4_999, whole: true, answered: true).met?
  end

  test "a plot is a document that stands alone, its text escaped" do
    svg = Bench::Plot.new(title: "A < B", x: "n", y: "ms", series: [{name: "one", points: [[10, 1, 0.5, 2], [100, 30, 20, 40]]}], y_log: true).to_svg

    assert svg.start_with?("<svg xmlns=")
    assert_includes svg, "A &lt; B"
    refute_match(/NaN|Infinity/, svg)
  end

  private

  def subscribers_page(subscribers, whole:, answered:, more: nil)
    runs = [[subscribers, whole, answered], *(more ? [more] : [])].map do |number, kept, served|
      Bench::Subscribers::Run.new(subscribers: number, round: 0, figures: {"whole" => kept},
        requests: {"idle" => {"whole" => true}, "publishing" => {"whole" => served}})
    end
    Bench::Subscribers::Page.new(runs, options: Bench::Subscribers::Options.new, facts: {})
  end

  def targets(**figures) = Bench::Fanout::Summary.new(some_runs(**figures)).targets

  # Runs with these CPU figures of the fan-out, one a round, and these publishes per second.
  def some_runs(floor:, hikyaku:, one:, topics:)
    rounds = floor.zip(hikyaku).each_with_index.flat_map do |(below, above), round|
      [a_run("fanout", Floor, 100, round, cpu: below), a_run("fanout", Bench::Entrants::HIKYAKU, 100, round, cpu: above)]
    end
    rounds + [a_run("one", Floor, 1, 0), a_run("one", Bench::Entrants::HIKYAKU, 1, 0, rate: one),
      a_run("topics", Bench::Entrants::HIKYAKU, 10_000, 0, rate: topics)]
  end

  def a_run(test, entrant, subscribers, round, cpu: 1.0, rate: 1)
    times = %w[mean median min max p99].to_h { |name| [name, 1.0] }
    figures = {
      "whole" => true, "dead" => 0, "connect" => {"per_second" => 1.0, "cpu_us_each" => 1.0, "rss_kb_each" => 1.0},
      "publish" => {"per_second" => rate, "cpu_us_each" => 1.0, "refused" => 0},
      "delivery" => {"cpu_us_each" => cpu, "bytes_each" => 1, "lost" => 0, "latency_ms" => times}
    }
    Bench::Fanout::Run.new(test: test, entrant: entrant, subscribers: subscribers, round: round, figures: figures)
  end
end
