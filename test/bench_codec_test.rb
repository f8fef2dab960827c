# frozen_string_literal: true

require "test_helper"
require "json"
require "minitest/mock"
require "msgpack"
require "socket"
require "tmpdir"
require "zlib"
require_relative "../bench/codec/events"
require_relative "../bench/harness/command"

Bench::Scenario.all # loads them

class BenchCodecTest < Minitest::Test
  BODY = "abc" * 5_000
  OK = "HTTP/1.1 200 OK\r\n"
  STREAM = "#{OK}Content-Type: text/event-stream\r\n"
  TINY = {seconds: 0.15, warmup: 0.05}.freeze

  test "answers are counted however they come: whole, in chunks, byte by byte at first, over connections that end" do
    chunked = BODY.scan(/.{1,4000}/m).map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }.join << "0\r\n\r\n"
    {
      "whole" => ["#{OK}Content-Length: #{BODY.bytesize}\r\n\r\n#{BODY}", nil],
      "chunks" => ["#{OK}Transfer-Encoding: chunked\r\n\r\n#{chunked}", nil],
      "bytes" => ["#{OK}Content-Length: #{BODY.bytesize}\r\n\r\n#{BODY}", 100],
      "ends" => ["#{OK}Content-Length: #{BODY.bytesize}\r\nConnection: close\r\n\r\n#{BODY}", nil],
      "ends without a word" => ["#{OK}Content-Length: #{BODY.bytesize}\r\n\r\n#{BODY}", nil]
    }.each do |name, (answer, slowly)|
      figures = get { |socket| speak(socket, answer, slowly) && name != "ends without a word" }
      its = figures["publish"]
      assert_equal [true, 0, 0], [figures["whole"], *its.values_at("refused", "wrong")], name
      assert_operator its["accepted"], :>, 3, name
      assert_equal [BODY.bytesize, answer.bytesize], [its["body_bytes"], its["bytes_each"]], name
      assert_operator its["connects"], name.start_with?("ends") ? :> : :==, 0, name
      assert_equal its["accepted"], its["answer_ms"]["count"], name
      assert_operator its["answer_ms"]["p90"], :>=, its["answer_ms"]["median"], name
    end
  end

  test "an answer that is another one, of another coding or not good at all is told" do
    count = 0
    other = ->(socket) { speak(socket, "#{OK}Content-Length: 3\r\n\r\n#{(count += 1).to_s.rjust(3)[-3..]}") }
    cut = ->(socket) { speak(socket, "#{OK}Content-Length: 30\r\n\r\nabc") && nil }
    {
      "not the expected response" => [other, {}], "publisher refused: HTTP/1.1 503" => [->(socket) { speak(socket, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") }, {}],
      "coding \"br\"" => [->(socket) { speak(socket, "#{OK}Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx") }, {coding: "gzip"}]
    }.each do |what, (behaviour, options)|
      figures = nil
      _out, err = capture_io { figures = get(**options, &behaviour) }
      refute figures["whole"], what
      assert_includes err, what
    end
    {"a response is cut off" => cut, "not a response of HTTP/1.1" => ->(socket) { speak(socket, "220 ready\r\n") }}.each do |what, behaviour|
      assert_match what, assert_raises(Bench::Load::Failed) { get(&behaviour) }.message
    end
  end

  test "the same body in gzip may tell another time in its head, and nothing else" do
    seconds = 0
    figures = get(coding: "gzip", publish_header: ["Accept-Encoding: gzip"]) do |socket|
      bytes = Zlib.gzip(BODY).tap { |its| its[4, 4] = [seconds += 1].pack("V") }
      speak(socket, "#{OK}Content-Encoding: gzip\r\nContent-Length: #{bytes.bytesize}\r\n\r\n#{bytes}")
    end
    assert_equal [true, 0], [figures["whole"], figures["publish"]["wrong"]]
    assert_operator seconds, :>, 3
  end

  test "what is answered is always the same, and the paper's kind is as large as the paper's was" do
    Bench::Payloads.names.each do |name|
      object = Bench::Payloads.fetch(name)
      assert_equal object, Bench::Payloads.fetch(name), name
      assert_equal JSON.parse(JSON.generate(object)), MessagePack.unpack(MessagePack.pack(object)), name
    end
    bytes = MessagePack.pack(Bench::Payloads.fetch("paper"))
    assert_in_delta 19_178.19 / 1_134.33 * 1_024, bytes.bytesize, 1_500 # with its head
    assert_in_delta 1_701.66 / 889.05 * 1_024, Zlib.gzip(bytes).bytesize, 500
    assert_equal 200, Bench::Payloads.fetch("records").size
  end

  test "an application that answers something else is not measured" do
    paper = JSON.generate(Bench::Payloads.fetch("paper"))
    {
      "the status is 404" => "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "the coding is identity, not gzip" => answer(paper),
      "the type is text/html" => answer(Zlib.gzip(paper), type: "text/html", more: "Content-Encoding: gzip\r\n"),
      "the body is not the object" => answer(Zlib.gzip("{}"), more: "Content-Encoding: gzip\r\n")
    }.each do |reason, bytes|
      serve(->(socket) { speak(socket, bytes) }) do |port|
        answers = Bench::Answers.new("json", [Struct.new(:port, :pids).new(port, [])], compresses: true)
        assert_equal({"whole" => false, "wrong" => reason}, answers.wake)
        assert_equal reason, assert_raises(Bench::Load::Failed) { answers.load("paper", **TINY) }.message
      end
    end
  end

  test "one application answers JSON and MessagePack, compressed by itself and by nginx" do
    skip_unless_available("nginx")
    {"oj-application" => 1_495, "msgpack-nginx" => 1_853}.each do |name, bytes|
      scenario = Bench::CodecPaper.new(entrants: [name], values: {clients: 4, **TINY})
      figures = scenario.measure(scenario.groups.flatten.first)
      assert figures["whole"], name
      assert_operator figures["responses"], :>, 0, name
      assert_operator figures["cpu_us_each"], :>, 0, name
      assert_in_delta bytes, figures["body_bytes"], bytes / 10, name # by which zlib
    end
  end

  test "answers that are kept ready are compressed with a server and without one" do
    scenario = Bench::CodecRepeated.new(entrants: %w[msgpack-ready-cache], values: {clients: 2, payloads: %w[paper], **TINY})
    served, alone = scenario.groups.flatten.map { |cell| scenario.measure(cell) }
    [served, alone].each do |figures|
      assert_equal [true, 0], figures.values_at("whole", "wrong")
      assert_operator figures["per_second"], :>, 0
    end
    assert_equal served["body_bytes"], alone["body_bytes"]
    refute Bench::Entrants.fetch("msgpack-ready-none").alone("paper", seconds: 0.01)["coding"]
  end

  test "events are JSON of as many bytes as they should have, each with a marker" do
    Dir.mktmpdir do |folder|
      lines = File.readlines(Bench::Events.write(File.join(folder, "events"), 300), chomp: true)
      texts = lines.map { |line| URI.decode_www_form_component(line).sub("{m}", "@T#{"0" * 24}@") }
      assert_equal [300], texts.map(&:bytesize).uniq
      assert_equal texts.size, texts.map { |text| JSON.parse(text).dig("order", "id") }.uniq.size
      assert_equal texts.size, lines.count { |line| line.include?("{m}") }
    end
    assert_raises(ArgumentError) { Bench::Events.text(0, 100, Bench::Payloads::Numbers.new(1)) }
  end

  test "subscribers decode their streams, and take no others" do
    texts = file_of("a{m}bcd\n{m}cd\n")
    hub = FakeStreams.new(gzip: true)
    figures = Bench::Load.run(port: hub.port, subscribers: 3, messages: 4, warmup: 1, sync: true, settle: 20, timeout: 10, gzip: true, text_file: texts.path)
    assert figures["whole"]
    assert_equal 12, figures["delivery"]["delivered"]
    assert_equal [["a", 31], ["@", 29]], hub.published.map { |text| [text[0], text.bytesize] }.uniq
    assert_operator figures["delivery"]["bytes_each"], :<, 70 # an event has more
    assert_match(/^Accept-Encoding: gzip\r$/, hub.heads.first)

    plain = FakeStreams.new(gzip: false)
    _out, err = capture_io { figures = Bench::Load.run(port: plain.port, subscribers: 1, messages: 1, settle: 20, timeout: 1, gzip: true) }
    assert_equal [0, 1, false], figures.values_at("subscribers", "dead", "whole")
    assert_match(/subscriber refused: HTTP\/1.1 200/, err)
  ensure
    [hub, plain].compact.each(&:close)
    texts&.close!
  end

  test "what does not go together is said in a line" do
    texts = file_of("nothing\n")
    {["--gzip", "--cable", "x"] => "--gzip does not go with --cable", ["--text-file", texts.path] => "has a line without {m}"}.each do |words, what|
      said, status = Open3.capture2e(Bench::Build.program("load"), "--port", "1", "--subscribers", "0", "--settle", "0", *words)
      assert_equal 2, status.exitstatus
      assert_includes said, what
    end
  end

  test "where the hub does not compress its streams, that is told instead of figures" do
    {true => nil, false => /does not answer Accept-Encoding: gzip/}.each do |gzip, obstacle|
      hub = FakeStreams.new(gzip: gzip)
      entrant = Struct.new(:hub) do
        def run = yield(hub)

        def speech = {subscribe_path: "/{t}"}
      end
      found = Bench::Entrants.stub(:fetch, entrant.new(hub)) { Bench::CodecHub.obstacle }
      obstacle ? assert_match(obstacle, found) : assert_nil(found)
    ensure
      hub.close
    end
  end

  test "the targets are reached by what they promise, and by no less" do
    scenario = Bench::CodecPaper.new
    figures = lambda do |rate, cpu, body = 1_853|
      {"per_second" => rate, "cpu_us_each" => cpu, "body_bytes" => body, "whole" => true}
    end
    by = {"json-none" => [100, 900], "msgpack-none" => [151, 600], "json-nginx" => [100, 1_000], "msgpack-nginx" => [129, 700],
          "msgpack-middleware" => [120, 769], "msgpack-behind" => [120, 771, 1_854], "msgpack-application" => [20, 900, 1_571], "msgpack-cache" => [100, 620]}
    runs = by.map { |name, its| run_of(scenario.groups.flatten.find { |cell| cell.entrant == name }, figures.call(*its)) }
    scenario.results = Bench::Results.new(runs)
    targets = scenario.targets
    verdict = ->(name, entrant) { targets.find { |target| target.name.match?(name) && target.entrant == entrant }.verdict }

    assert_equal %w[reached **missed**], [verdict.call(/over JSON's, not compressed/, "msgpack-none"), verdict.call(/over JSON's, by nginx/, "msgpack-nginx")]
    assert_equal %w[reached **missed**], %w[msgpack-middleware msgpack-behind].map { |name| verdict.call(/CPU per response over nginx's/, name) }
    assert_equal %w[reached **missed**], %w[msgpack-middleware msgpack-behind].map { |name| verdict.call(/bytes of the body/, name) }
    assert_equal ["reached", "not measured"], %w[msgpack-cache json-cache].map { |name| verdict.call(/repeated response/, name) }
  end

  # A hub that sends what is published to it to all, in gzip or not, flushed each time.
  class FakeStreams
    attr_reader :port, :published, :heads

    def initialize(gzip:)
      @gzip = gzip
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @streams = []
      @published = []
      @heads = []
      @lock = Mutex.new
      @accepting = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
    end

    def close
      @accepting.kill
      @listener.close
      @streams.each { |socket, _| socket.close }
    end

    private

    def serve(socket)
      while (head = socket.gets("\r\n\r\n"))
        @heads << head
        next subscribe(socket, head) if head.start_with?("GET")
        publish(socket.read(head[/^Content-Length: (\d+)/i, 1].to_i))
        socket.write("#{OK}Content-Length: 0\r\n\r\n")
      end
    rescue SystemCallError, IOError
      nil # the other side is gone
    end

    # The beginning of the stream comes with the head.
    def subscribe(socket, head)
      deflate = Zlib::Deflate.new(6, 31)
      start = "#{STREAM}\r\n:\n\n"
      start = "#{STREAM}Content-Encoding: gzip\r\n\r\n".b << deflate.deflate(":\n\n", Zlib::SYNC_FLUSH) if @gzip && head.match?(/^Accept-Encoding: gzip\r$/)
      @lock.synchronize { socket.write(start) && @streams << [socket, deflate] }
    end

    def publish(text)
      @lock.synchronize do
        @published << text
        event = "id: abcdefghijkl\nevent: a-long-type-that-compresses\ndata: #{text}\n\n"
        @streams.each { |socket, deflate| socket.write(@gzip ? deflate.deflate(event, Zlib::SYNC_FLUSH) : event) }
      end
    end
  end

  private

  def get(**options, &behaviour)
    serve(behaviour) do |port|
      Bench::Load.run(port: port, publishers: 3, seconds: TINY[:seconds], warmup_seconds: TINY[:warmup], timeout: 5, **Bench::Answers::GENERATOR, **options)
    end
  end

  # Answers each request by the block, and ends the connection when that says so.
  def serve(behaviour)
    listener = TCPServer.new("127.0.0.1", 0)
    accepting = Thread.new do
      loop do
        Thread.new(listener.accept) do |socket|
          nil while socket.gets("\r\n\r\n") && behaviour.call(socket)
        rescue SystemCallError, IOError
          nil # the other side is gone
        ensure
          socket.close
        end
      end
    end
    yield listener.addr[1]
  ensure
    accepting&.kill
    listener&.close
  end

  # @param slowly [Integer, nil] so many of its bytes one by one
  def speak(socket, bytes, slowly = nil)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, true)
    slowly.to_i.times { |at| socket.write(bytes[at]) }
    socket.write(bytes[slowly.to_i..])
    true
  end

  def answer(body, type: "application/json", more: "") = "#{OK}Content-Type: #{type}\r\n#{more}Content-Length: #{body.bytesize}\r\n\r\n".b << body

  def file_of(text) = Tempfile.new("bench-codec").tap { |file| file.write(text) && file.flush }

  def run_of(cell, figures) = Bench::Run.new(cell: cell, round: 0, figures: figures)
end
