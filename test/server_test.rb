# frozen_string_literal: true

require "test_helper"
require "hikyaku/server"
require "json"
require "logger"
require "open3"
require "rack/lint"
require "rbconfig"
require "socket"
require "stringio"
require "tempfile"
require "timeout"
require "tmpdir"
require "support/native_hub"

# On the loop of the engine in C; ServerOnPumaTest runs the same on Puma.
class ServerTest < Minitest::Test
  Config = Hikyaku::Config
  Server = Hikyaku::Server
  EXE = File.expand_path("../exe/hikyaku", __dir__)

  # Says what it was asked; /boom breaks, /slow waits until it may go on.
  class StandIn
    attr_reader :seen, :gate, :stopped

    def initialize
      @seen = Queue.new
      @gate = Queue.new
      @app = Rack::Lint.new(method(:answer))
    end

    # Lint knows no QUERY, and no client without an address.
    def call(env)
      return answer(env) if env["REQUEST_METHOD"] == "QUERY" || env["REMOTE_ADDR"].nil?
      @app.call(env)
    end

    def answer(env)
      @seen << env.slice("REQUEST_METHOD", "REMOTE_ADDR", "PATH_INFO")
      raise "a secret of the application" if env["PATH_INFO"] == "/boom"
      @gate.pop if env["PATH_INFO"] == "/slow"
      body = "#{env["REQUEST_METHOD"]} #{env["rack.input"]&.read.to_s.bytesize}"
      [200, {"content-type" => "text/plain"}, [body]]
    end

    def shutdown = @stopped = true
  end

  def setup
    @app = StandIn.new
    @log = StringIO.new
  end

  def teardown
    @server&.stop
  end

  def engine = "c"

  def start(listen: "127.0.0.1:0", log_level: "debug", **settings)
    config = Config.new(dev: true, listen: listen, engine: engine, **settings)
    @server = Server.new(config, logger: Server::Log.new(@log, level: log_level), build: ->(*arguments) {
      @built = arguments
      @app
    }).start
  end

  # One that waits to be taken when the socket is closed is reset.
  def takes_another?
    connect.close
    true
  rescue Errno::ECONNRESET
    true
  rescue Errno::ECONNREFUSED
    false
  end

  def connect = TCPSocket.new("127.0.0.1", @server.config.address.port)

  # Sends a request as it is and returns the status, the header and the body.
  def ask(request, socket: connect)
    socket.write(request)
    parse(Timeout.timeout(60) { socket.read })
  ensure
    socket.close
  end

  # The same in pieces, of which those are not sent any more that nobody waits for.
  def tell(pieces)
    socket = connect
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    begin
      pieces.each { |piece| socket.wait_readable(0) ? break : socket.write(piece) }
    rescue SystemCallError
      nil # it has closed
    end
    parse(Timeout.timeout(180) { read_all(socket) })
  ensure
    socket.close
  end

  # Also what came before the other side reset the connection.
  def read_all(socket)
    answer = "".b
    loop { answer << socket.readpartial(65_536) }
  rescue EOFError, SystemCallError
    answer
  end

  def parse(text)
    head, body = text.split("\r\n\r\n", 2)
    head = text.split("\r\n\r\n", 3).then { |parts| (body = parts[2]) && parts[1] } if head.start_with?("HTTP/1.1 100")
    status, *lines = head.split("\r\n")
    [status[/ (\d{3})/, 1].to_i, lines.to_h { |line| line.downcase.split(": ", 2) }, body]
  end

  def simple(method, path = "/", fields = "") = "#{method} #{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n#{fields}\r\n"

  def problem(answer, status)
    assert_equal [status, "application/problem+json"], [answer[0], answer[1]["content-type"]]
    document = JSON.parse(answer[2])
    assert_equal status, document["status"]
    assert_match(/\A[a-z][^.\n]+\z/, document["detail"])
    document
  end

  test "the methods of the protocol reach the application, QUERY among them" do
    start
    %w[GET POST OPTIONS DELETE QUERY PUT PATCH].each do |method|
      status, _, body = ask(simple(method))
      assert_equal [200, "#{method} 0"], [status, body]
      assert_equal({"REQUEST_METHOD" => method, "REMOTE_ADDR" => "127.0.0.1", "PATH_INFO" => "/"}, @app.seen.pop)
    end
    assert_equal 200, ask(simple("HEAD")).first
  end

  test "an error of the application is a problem without its message or a stack trace, and is in the log" do
    start
    answer = ask(simple("GET", "/boom"))
    problem(answer, 500)
    refute_match(/secret|\.rb|boom/, answer[2])
    assert_includes @log.string, "RuntimeError: a secret of the application"
  end

  # RFC 9112; RFC 6585 for the status of a head that is too large.
  def malformed
    {
      "GET / HTTP/1.1\r\nbad header s3cret\r\n\r\n" => 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\r\n\r\n".b => 400, "GET /\0s3cret HTTP/1.1\r\n\r\n" => 400,
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n" => 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: frob\r\n\r\n" => 400,
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" => 501,
      "GET / HTTP/1.1\r\nx: #{"s3cret" * 20_000}\r\n\r\n" => 431, "GET /#{"a" * 70_000} HTTP/1.1\r\n\r\n" => 414
    }
  end

  test "what is no HTTP is answered with a problem" do
    start
    malformed.each do |request, status|
      answer = ask(request)
      problem(answer, status)
      refute_includes answer[2], "s3cret"
      assert_empty @app.seen, request[0, 100]
    end
  end

  # Fields beside Host and Connection, and the status.
  FIELDS = {
    "x: y\r\n" * 98 => 200, "x: y\r\n" * 99 => 431, Array.new(300) { |index| "x-#{index}: y\r\n" }.join => 431,
    "x: #{"y" * 32_765}\r\n" => 200, "x: #{"y" * 32_766}\r\n" => 431, "x: #{"y" * 30_000}\r\n" * 2 => 200, "x: #{"y" * 30_000}\r\n" * 3 => 431
  }.freeze
  private_constant :FIELDS

  # RFC 6585, section 5.
  test "a head has so many fields, of so many bytes each and together, and is refused beyond" do
    start
    FIELDS.each do |fields, status|
      request = simple("GET", "/", fields)
      [[request], request.scan(/.{1,5000}/m)].each do |pieces|
        answer = tell(pieces)
        (status == 200) ? assert_equal(200, answer.first, fields[0, 20]) : problem(answer, status)
        (status == 200) ? @app.seen.pop : assert_empty(@app.seen, fields[0, 20])
      end
    end
  end

  # RFC 9112, section 7.1: what stands in place of the chunks, and the status.
  CHUNKS = {
    "5\r\nhello\r\n0\r\n\r\n" => 200, "5;a=b;c=\"d\\\"\"\r\nhello\r\n0\r\nA: b\r\n\r\n" => 200, "00000005\r\nhello\r\n000\r\n\r\n" => 200, "0\r\n\r\n" => 200,
    " 5\r\nhello\r\n0\r\n\r\n" => 400, "5 \r\nhello\r\n0\r\n\r\n" => 400, "5\nhello\r\n0\r\n\r\n" => 400, "5\r\nhello\n0\r\n\r\n" => 400, "5\r\nhelloXX0\r\n\r\n" => 400,
    "5;\r\nhello\r\n0\r\n\r\n" => 400, "5;a=\0\r\nhello\r\n0\r\n\r\n" => 400, "5;a b\r\nhello\r\n0\r\n\r\n" => 400, "\r\n5\r\nhello\r\n0\r\n\r\n" => 400, ";a\r\n0\r\n\r\n" => 400,
    "0x5\r\nhello\r\n0\r\n\r\n" => 400, "+5\r\nhello\r\n0\r\n\r\n" => 400, "00000000000000005\r\nhello\r\n0\r\n\r\n" => 400, "fffffffffffffffff\r\nhello" => 400,
    "5\r\nhello\r\n0\r\nno field\r\n\r\n" => 400, "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n" => 400, "5\r\nhello\r\n0\r\n a: b\r\n\r\n" => 400, "0\r\n\n" => 400,
    "0\nA: b\r\n\r\n" => 400, "5;#{"a" * 300}\r\nhello\r\n0\r\n\r\n" => 400, "5\r\nhello\r\n0\r\n#{"a: b\r\n" * 3_000}\r\n" => 431,
    "#{"1\r\nx\r\n" * 500}0\r\n\r\n" => 200
  }.freeze
  private_constant :CHUNKS

  test "chunks are read as the specification has them, whole and in pieces, and what is none is refused" do
    start
    CHUNKS.each do |chunks, status|
      head = simple("POST", "/", "Transfer-Encoding: chunked\r\n")
      [[head + chunks], [head, *chunks.chars], [head, *chunks.scan(/.{1,7}/m)]].each do |pieces|
        next if pieces.size > 400
        answer = tell(pieces)
        (status == 200) ? assert_equal(200, answer.first, pieces.inspect) : problem(answer, status)
        (status == 200) ? @app.seen.pop : assert_empty(@app.seen, pieces.inspect)
      end
    end
    refute_includes @log.string, "ERROR"
  end

  test "what follows the last chunk is the next request" do
    start
    chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n"
    all = chunked * 2 + simple("GET")
    [1, 7, all.bytesize].each do |size|
      socket = connect
      all.scan(/.{1,#{size}}/m) { |piece| socket.write(piece) }
      assert_equal ["POST 3", "POST 3", "GET 0"], Timeout.timeout(180) { socket.read }.scan(/(?:POST|GET) \d/), size
    ensure
      socket&.close
    end
  end

  NO_TARGETS = ["\r\n\r\n", "\r\n\r\n\r\n\r\n\r\n\r\n", "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD a:443 HTTP/1.1\r\nHost: a\r\n\r\n", "GET urn:a:b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://me@example.com/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://a b/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://[a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET a HTTP/1.1\r\nHost: a\r\n\r\n"].freeze
  private_constant :NO_TARGETS

  test "what asks for nothing that there can be is no mistake of the server" do
    start
    NO_TARGETS.each do |request|
      socket = connect
      socket.write(request)
      socket.close_write
      answer = Timeout.timeout(180) { read_all(socket) }
      assert_match(%r{\A(?:\z|HTTP/1.[01] 400 )}, answer, request.inspect)
      assert_empty @app.seen, request.inspect
    ensure
      socket&.close
    end
    refute_includes @log.string, "ERROR"
  end

  test "a whole URL as the target, and a host with an empty port, are understood" do
    start
    {"http://example.com" => "/", "http://example.com/a?b" => "/a", "http://example.com:/a" => "/a", "HTTP://example.com?b" => "/", "/a" => "/a"}.each do |target, path|
      answer = ask("GET #{target} HTTP/1.1\r\nHost: a:\r\nConnection: close\r\n\r\n")
      assert_equal [200, path], [answer.first, @app.seen.empty? ? nil : @app.seen.pop["PATH_INFO"]], target
    end
    refute_includes @log.string, "ERROR"
  end

  test "a trailer section that comes in pieces is no mistake of the server" do
    start
    socket = connect
    socket.write("#{simple("POST", "/", "Transfer-Encoding: chunked\r\n")}1\r\nx\r\n0\r\nA: ")
    socket.write("b\r\n\r\n") unless socket.wait_readable(0.5)
    assert_equal 200, parse(socket.read).first
    refute_includes @log.string, "ERROR"
  end

  # So many bytes are the application's to refuse, with a limit of 1,024.
  def near_the_limit = 1_000

  test "section Publication: a body that is far too large is answered 413, however it is sent, and the client can read it" do
    start(max_request_bytes: 1024)
    body = "x" * 100_000
    problem(ask("#{simple("POST", "/", "Content-Length: #{body.size}\r\n")}#{body}"), 413)
    problem(ask("#{simple("POST", "/", "Content-Length: #{body.size}\r\nExpect: 100-continue\r\n")}#{body}"), 413)
    problem(ask("#{simple("POST", "/", "Transfer-Encoding: chunked\r\n")}#{body.size.to_s(16)}\r\n#{body}\r\n0\r\n\r\n"), 413)
    assert_includes problem(ask(simple("POST", "/", "Content-Length: 99999999999999\r\n")), 413)["detail"], "max_request_bytes"
    # Before what the chunk says that it has.
    ["F" * 16, "4000000", "400\r\n#{"x" * 1024}\r\nF000"].each { |size| problem(ask("#{simple("POST", "/", "Transfer-Encoding: chunked\r\n")}#{size}\r\nabc"), 413) }
    assert_equal 200, ask("#{simple("POST", "/", "Content-Length: #{near_the_limit}\r\n")}#{"x" * near_the_limit}").first
  end

  test "a request that is being answered when the server stops is finished, and no new one is taken" do
    start
    socket = connect
    socket.write(simple("GET", "/slow"))
    @app.seen.pop
    stop = Thread.new { @server.stop }
    Timeout.timeout(60) do
      nil while takes_another?
      @app.gate << true
      assert_equal [200, "GET 0"], parse(socket.read).values_at(0, 2)
      stop.join
    end
    assert @app.stopped
    @server.stop
  end

  test "many connections that ask again and again, each after a pause, are all answered by two threads" do
    start(threads: 2)
    sockets = Array.new(12) { connect }
    request = simple("GET").sub("close", "keep-alive")
    5.times do |round|
      sockets.each { |socket| socket.write(request) }
      sockets.each { |socket| assert_includes Timeout.timeout(60) { socket.readpartial(4096) }, "200 OK", "round #{round}" }
      sleep 0.005
    end
    late = sockets.pop
    late.write(request[0, 10])
    sockets.each { |socket| socket.write(request) && assert_includes(Timeout.timeout(60) { socket.readpartial(4096) }, "200 OK") }
    late.write(request[10..])
    assert_includes Timeout.timeout(60) { late.readpartial(4096) }, "200 OK"
  ensure
    [*sockets, late].compact.each(&:close)
  end

  test "an idle connection does not hold up a stop" do
    start
    idle = connect
    kept = connect
    kept.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert_match(/200/, kept.gets)
    Timeout.timeout(60) { @server.stop }
    assert_nil idle.read(1)
  end

  test "port 0 is any free port, which the configuration knows then" do
    start
    assert_operator @server.config.address.port, :>, 0
    assert_equal "http://127.0.0.1:#{@server.config.address.port}/.well-known/mercure", @server.url
    assert_equal @server.url, @built.first.hub_url
    assert_equal @server.url, @built.first.resource_identifier
  end

  test "the limit of connections follows from the files that may be open, unless told" do
    start
    files, = Process.getrlimit(:NOFILE)
    assert_equal Process.getrlimit(:NOFILE).last, files
    assert_operator @built.first.max_connections, :<, files
    assert_operator @built.first.max_connections, :>=, files / 2
    @server.stop
    start(max_connections: 5)
    assert_equal 5, @built.first.max_connections
    @server.stop
    start(max_connections: 10_000_000)
    assert_match(/WARN  max_connections is 10000000, but only \d+ files may be open/, @log.string)
  end

  test "doubts about the configuration are in the log" do
    start(publisher_key: "!ChangeThisMercureHubJWTSecretKey!", anonymous: false)
    assert_match(/WARN  nobody can subscribe/, @log.string)
  end

  test "requests are in the log at the level debug, without the query" do
    start
    ask(simple("GET", "/path?authorization=abc"))
    assert_match(%r{DEBUG GET /path 200 }, @log.string)
    refute_includes @log.string, "abc"
  end

  test "a Unix socket is for user and group, and its clients have no address" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/hub.sock"
      start(listen: "unix:#{path}")
      assert_equal 0o660, File.stat(path).mode & 0o777
      assert_equal [200, "GET 0"], ask(simple("GET"), socket: UNIXSocket.new(path)).values_at(0, 2)
      assert_nil @app.seen.pop["REMOTE_ADDR"]
      @server.stop
      refute File.exist?(path)
    end
  end

  test "when the application cannot be built, the address is free again" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    server = Server.new(Config.new(dev: true, listen: "127.0.0.1:#{port}"), logger: Logger.new(IO::NULL), build: ->(*) { raise Hikyaku::ConfigError, "no" })
    assert_raises(Hikyaku::ConfigError) { server.start }
    TCPServer.open("127.0.0.1", port).close
  end

  # The process as its users run it.

  def serve(*flags, **options)
    out = Tempfile.new("out")
    pid = Process.spawn(RbConfig.ruby, EXE, "serve", "--dev", "--engine", engine, "--listen", "127.0.0.1:0", *flags, out: out, err: out, **options)
    Timeout.timeout(60) { sleep 0.02 until File.read(out.path).match?(/^(Hikyaku .* listening|hikyaku:)/) }
    yield pid, File.read(out.path)[%r{http://127\.0\.0\.1:(\d+)}, 1].to_i, -> { File.read(out.path) }
  ensure
    begin
      Process.kill("KILL", pid)
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end
    out.unlink
  end

  def status_of(pid) = Timeout.timeout(60) { Process.wait2(pid).last }

  def subscribe(port)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write("GET /.well-known/mercure?match=* HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert_match(/200/, socket.gets)
    socket
  end

  %w[TERM INT].each do |signal|
    test "on #{signal} subscribers are closed with a time to come back, and the process ends with code 0" do
      serve do |pid, port, log|
        sockets = Array.new(3) { subscribe(port) }
        Process.kill(signal, pid)
        retries = sockets.map { |socket| Timeout.timeout(60) { socket.read }[/^retry: ?(\d+)$/, 1].to_i }
        assert_operator retries.min, :>, 0
        status = status_of(pid)
        assert_equal [0, true], [status.exitstatus, status.exited?], log.call
        assert_match(/INFO  stopping on #{signal}.*INFO  stopped/m, log.call)
      end
    end
  end

  test "HUP makes the process read its keys again" do
    Dir.mktmpdir do |folder|
      path = File.join(folder, "key")
      File.write(path, AccessTokens::SECRETS[:publisher])
      hub = NativeHub.new(keys: ["--publisher-key", "file:#{path}"], engine: engine)
      assert_equal 200, hub.post({topic: "a"}).status
      File.write(path, "{")
      Process.kill("HUP", hub.pid)
      Timeout.timeout(60) { sleep 0.02 until hub.log.include?("stay in force") }
      assert_equal 200, hub.post({topic: "b"}).status
      File.write(path, AccessTokens::SECRETS[:subscriber])
      Process.kill("HUP", hub.pid)
      Timeout.timeout(60) { sleep 0.02 until hub.post({topic: "c"}).status == 401 }
      assert_equal 200, hub.post({topic: "d"}, token: AccessTokens.token(:publisher, "*", key: AccessTokens::SECRETS[:subscriber])).status
    ensure
      hub&.stop
    end
  end

  test "HUP does not end the process" do
    serve do |pid, port, _log|
      Process.kill("HUP", pid)
      subscribe(port).close
      Process.kill("TERM", pid)
      assert_equal 0, status_of(pid).exitstatus
    end
  end

  test "a second signal ends the process at once, with code 1 and without leaving its socket" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/hub.sock"
      reader, writer = IO.pipe
      pid = Process.spawn(RbConfig.ruby, "-I", File.expand_path("../lib", __dir__), "-e", <<~RUBY, path, engine, out: writer, err: writer)
        require "hikyaku/server"
        config = Hikyaku::Config.new(dev: true, listen: "unix:" + ARGV[0], engine: ARGV[1])
        endless = ->(_env) { puts("asked") || $stdout.flush && sleep }
        exit Hikyaku::Server.new(config, build: ->(*) { endless }).run
      RUBY
      writer.close
      lines = reader.each_line
      Timeout.timeout(60) { lines.find { |line| line.include?("listening") } }
      socket = UNIXSocket.new(path)
      socket.write(simple("GET"))
      Timeout.timeout(60) { lines.find { |line| line.include?("asked") } }
      Process.kill("TERM", pid)
      Timeout.timeout(60) { lines.find { |line| line.include?("stopping on TERM") } }
      Process.kill("INT", pid)
      assert_equal 1, status_of(pid).exitstatus
      refute File.exist?(path)
    ensure
      [reader, socket].compact.each(&:close)
    end
  end

  test "developer mode prints the page and lines to paste, which work" do
    serve do |_pid, port, log|
      text = log.call
      url = "http://127.0.0.1:#{port}/.well-known/mercure"
      assert_includes text, "  #{url}/ui/\n"
      assert_includes text, "  curl -N '#{url}?match=*'\n"
      publish = text[/^  (curl .*-d data=Hello .*)$/, 1]
      socket = subscribe(port)
      id, status = Open3.capture2(*publish.sub("curl", "curl -s").scan(/'[^']*'|\S+/).map { |word| word.delete_prefix("'").delete_suffix("'") })
      assert status.success?
      Timeout.timeout(60) { assert_equal "id: #{id}\n", socket.each_line.find { |line| line.start_with?("id") } }
      socket.close
    end
  end

  test "lines of the log can be JSON, and go to standard error" do
    serve("--log-format", "json") do |pid, _port, log|
      Process.kill("TERM", pid)
      status_of(pid)
      lines = log.call.lines.select { |line| line.start_with?("{") }.map { |line| JSON.parse(line) }
      assert_equal %w[time level message], lines.first.keys
      assert_equal "stopped", lines.last["message"]
    end
  end
end

class ServerOnPumaTest < ServerTest
  def engine = "ruby"

  # Puma's statuses.
  def malformed
    super.merge("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: frob\r\n\r\n" => 501).reject { |request, _| request.include?("gzip") }
  end

  # Puma reads twice as much, so that the application's own limit has the last word near it.
  def near_the_limit = 1_500

  test "a method that nobody knows is answered with a problem" do
    start
    problem(ask(simple("FROB")), 501)
    assert_empty @app.seen
  end

  test "a body that is hardly anything but the frames of its chunks is refused" do
    start
    problem(tell([simple("POST", "/", "Transfer-Encoding: chunked\r\n"), *["1;#{"a" * 200}\r\nx\r\n"] * 400]), 400)
    assert_empty @app.seen
  end

  test "when no file is left for a connection, the server waits for one, without filling the log" do
    serve(rlimit_nofile: 80) do |_pid, port, log|
      crowd = Array.new(120) { TCPSocket.new("127.0.0.1", port) }
      Timeout.timeout(60) { sleep 0.05 until log.call.include?("no file is left") }
      crowd.each(&:close)
      Timeout.timeout(60) { subscribe(port).close }
      assert_operator log.call.lines.size, :<, 40
    end
  end
end
