# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "socket"
require "stringio"
require "timeout"
require "puma"
require "puma/server"
require "hikyaku/hub"
require "hikyaku/server/native_reactor"

class NativeReactorRequestsTest < Minitest::Test
  PATH = "/.well-known/mercure"
  HUB_URL = "https://hub.example.com#{PATH}"
  OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"

  def setup
    @hub = Hikyaku::Hub.new(hub_url: HUB_URL, heartbeat: nil, engine: Hikyaku::Hub::NativeEngine)
    @reactor = Hikyaku::Server::NativeReactor.new(@hub, write_timeout: 5, drain_timeout: 0.1)
    @open = []
  end

  def teardown
    @reactor.stop
    @open.each { |socket| socket.close unless socket.closed? }
  end

  def listen(**options)
    @reactor.take_requests(path: PATH, max_body_bytes: 1_000, cookie_names: ["token"], **options)
    @server = TCPServer.new("127.0.0.1", 0).tap { |server| @open << server }
    @reactor.listen(@server)
  end

  def connect(bytes = nil)
    TCPSocket.new("127.0.0.1", @server.addr[1]).tap do |socket|
      @open << socket
      socket.write(bytes) if bytes
    end
  end

  def next_request = @reactor.next_request(timeout: 60).tap { |request| assert request, "no request came" }

  def read_until(socket, text)
    received = +"".b
    Timeout.timeout(60) { received << socket.readpartial(65_536) until received.include?(text) }
    received
  rescue Timeout::Error, EOFError
    flunk "#{text.inspect} did not come, only #{received.inspect}"
  end

  def request(line, *fields, body: "") = "#{line} HTTP/1.1\r\n#{["Host: hub.example.com", *fields].map { |field| "#{field}\r\n" }.join}\r\n#{body}"

  def ask(...)
    socket = connect(request(...))
    [next_request, socket]
  end

  # Goes without a word; a client that has only said all that it wants still waits for the answer.
  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
  end

  def grant(*topics, publish: false)
    matchers = topics.map { |topic| @hub.matcher("exact", topic) }
    publish ? Hikyaku::Hub::Grant.new(publishes: matchers) : Hikyaku::Hub::Grant.new(matchers: matchers)
  end

  # What Puma makes of the same bytes.
  class Oracle
    IGNORED = /\Apuma\.|\Arack\.(?:hijack|after_reply|response_finished|version|multi|run_once|early|input|errors)|\A(?:GATEWAY_INTERFACE|SERVER_SOFTWARE|REQUEST_PATH|HTTP_VERSION|REMOTE_ADDR)\z/

    def initialize
      @envs = Queue.new
      @server = Puma::Server.new(lambda { |env| answer(env) }, nil, log_writer: Puma::LogWriter.null, min_threads: 1, max_threads: 1)
      @listener = @server.add_tcp_listener("127.0.0.1", 0)
      @thread = @server.run
    end

    def env_of(bytes)
      socket = TCPSocket.new("127.0.0.1", @listener.addr[1])
      socket.write(bytes)
      Timeout.timeout(60) { @envs.pop }
    ensure
      socket&.close
    end

    def stop = @server.stop(true)

    private

    def answer(env)
      @envs << env.merge("body" => env["rack.input"].read)
      [200, {"connection" => "close"}, []]
    end
  end

  REQUESTS = {
    "a path and a query" => ["GET /other%20path/%C3%A9?a=b&c=%20;d HTTP/1.1\r\nHost: example.com:8080\r\n\r\n"],
    "no query, no port" => ["GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"],
    "an IPv6 host" => ["GET /x HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n", "GET /x HTTP/1.1\r\nHost: [::1]\r\n\r\n"],
    "no host" => ["GET /x HTTP/1.0\r\n\r\n"],
    "fields" => ["GET /x HTTP/1.1\r\nHost: a\r\nX-Custom-Thing:  some value \t\r\nx-lower: 1\r\nAccept: a\r\nACCEPT: b\r\nCookie: a=b; c=d\r\nOrigin: null\r\n\r\n"],
    "a proxy with TLS" => ["GET /x HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-Proto: https\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a:1\r\nX-Forwarded-Ssl: on\r\n\r\n",
      "GET /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https,http\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: http,https\r\n\r\n"],
    "a body" => ["POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello"],
    "an empty body" => ["POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"],
    "a chunked body" => ["POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"],
    "other methods" => %w[HEAD PUT DELETE OPTIONS PATCH].map { |method| "#{method} /x HTTP/1.1\r\nHost: a\r\n\r\n" },
    "an absolute target" => ["GET http://example.org/y?z=1 HTTP/1.1\r\nHost: example.org\r\n\r\n"]
  }.freeze

  test "an environment is what Puma makes of the same request" do
    oracle = Oracle.new
    listen
    REQUESTS.each_value.flat_map(&:itself).each do |bytes|
      expected = oracle.env_of(bytes).reject { |name, _| name.match?(Oracle::IGNORED) }
      socket = connect(bytes)
      request = next_request
      env = request.env
      ours = env.merge("body" => env["rack.input"].read).reject { |name, _| name.match?(Oracle::IGNORED) }
      @reactor.answer(request, "HTTP/1.1 204 No Content\r\n\r\n", close: true)
      expected["QUERY_STRING"] ||= ""
      %w[HTTP_CONTENT,LENGTH HTTP_TRANSFER,ENCODING].each { |name| expected.delete(name) }
      assert_equal expected, ours, bytes
      assert_equal "127.0.0.1", env["REMOTE_ADDR"]
      assert_respond_to env["rack.errors"], :puts
      read_until(socket, "204")
    end
  ensure
    oracle&.stop
  end

  # Puma shows them; a proxy that was told to remove the one with hyphens lets them pass.
  test "fields with underscores are not shown: they would pose as others" do
    listen
    connect("GET /x HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX_Only: 3\r\nContent_Length: 7\r\nTransfer_Encoding: chunked\r\n\r\n")
    env = next_request.env
    assert_equal({"HTTP_HOST" => "a", "HTTP_X_FORWARDED_FOR" => "2.2.2.2"}, env.select { |name, _| name.start_with?("HTTP_", "CONTENT_") })
  end

  # Rack, SPEC: never an empty string.
  test "without a host the server has a name all the same" do
    listen
    connect("GET /x HTTP/1.1\r\nHost:\r\n\r\n")
    assert_equal ["", "localhost", "80"], next_request.env.values_at("HTTP_HOST", "SERVER_NAME", "SERVER_PORT")
  end

  test "the host of an absolute target goes before the field, as RFC 9112, section 3.2.2, has it" do
    listen
    connect("GET http://example.org:81/y HTTP/1.1\r\nHost: elsewhere\r\n\r\n")
    assert_equal %w[example.org:81 example.org 81 /y], next_request.env.values_at("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "PATH_INFO")
  end

  test "an environment holds nothing but what a decision may depend on that will be remembered" do
    listen(legacy: true, trusted_proxies: [IPAddr.new("127.0.0.0/8")])
    subscribe, = ask("GET #{PATH}?match=/a&utm=1&Match_exact=/b&last_event_id=7&topic=/c", "Authorization: Bearer x", "Cookie: other=1; token=t; more=2",
      "Origin: https://a.example", "Referer: https://a.example/", "User-Agent: curl", "X-Forwarded-For: 192.0.2.7", "Last-Event-ID: 9", "X-Forwarded-Proto: https")
    env = subscribe.env
    assert_equal "match=/a&Match_exact=/b&last_event_id=7&topic=/c", env["QUERY_STRING"]
    assert_equal %w[HTTP_AUTHORIZATION HTTP_COOKIE HTTP_LAST_EVENT_ID HTTP_ORIGIN], env.keys.grep(/^HTTP_/).sort
    assert_equal ["Bearer x", "token=t", "9", "192.0.2.7"], env.values_at("HTTP_AUTHORIZATION", "HTTP_COOKIE", "HTTP_LAST_EVENT_ID", "REMOTE_ADDR")
    refute env.key?("REQUEST_URI")
    assert_equal [Encoding::BINARY] * 3, env.values_at("PATH_INFO", "QUERY_STRING", "HTTP_COOKIE").map(&:encoding)

    publish, = ask("POST #{PATH}", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 8", "Accept: */*", "Referer: https://a.example/", body: "topic=/a")
    env = publish.env
    assert_equal %w[CONTENT_LENGTH CONTENT_TYPE HTTP_HOST HTTP_REFERER], (env.keys.grep(/^(HTTP|CONTENT)_/) | ["CONTENT_LENGTH"]).sort
    assert_equal "topic=/a", env["rack.input"].read
    assert subscribe.key && publish.key
    refute_equal subscribe.key, publish.key

    other, = ask("GET /healthz", "Accept: */*")
    assert_nil other.key
    assert_equal "*/*", other.env["HTTP_ACCEPT"]
  end

  test "requests of one connection are answered in their order, and it stays open as long as both want it" do
    listen
    socket = connect(request("GET /1") + request("GET /2") + request("GET /3", "Connection: close"))
    %w[/1 /2].each do |path|
      request = next_request
      assert_equal path, request.env["PATH_INFO"]
      assert request.keep_alive?
      @reactor.answer(request, OK, "ok")
      assert_equal "#{OK}ok", read_until(socket, "ok")
    end
    last = next_request
    refute last.keep_alive?
    @reactor.answer(last, OK, "ok")
    assert_equal "#{OK}ok", Timeout.timeout(60) { socket.read }
    socket = connect(request("GET /1"))
    @reactor.answer(next_request, OK, "ok", close: true)
    assert_equal "#{OK}ok", Timeout.timeout(60) { socket.read }
  end

  test "a request that was answered is void" do
    listen
    request, socket = ask("GET /x")
    refute request.answered?
    @reactor.answer(request, OK, "ok")
    assert request.answered?
    [-> { @reactor.answer(request, OK) }, -> { request.env }, -> { request.key }, -> { @reactor.answer_yourself(request) }, -> { request.keep_alive? }].each do |use|
      assert_match(/answered already/, assert_raises(IOError, &use).message)
    end
    read_until(socket, "ok")
  end

  test "a request that everybody forgot is answered all the same" do
    listen
    socket = connect(request("GET /x"))
    Thread.new { assert next_request }.join
    GC.start
    assert_match(/\AHTTP\/1\.1 500 /, read_until(socket, "\r\n\r\n"))
  end

  test "a body that is too large is not there, and said to be" do
    listen
    fits, = ask("POST /x", "Content-Length: 1000", body: "x" * 1_000)
    assert_equal 1_000, fits.env["rack.input"].read.bytesize
    refute fits.body_too_large?
    large, socket = ask("POST /x", "Content-Length: 1001", body: "x" * 1_001)
    assert large.body_too_large?
    assert_equal ["1001", ""], [large.env["CONTENT_LENGTH"], large.env["rack.input"].read]
    @reactor.answer(large, "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n")
    assert_match(/ 413 /, Timeout.timeout(60) { socket.read })
    chunked, = ask("POST /x", "Transfer-Encoding: chunked", body: "3e9\r\n#{"x" * 1_001}\r\n0\r\n\r\n")
    assert_equal ["1001", true, nil], [chunked.env["CONTENT_LENGTH"], chunked.body_too_large?, chunked.env["HTTP_TRANSFER_ENCODING"]]
  end

  test "who subscribed in Ruby gets a stream" do
    listen
    request, socket = ask("GET #{PATH}?match=/a")
    subscriber = @hub.subscribe(grant("/a"), address: "192.0.2.1")
    @reactor.answer_stream(request, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", subscriber)
    read_until(socket, ":\n\n")
    @hub.publish(Hikyaku::Hub::Update.new(topics: "/a", data: "hello"))
    assert_match(/data: hello\n\n\z/, read_until(socket, "hello\n\n"))
    assert_equal ["192.0.2.1"], @hub.drive { |engine| engine.each_subscriber.map(&:address) }
    socket.close
    wait_until { @hub.stats[:subscribers].zero? }
    assert subscriber.closed
  end

  test "a stream is not begun for a client that is gone" do
    listen
    request, socket = ask("GET #{PATH}?match=/a")
    reset(socket)
    wait_until { @reactor.stats[:connections].zero? }
    @reactor.answer_stream(request, "HTTP/1.1 200 OK\r\n\r\n", @hub.subscribe(grant("/a")))
    wait_until { @hub.stats[:subscribers].zero? }
  end

  test "a subscribe that was granted is granted again without asking, until it is forgotten" do
    listen
    asked = request("GET #{PATH}?match=/a", "Authorization: Bearer x")
    socket = connect(asked)
    first = next_request
    granted = grant("/a")
    @reactor.remember(first, granted, head: "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-remembered: yes\r\n")
    @reactor.answer_stream(first, "HTTP/1.1 200 OK\r\n\r\n", @hub.subscribe(granted))
    read_until(socket, ":\n\n")
    again = connect(asked)
    assert_match(/\AHTTP\/1\.1 200 OK\r\n.*x-remembered: yes/m, read_until(again, ":\n\n"))
    assert_equal [granted, granted], @hub.drive { |engine| engine.each_subscriber.map(&:grant) }
    assert_same @hub.matcher("exact", "/a"), granted.matchers.first
    @hub.publish(Hikyaku::Hub::Update.new(topics: "/a", data: "hello"))
    [socket, again].each { |reader| read_until(reader, "hello") }
    assert_equal [1, 1], @reactor.stats.values_at(:grant_hits, :decisions)
    connect(request("GET #{PATH}?match=/a", "Authorization: Bearer y"))
    assert_equal "Bearer y", next_request.env["HTTP_AUTHORIZATION"]
    @reactor.forget(nil)
    connect(asked)
    assert_equal "Bearer x", next_request.env["HTTP_AUTHORIZATION"]
    assert_equal 0, @reactor.stats[:decisions]
  end

  test "a publish that was granted is published again without asking" do
    listen
    reader = @hub.subscribe(grant("/a"))
    ours, theirs = UNIXSocket.pair
    @open << theirs
    @reactor.attach(reader, ours)
    form = ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 16"]
    socket = connect(request("POST #{PATH}", *form, body: "topic=/a&data=01"))
    first = next_request
    @reactor.remember(first, grant("/a", publish: true), head: "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n")
    @reactor.answer(first, OK, "ok")
    read_until(socket, "ok")
    socket.write(request("POST #{PATH}", *form, body: "topic=/a&data=02"))
    assert_match(/\AHTTP\/1\.1 200 OK\r\n.*\r\n\r\n#[\w-]{11}\z/m, read_until(socket, "\r\n\r\n#"))
    assert_match(/data: 02/, read_until(theirs, "02\n\n"))
    socket.write(request("POST #{PATH}", *form, body: "topic=/b&data=02"))
    assert_equal "topic=/b&data=02", next_request.env["rack.input"].read
  end

  test "a decision that was asked for before it was forgotten is not remembered" do
    listen
    asked = request("GET #{PATH}?match=/a")
    connect(asked)
    first = next_request
    @hub.disconnect(subject: "alice")
    @reactor.forget(nil)
    @reactor.remember(first, grant("/a"), head: "HTTP/1.1 200 OK\r\n")
    connect(asked)
    second = next_request
    assert_equal 0, @reactor.stats[:decisions]
    @reactor.remember(second, grant("/a"), head: "HTTP/1.1 200 OK\r\n")
    assert_equal 1, @reactor.stats[:decisions]
  end

  test "a caller may answer by itself" do
    listen
    request, socket = ask("GET /x")
    own = @reactor.answer_yourself(request).tap { |each| @open << each }
    own.write("anything")
    own.close
    assert_equal "anything", Timeout.timeout(60) { socket.read }
    request, socket = ask("GET /x")
    reset(socket)
    wait_until { @reactor.stats[:connections].zero? }
    assert_nil @reactor.answer_yourself(request)
  end

  test "a connection that somebody else has read from is served" do
    listen
    ours, theirs = UNIXSocket.pair
    @open << theirs
    assert @reactor.adopt(ours, "GET /adopted HTTP/1.1\r\nHo")
    assert ours.closed?
    theirs.write("st: a\r\n\r\n")
    request = next_request
    assert_equal ["/adopted", nil], request.env.values_at("PATH_INFO", "REMOTE_ADDR")
    @reactor.answer(request, OK, "ok")
    read_until(theirs, "ok")
  end

  test "threads that wait for requests end with the reactor, or one by one" do
    listen
    threads = Array.new(4) { Thread.new { @reactor.next_request } }
    wait_until { threads.all? { |thread| thread.status == "sleep" } }
    threads.first.kill
    assert Timeout.timeout(60) { threads.first.join }
    threads[1].report_on_exception = false
    threads[1].raise(ArgumentError, "enough")
    assert_raises(ArgumentError) { Timeout.timeout(60) { threads[1].join } }
    assert threads[2].alive?
    @reactor.stop
    threads.drop(2).each { |thread| assert_nil Timeout.timeout(60) { thread.value } }
    assert_nil @reactor.next_request
    assert_nil @reactor.next_request(timeout: 0.01)
  end

  test "nobody waits longer for a request than wanted" do
    listen
    assert_nil @reactor.next_request(timeout: 0)
    assert_nil @reactor.next_request(timeout: 0.05)
  end

  test "requests are taken only where that was said, once, with limits that exist" do
    server = TCPServer.new("127.0.0.1", 0).tap { |socket| @open << socket }
    assert_match(/take requests/, assert_raises(IOError) { @reactor.listen(server) }.message)
    assert_raises(IOError) { @reactor.take_requests(path: PATH) }
    @reactor.stop
    assert_raises(ArgumentError) { @reactor.take_requests(path: PATH, max_tires: 4) }
    @reactor.take_requests(path: PATH)
    assert_raises(RuntimeError) { @reactor.take_requests(path: PATH) }
  end

  test "an answer to a request outlives the reactor's end" do
    listen
    request, = ask("GET /x")
    @reactor.stop
    refute @reactor.running?
    @reactor.answer(request, OK, "ok")
    assert request.answered?
  end

  test "strings of requests stand apart from the engine's memory, whatever the garbage collector does" do
    listen
    envs = Array.new(20) do |i|
      request, = ask("POST /x#{i}?q=#{i}", "X-Long-#{"n" * i}: #{"v" * (i * 30)}", "Content-Length: #{i + 10}", body: i.to_s.rjust(i + 10))
      GC.stress = i < 3
      env = request.env
      GC.stress = false
      @reactor.answer(request, OK, "ok")
      env
    end
    GC.verify_compaction_references(toward: :empty) if GC.respond_to?(:verify_compaction_references)
    envs.each_with_index do |env, i|
      assert_equal ["POST", "/x#{i}", "q=#{i}", "v" * (i * 30), i.to_s.rjust(i + 10)],
        [*env.values_at("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_X_LONG_#{"N" * i}"), env["rack.input"].read]
    end
  ensure
    GC.stress = false
  end

  def wait_until(seconds: 60)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    sleep 0.005 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert yield, "it did not come true"
  end
end
