# frozen_string_literal: true

require "test_helper"
require "jwt"
require "socket"
require "timeout"
require "tmpdir"
require_relative "../bench/harness/build"
require_relative "../bench/harness/command"

Bench::Scenario.all # loads them

class BenchTest < Minitest::Test
  FLOOR = Bench::Entrants.fetch("floor")
  HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  def self.compiled
    @compiled ||= Bench::Build::PROGRAMS.keys.to_h do |name|
      [name, Bench::Build.compile(name, File.join(Bench::Build::BINARIES, name))]
    end
  end

  test "the harness compiles without a warning" do
    self.class.compiled.each { |name, said| assert_empty said, name }
  end

  test "every message reaches every subscriber of the floor, and the figures say so" do
    figures = load_floor(subscribers: 5, messages: 3, warmup: 2, sync: true)

    assert figures["whole"]
    assert_equal [5, 0, 0, 3, true], figures.values_at("subscribers", "dead", "stalled", "messages", "sync")
    assert_equal %w[seconds per_second cpu_us_each rss_kb_each bytes_in_each bytes_out_each server_busy load_busy], figures["connect"].keys
    assert_equal [3, 0, 0], figures["publish"].values_at("accepted", "refused", "unanswered")
    assert_equal [15, 15, 0, 0, 0], figures["delivery"].values_at("expected", "delivered", "lost", "misdirected", "wrong")
    assert_operator figures["delivery"]["cpu_us_each"], :>, 0
    latency = figures["delivery"]["latency_ms"]
    assert_equal 15, latency["count"]
    assert_equal %w[count mean median min max p90 p99], latency.keys
    assert_operator latency["min"], :<=, latency["median"]
    assert_operator latency["median"], :<=, latency["p99"]
    assert_operator latency["p99"], :<=, latency["max"]
  end

  test "the floor's event is as long as a hub's: an id of twelve characters, and the data" do
    assert_equal "id: #xxxxxxxxxxx\ndata: \n\n".bytesize + 200, load_floor(subscribers: 1, messages: 1)["delivery"]["bytes_each"]
  end

  test "publishers that never wait reach every subscriber with every message" do
    figures = load_floor(settings: {flood: true}, subscribers: 3, messages: 2_000, publishers: 2, pipeline: true)

    assert figures["whole"]
    assert_equal 6_000, figures["delivery"]["delivered"]
    assert_equal 2_000, figures["publish"]["accepted"]
  end

  test "the floor under a flood waits for a reader whose socket is full, and loses nothing" do
    self.class.compiled
    messages = 400
    length = "id: #xxxxxxxxxxx\ndata: \n\n".bytesize + 60_000
    FLOOR.run(flood: true) do |server|
      reader, publisher = Array.new(2) { TCPSocket.new("127.0.0.1", server.port) }
      reader.write("GET / HTTP/1.1\r\n\r\n")
      reader.gets("\r\n\r\n")
      writing = Thread.new { messages.times { publisher.write("POST / HTTP/1.1\r\nContent-Length: 60005\r\n\r\ndata=#{"x" * 60_000}") } }
      writing.join(0.3) # by then the reader's socket is full

      assert_equal messages * length, Timeout.timeout(60) { reader.read(messages * length) }.bytesize
      writing.join
    ensure
      [reader, publisher].compact.each(&:close)
    end
  end

  test "publishing for some seconds counts what that was" do
    figures = load_floor(subscribers: 1, seconds: 0.05, publishers: 2)

    assert figures["whole"]
    assert_operator figures["messages"], :>, 2
    assert_equal figures["messages"], figures["delivery"]["delivered"]
  end

  test "readers that stall are spread among the others, and nothing is expected of them" do
    figures = load_floor(subscribers: 6, stalled: 2, messages: 3, warmup: 40, warmup_size: 50_000, sync: true)

    assert figures["whole"]
    assert_equal [6, 2], figures.values_at("subscribers", "stalled")
    assert_equal 12, figures["delivery"]["delivered"]
    assert_operator figures["memory"]["tcp_growth_kb"], :>, 0
  end

  test "the memory of stalled readers has a bound, by the size of their buffers" do
    skip_unless_available("ss")
    stalled = Bench::Stalled.new(entrants: ["hikyaku-ruby"], values: {subscribers: 6, stalled: 2, history: "1M", messages: 2})
    memory = stalled.measure(Bench::Cell.new("stalled", "hikyaku-ruby", 6)).fetch("memory")

    assert_operator memory["send_buffer_kb"], :>, 1
    assert_in_delta 2 * (memory["send_buffer_kb"] + 32), memory["bound_kb"], 0.01
    assert_kind_of Float, memory["tcp_over_bound"]
  end

  test "a subscriber that gets another topic's message is noticed" do
    figures = nil
    capture_io { figures = load_floor(subscribers: 4, messages: 2, topics: 2, sync: true) }

    # The floor sends everything to everyone: 2 of the 4 who get each message listen to the other topic.
    assert_equal 4, figures["delivery"]["expected"]
    assert_operator figures["delivery"]["misdirected"], :>=, 2
    refute figures["whole"]
  end

  test "a message that comes twice does not make up for one that is lost" do
    figures = nil
    events = []
    capture_io do
      with_server(->(streams, body) { streams.first << (events << "data: #{body}\n\n").first }) do |port|
        figures = Bench::Load.run(port: port, settle: 20, timeout: 5, subscribers: 1, messages: 2)
      end
    end

    assert_equal [2, 0, 1], figures["delivery"].values_at("delivered", "lost", "wrong")
    refute figures["whole"]
  end

  test "each subscriber has the path and the header that are its own, each message its topic and number" do
    Dir.mktmpdir do |folder|
      File.write("#{folder}/headers", "X-Own: first\nX-Own: second\n")
      requests = with_server(->(streams, body) { streams.each { |stream| stream << body } }) do |port|
        Bench::Load.run(port: port, settle: 20, timeout: 5, subscribers: 4, topics: 2, messages: 2, message_topics: 1, warmup: 1,
          subscribe_path: ["/a?{t}", "/b%20?{n}"], subscribe_header: "X-All: yes", subscribe_header_file: "#{folder}/headers",
          stalled: 2, stalled_path: "/c", publish_path: "/p{t}", publish_prefix: "{t}.{n}=", warmup_prefix: "before{n}=", warmup_size: 30)
      end

      gets = requests.grep(/\AGET/).map { |request| request[/\AGET (\S+)/, 1] + request[/X-All: yes\r\nX-Own: (\w+)\r\n\r\n/, 1] }
      assert_equal %w[/a?0first /a?0first /csecond /csecond], gets.sort
      posts = requests.grep(/\APOST/).map { |request| [request[/ (\S+)/, 1], request[/\r\n\r\n(.*?)@/m, 1], request[/\r\n\r\n.*?(@.*)/m, 1].size] }
      assert_equal [["/p0", "before0=", 30], ["/p0", "0.1=", 200], ["/p0", "0.2=", 200]], posts
    end
  end

  test "answers are told apart however they come: in pieces, several at once, in chunks, too long to look at" do
    long = "HTTP/1.1 201 Created\r\ncontent-length: 40000\r\n\r\n#{"y" * 40_000}"
    chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    answers = [ANSWER, chunked, long].cycle
    figures = nil
    with_server(answer: ->(_) { answers.next.scan(/.{1,7000}/m) }) do |port|
      figures = Bench::Load.run(port: port, settle: 0, timeout: 5, subscribers: 0, messages: 9, publishers: 1, pipeline: true)
    end
    assert figures["whole"]
    assert_equal 9, figures["publish"]["accepted"]

    pause = ->(piece) { sleep(0.005) && piece }
    with_server(answer: ->(_) { chunked.scan(/.{1,9}/m).lazy.map(&pause) }) do |port|
      figures = Bench::Load.run(port: port, settle: 0, timeout: 5, subscribers: 0, messages: 2)
    end
    assert figures["whole"]
    assert_equal 2, figures["publish"]["accepted"]
  end

  test "a refused publish is counted, and said" do
    figures = nil
    _out, err = capture_io do
      with_server(answer: ->(_) { ["HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"] }) do |port|
        figures = Bench::Load.run(port: port, settle: 0, timeout: 5, subscribers: 0, messages: 2)
      end
    end

    assert_equal [0, 2], figures["publish"].values_at("accepted", "refused")
    assert_match(/publisher refused: HTTP\/1.1 403/, err)
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

  test "a server that ends before it listens is an error with its last words, and its reason is the line that says most" do
    self.class.compiled
    port = Bench::Server.free_port
    script = "echo booting; echo '! Unable to load: SomeError: no such luck'; echo '  from here'; exit 1"
    error = assert_raises(Bench::Server::Failed) { Bench::Server.run(["sh", "-c", script], port: port) {} }

    assert_match(/booting/, error.message)
    assert_equal "Unable to load: SomeError: no such luck", error.reason
  end

  test "all processes of a server are counted" do
    self.class.compiled
    port = Bench::Server.free_port
    script = "sleep 60 & sleep=$!; #{Bench::Build.program("floor")} #{port} & trap \"kill $sleep $!\" TERM; wait"
    Bench::Server.run(["sh", "-c", script], port: port) { |server| assert_equal 3, server.pids.size }
  end

  test "subscribers with different tokens of both kinds are let in, the first time and again" do
    self.class.compiled
    connects = Bench::Connects.new(entrants: ["hikyaku-ruby"], values: {subscribers: 3})
    figures = connects.measure(Bench::Cell.new("ES256", "hikyaku-ruby", 3))

    assert figures["whole"]
    assert_equal [3, 3], figures.values_at("first", "again").map { |pass| pass["subscribers"] }
    Bench::Token::ALGORITHMS.zip([Bench::Token::SECRET, Bench::Token::KEY]) do |alg, key|
      tokens = Bench::Token.subscribers(alg, 3)
      assert_equal 3, tokens.uniq.size
      assert_equal alg, JWT.decode(tokens.first, key, true, algorithm: alg).last["alg"]
    end
  end

  test "each of the patterns gets what it matches, and only that" do
    self.class.compiled
    patterns = Bench::Patterns.new(entrants: ["hikyaku-ruby"], values: {patterns: 2, subscribers: 4, publishers: 2, seconds: 0.05, warmup: 2})
    patterns.groups.flatten.each { |cell| assert patterns.measure(cell)["whole"], cell.test if %w[patterns crowd].include?(cell.test) }
  end

  test "Nchan is configured for its port and folder" do
    Dir.mktmpdir do |folder|
      command, = Bench::Entrants.fetch("nchan").command(4711, folder, {})
      text = File.read(command.last)

      assert_match(/listen 127\.0\.0\.1:4711 /, text)
      assert_match(/pid #{folder}/, text)
      refute_match(/{{|}}/, text)
    end
  end

  test "the median is of all rounds, and the extremes stay" do
    spread = Bench::Spread.new([3, 1, 2, 10])

    assert_equal [2.5, 1.0, 10.0], [spread.median, spread.min, spread.max]
    assert_equal "2.5 (1.0–10.0)", spread.to_s(1)
  end

  test "a target is reached only when the median of the rounds' own ratios keeps to it, and nothing was lost" do
    assert_equal ["reached", 1.5], verdict(above: [1.5, 3.0, 9.9], below: [1.0, 2.0, 1.0], at_most: 1.5)
    assert_equal ["**missed**", 1.5], verdict(above: [1.5, 3.0, 9.9], below: [1.0, 2.0, 1.0], at_most: 1.4)
    assert_equal ["reached", 2.0], verdict(above: [2.0], below: [1.0], at_least: 2)
    assert_equal ["**missed**", 1.9], verdict(above: [1.9], below: [1.0], at_least: 2)
    assert_equal ["**incomplete**", 2.0], verdict(above: [2.0], below: [1.0], at_least: 2, whole: false)
    assert_equal ["reached", 3.0], verdict(above: [2.0, 3.0], below: [nil, 1.0], at_least: 2)
    assert_equal ["not measured", nil], verdict(above: [2.0], below: [nil], at_least: 2)
  end

  test "a bound is readable" do
    bounds = {at_most: [0.0714, 1.1, 200], at_least: [12_000, 1_000_000, 1234.5678]}.flat_map do |name, numbers|
      numbers.map { |number| Bench::Target.new(name => number).bound }
    end
    assert_equal ["at most 0.0714", "at most 1.1", "at most 200", "at least 12,000", "at least 1,000,000", "at least 1,234.5678"], bounds
  end

  test "every scenario has tables, targets and plots, of nothing as of figures" do
    Bench::Scenario.all.each do |type|
      assert_operator type.about.to_s.size, :>, 50, type.key
      scenario = type.new(quick: true)
      cells = scenario.groups.flatten
      assert_equal cells.uniq, cells
      some = cells.map { |cell| Bench::Run.new(cell: cell, round: 0, figures: Ones.new) }
      [[], some].each do |runs|
        scenario.results = Bench::Results.new(runs)
        page = page_of(scenario)
        assert_includes page.to_s, "## #{type.title}"
        assert_equal runs.any?, page.targets.none? { |target| target.verdict == "not measured" }, type.key unless page.targets.empty?
        scenario.plots.each_value { |plot| refute_match(/NaN|Infinity/, plot.to_svg) }
      end
      assert_kind_of String, scenario.headline(Ones.new)
    end
  end

  test "the page tells of missed targets, of runs that lost something or failed, and of absent entrants" do
    scenario = Bench::Publish.new(quick: true)
    runs = [a_run("publish", "hikyaku-c", 10), a_run("publish", "nchan", 20, whole: false, refused: 2, lost: 1),
      Bench::Run.new(cell: Bench::Cell.new("publish", "floor", 1), round: 0, failure: "it fell over")]
    scenario.results = Bench::Results.new(runs)
    page = page_of(scenario, "left_out" => {"hikyaku-ruby" => "no luck"})

    Dir.mktmpdir do |directory|
      assert_equal %w[README.md publish.svg results.jsonl], page.write(directory).map { |path| File.basename(path) }.sort
      text = File.read(File.join(directory, "README.md"))
      assert_match(/Nchan's.*\| at least 1 +\| 0\.50 \(0\.50–0\.50\) \| \*\*missed\*\*/, text)
      assert_match(/nchan +\| 1 +\| 1 +\| 2 refused, 1 lost/, text)
      assert_match(/floor +\| 1 +\| 1 +\| it fell over/, text)
      assert_match(/hikyaku-ruby +\| no luck/, text)

      again = Bench::Part.load(File.read(File.join(directory, "results.jsonl")))
      assert_equal text, Bench::Page.new(again).to_s
    end
  end

  test "a page says at its top which commit made it, and whether in one run" do
    first_line = ->(*parts) { Bench::Page.new(parts).to_s.lines[2].chomp }
    whole = part_of(Bench::Publish.new, "commit" => "abc1234")
    assert_equal "Made in one run, at commit `abc1234`, on 2026-01-01 00:00 UTC.", first_line.call(whole)
    assert_match(/\A\*\*Not made in one run.* Continued: 2026-01-02\./, first_line.call(part_of(Bench::Publish.new, "continued" => "2026-01-02")))
    assert_match(/\A\*\*Not made in one run.* Commits: abc and uncommitted changes; 2026/, first_line.call(part_of(Bench::Publish.new, "commit" => "abc and uncommitted changes")))
    assert_match(/\A\*\*Not made in one run.* apart: `publish` on 2026-01-01, at commit `def`\.\z/, first_line.call(whole, part_of(Bench::Publish.new, "commit" => "def")))
    whole.head["interrupted"] = true
    assert_match(/\A\*\*Interrupted: some rounds are missing/, first_line.call(whole))
  end

  test "the conclusion that a person wrote stays as long as the runs are the same" do
    Dir.mktmpdir do |directory|
      read = -> { File.read(File.join(directory, "README.md")) }
      write = ->(**machine) { Bench::Page.new([part_of(Bench::Publish.new, **machine)]).write(directory) }
      write.call
      assert_includes read.call, Bench::Page::UNWRITTEN
      File.write(File.join(directory, "README.md"), read.call.sub(Bench::Page::UNWRITTEN, "It is fast.\n\n- Faster.\n"))
      write.call
      assert_includes read.call, "## In short\n\nIt is fast.\n\n- Faster.\n\n## Targets"
      write.call("date" => "2026-02-02 00:00 UTC")
      assert_includes read.call, Bench::Page::UNWRITTEN
      refute_includes read.call, "It is fast"
    end
  end

  test "the runs of the committed pages are there, and each page names commits of the history" do
    pages = Dir["**/results.jsonl", base: Bench::Page::RESULTS]
    assert_equal 6, pages.size
    pages.each do |path|
      Bench::Part.load(File.read(File.join(Bench::Page::RESULTS, path))).each do |part|
        assert_operator part.scenarios.sum { |scenario| scenario.results.runs.size }, :>, 0, path
        part.head["machine"]["commit"].scan(/\b\h{7,}\b/).tap { |commits| refute_empty commits }.each do |commit|
          next unless system("git", "rev-parse", "--verify", "--quiet", "HEAD~1", out: File::NULL) # a clone without history
          assert system("git", "merge-base", "--is-ancestor", commit, "HEAD", err: File::NULL), "#{path}: #{commit} is not in the history"
        end
      end
    end
  end

  test "each round begins with another server, and one that fails is recorded" do
    scenario = Trial.new(entrants: %w[floor nchan])
    lines = []
    rounds = Bench::Rounds.new([scenario], 2) { |line| lines << line }
    rounds.call

    assert_equal %w[floor nchan nchan floor], scenario.results.runs.map { |run| run.cell.entrant }
    assert_equal ["RuntimeError: no nchan today"], scenario.results.runs.filter_map(&:failure).uniq
    assert_equal 2, scenario.results.incomplete.size
    assert_match(%r{ 4/4 100 %, about 0 s left .* floor .* fine}, lines.last)
    refute rounds.interrupted?
  end

  test "where a run takes long, fewer rounds are enough" do
    scenario = Trial.new(entrants: %w[floor])
    Trial.stub(:at_most_rounds, 1) { Bench::Rounds.new([scenario], 3) {}.call }

    assert_equal [0], scenario.results.runs.map(&:round)
  end

  test "what was measured before an interrupt stays" do
    scenario = Trial.new(entrants: %w[floor interrupted])
    rounds = Bench::Rounds.new([scenario], 2) {}

    rounds.call
    assert_equal 1, scenario.results.runs.size
    assert rounds.interrupted?
  end

  test "the time that is left is estimated from the same step, its scenario, or all others" do
    one, other = Trial.new(entrants: %w[floor nchan]), Trial.new(entrants: %w[floor])
    rounds = Bench::Rounds.new([one, other], 2) {}
    measured = ->(entrant, round, seconds) { rounds.send(:note, one, Bench::Run.new(cell: Bench::Cell.new("trial", entrant), round: round, seconds: seconds)) }
    measured.call("floor", 0, 10.0)

    assert_equal "  1/6  16 %, about 50 s left", rounds.send(:progress)
    measured.call("nchan", 0, 40.0)
    assert_equal "  2/6  33 %, about 100 s left".sub("100 s", "2 min"), rounds.send(:progress) # 10 + 40 of the same steps, twice 25 of the others
  end

  test "no benchmark hides another of the same name" do
    micro = Dir.children(File.expand_path("../bench/micro", __dir__)).map { |file| file.delete_suffix(".rb") }
    names = [*Bench::Suite::ALL.keys, *Bench::Scenario.all.map(&:key), *micro]
    assert_equal names.uniq, names
  end

  test "every scenario says how it is used, and a mistake is told in a line" do
    Bench::Scenario.all.each do |scenario|
      out, = capture_io { assert_raises(SystemExit) { Bench::Command.run(scenario.key, ["--help"]) } }
      scenario.settings.each_key { |name| assert_includes out, "--#{name.to_s.tr("_", "-")}" }
    end
    [["--rounds", "x"], ["--entrants", "nobody"], ["more"]].each do |arguments|
      _out, err = capture_io { assert_equal 2, Bench::Command.run("publish", arguments) }
      assert_match(/\Abench publish: .*see bin\/bench publish --help\)\n\z/, err)
    end
  end

  test "a plot is a document that stands alone, its text escaped" do
    series = {"one" => {10 => Bench::Spread.new([1, 0.5, 2]), 100 => Bench::Spread.new([30, 20, 40])}}
    line = Bench::Plot.lines(title: "A < B", x: "n", y: "ms", series: series, y_log: true).to_svg
    bars = Bench::Plot.bars(title: "A < B", unit: "ms", bars: {"one" => Bench::Spread.new([1, 2, 3])}, guide: {y: 2, label: "most"}).to_svg

    stopped = Bench::Plot.lines(title: "A < B", x: "n", y: "ms", series: {"one" => {1 => Bench::Spread.new([0]), 2 => Bench::Spread.new([3])}}, y_log: true).to_svg
    nothing = Bench::Plot.lines(title: "A < B", x: "n", y: "ms", series: {"one" => {1 => Bench::Spread.new([0])}}, y_log: true).to_svg

    [line, bars, stopped, nothing].each do |svg|
      assert svg.start_with?("<svg xmlns=")
      assert_includes svg, "A &lt; B"
      refute_match(/NaN|Infinity/, svg)
    end
  end

  # Figures that are 1, whatever is asked for.
  class Ones < Hash
    def dig(*) = 1.0

    def [](name) = (name == "whole") || self

    def values_at(*names) = names.map { 1.0 }

    def compact = {}
  end

  # A scenario without a server.
  class Trial < Bench::Scenario
    REGISTERED.delete(self)

    def groups = [entrants.map { |name| cell("trial", name) }]

    def measure(cell)
      raise Interrupt if cell.entrant == "interrupted"
      raise "no #{cell.entrant} today" unless cell.entrant == "floor"
      {"whole" => true}
    end

    def headline(_figures) = "fine"
  end

  private

  def part_of(scenario, **machine)
    Bench::Part.new({"page" => "all", "command" => "bin/bench all", "rounds" => 1, "interrupted" => false,
      "machine" => {"commit" => "abc", "date" => "2026-01-01 00:00 UTC", **machine}, "left_out" => {}}, [scenario])
  end

  def page_of(scenario, **head) = Bench::Page.new([part_of(scenario).tap { |part| part.head.update(head) }])

  def load_floor(settings: {}, **options)
    self.class.compiled
    FLOOR.run(**settings) do |server|
      Bench::Load.run(port: server.port, pid: server.pids, settle: 20, timeout: 5, **FLOOR.speech, **options)
    end
  end

  # A server in this process. It keeps the streams, and hands them over with the body of each publish.
  #
  # @return [Array<String>] the requests that came
  def with_server(on_publish = ->(_streams, _body) {}, answer: ->(_request) { [ANSWER] })
    self.class.compiled
    listener = TCPServer.new("127.0.0.1", 0)
    requests = []
    streams = []
    serve = lambda do |socket|
      while (request = read_request(socket))
        requests << request
        next streams.push(socket) && socket.write(HEAD) if request.start_with?("GET")
        on_publish.call(streams, request.split("\r\n\r\n", 2).last)
        answer.call(request).each { |piece| socket.write(piece) }
      end
    rescue SystemCallError
      nil
    end
    accepting = Thread.new { loop { Thread.new(listener.accept, &serve) } }
    yield listener.addr[1]
    requests
  ensure
    accepting&.kill
    listener&.close
  end

  def read_request(socket)
    head = socket.gets("\r\n\r\n") or return
    head + socket.read(head[/content-length: (\d+)/i, 1].to_i)
  end

  def verdict(above:, below:, whole: true, **bound)
    one, other = %w[hikyaku-c floor].map { |name| Bench::Cell.new("test", name, 1) }
    runs = {one => above, other => below}.flat_map do |cell, values|
      values.each_with_index.map { |value, round| Bench::Run.new(cell: cell, round: round, figures: {"x" => value, "whole" => whole}.compact) }
    end
    target = Bench::Results.new(runs).ratio_target("a promise", one, other, "x", **bound)
    [target.verdict, target.spread&.median]
  end

  def a_run(test, entrant, rate, whole: true, refused: 0, lost: 0)
    publish = {"per_second" => rate, "cpu_us_each" => 1.0, "refused" => refused, "answer_ms" => {"median" => 1.0, "p99" => 2.0}}
    figures = {"whole" => whole, "dead" => 0, "publish" => publish, "delivery" => {"lost" => lost}}
    Bench::Run.new(cell: Bench::Cell.new(test, entrant, 1), round: 0, figures: figures)
  end
end
