# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/publisher"
require "support/scripted_server"
require "timeout"

# Connections, failures, and what is sent again.
class PublisherRemoteHubTest < Minitest::Test
  P = Hikyaku::Publisher
  OURS = {"hikyaku-idempotency" => "1"}.freeze
  ANSWER = ->(peer) { peer.answer_all(200, "#id") }

  # Takes a request, and breaks.
  RESET = lambda do |peer|
    peer.read_request
    peer.reset
  end

  def setup
    @pauses = []
  end

  def serve(*script, **options)
    @server = ScriptedServer.new(*script, **options)
  end

  # With pauses that are written down in place of waiting.
  def publisher(target = @server.url, retries: 2, within: 15, retry_unknown: :auto, tokens: P::TokenSource.new(nil), keep_alive: 4,
    pool_size: 5, read_timeout: 5, clock: -> { @pauses.sum }, **options)
    @pool&.clear
    endpoint = P::Endpoint.new(target, open_timeout: 5, read_timeout: read_timeout, write_timeout: 5, **options)
    @pool = P::Pool.new(size: pool_size, keep_alive: keep_alive) { endpoint.connection }
    @hub = P::RemoteHub.new(endpoint, tokens: tokens, pool: @pool, retry_unknown: retry_unknown, retries: lambda {
      P::Retries.new(limit: retries, within: within, clock: clock, sleep: ->(seconds) { @pauses << seconds })
    })
  end

  def publish(id: nil)
    @hub.publish({topics: ["a"], data: "", id: id}, nil)
  end

  def teardown
    @pool&.clear
    @server&.close
  end

  def keys = @server.requests.map { |request| request["idempotency-key"] }

  # -- connections

  test "one connection serves one publish after another" do
    serve(ANSWER)
    publisher
    5.times { assert_equal "#id", publish }
    assert_equal 1, @server.connections
  end

  test "threads that publish at once have a connection each, and so many are kept" do
    gate = Queue.new
    serve(lambda do |peer|
      while peer.read_request
        gate.pop
        peer.answer(200, "#id")
      end
    end)
    publisher(pool_size: 2)
    threads = Array.new(4) { Thread.new { publish } }
    Thread.pass until @server.requests.size == 4
    4.times { gate << true }
    assert_equal ["#id"] * 4, threads.map(&:value)
    assert_equal [4, 2], [@server.connections, @pool.idle_count]
  end

  test "a connection that the hub closed while it was idle is replaced without an error or a pause" do
    closed = Queue.new
    serve(lambda do |peer|
      peer.read_request
      peer.answer(200, "#id")
      peer.io.close
      closed << true
    end, ANSWER)
    publisher
    publish
    closed.pop
    assert_equal "#id", publish
    assert_equal [2, 2], [@server.connections, @server.requests.size]
    assert_empty @pauses
  end

  test "a connection on which the hub spoke unasked is not used again" do
    speak = Queue.new
    spoken = Queue.new
    serve(lambda do |peer|
      peer.read_request
      peer.answer(200, "#id")
      speak.pop
      peer.answer(200, "#forged")
      spoken << true
      peer.wait_for_close
    end, ANSWER)
    publisher
    publish
    speak << true
    spoken.pop
    assert_equal "#id", publish
    assert_equal 2, @server.connections
  end

  test "an idle connection is not used after its time, neither ours nor the hub's" do
    {30 => nil, 4 => "timeout=100", 0 => nil, 60 => "timeout=1, max=100"}.each do |keep_alive, promise|
      serve(->(peer) { peer.answer_all(200, "#id", "keep-alive" => promise) })
      publisher(keep_alive: keep_alive)
      2.times { publish }
      assert_equal (keep_alive.zero? || promise.to_s.include?("=1,")) ? 2 : 1, @server.connections, [keep_alive, promise].inspect
      teardown
    end
  end

  test "a hub that says close is taken at its word" do
    serve(->(peer) { peer.answer_all(200, "#id", "connection" => "close") })
    publisher
    2.times { publish }
    assert_equal [2, 0], [@server.connections, @pool.idle_count]
  end

  test "a forked child opens its own connection and leaves its parent's alone" do
    serve(ANSWER)
    publisher
    publish
    pid = fork do
      publish
      exit!((@pool.idle_count == 1) ? 0 : 1)
    end
    assert_predicate Process.wait2(pid).last, :success?
    publish
    assert_equal [2, 3], [@server.connections, @server.requests.size]
  end

  test "a publish that its caller interrupts does not leave its answer to the next" do
    serve(lambda do |peer|
      peer.read_request
      peer.wait_for_close
    end, ANSWER)
    publisher
    thread = Thread.new { publish }
    thread.report_on_exception = false
    Thread.pass until @server.requests.size == 1 && thread.stop?
    thread.raise(Timeout::Error, "the caller's own")
    assert_raises(Timeout::Error) { thread.value }
    assert_equal "#id", publish
    assert_equal 2, @server.connections
  end

  # -- answers

  test "a refusal tells the status and the hub's own sentence, and is not repeated" do
    problem = '{"type":"about:blank","status":403,"detail":"the token does not grant this"}'
    serve(->(peer) { peer.answer_all(403, problem, {"content-type" => "application/problem+json"}.merge(OURS)) })
    publisher(retry_unknown: true)
    error = assert_raises(P::Refused) { publish }
    assert_kind_of Hikyaku::PublishError, error
    assert_equal [403, "the token does not grant this", "about:blank", false], [error.status, error.detail, error.problem["type"], error.outcome_unknown?]
    assert_equal "#{@server.url} refused the update with 403: the token does not grant this", error.message
    assert_equal 1, @server.requests.size
  end

  # RFC 9112 section 9.6: what nobody has read resets the connection behind the answer.
  test "a refusal that comes before all is sent is told, and nothing is in doubt" do
    serve(lambda do |peer|
      peer.io.gets("\r\n\r\n")
      peer.answer(413, '{"detail":"it is too large"}', "content-type" => "application/problem+json")
      peer.io.close
    end)
    publisher(retry_unknown: true)
    error = assert_raises(P::Refused) { @hub.publish({topics: ["a"], data: "x" * 32 * 1024 * 1024}, nil) }
    assert_equal [413, "it is too large", 1], [error.status, error.detail, @server.connections]
  end

  test "answers that are no hub's are refused, whatever their status" do
    page = "<!DOCTYPE html>\n<title>Welcome</title>"
    [[200, page], [200, "<html>"], [200, "a\nb"], [201, "x" * 5000], [200, "x" * 200_000], [302, "", {"location" => "https://elsewhere.example/"}],
      [400, page], [404, "x" * 200_000], [413, ""], [422, "{"], [418, "[1]", {"content-type" => "application/json"}], [501, ""],
      [403, '{"detail":{}}', {"content-type" => "application/json"}]].each do |status, body, headers|
      serve(->(peer) { peer.answer_all(status, body, headers || {}) })
      publisher
      error = assert_raises(P::Refused, status.to_s) { publish }
      assert_equal status, error.status
      assert_includes error.message, @server.url
      assert_equal 1, @server.requests.size
      teardown
    end
  end

  test "an answer without an end is not read to its end" do
    written = 0
    serve(lambda do |peer|
      peer.read_request
      peer.answer(403, "", "content-length" => nil)
      1_000.times do
        peer.write("x" * 65_536)
        written += 65_536
      end
    end)
    publisher
    assert_equal 403, assert_raises(P::Refused) { publish }.status
    @server.close
    assert_operator written, :<, 32 * 1024 * 1024
  end

  test "the token is in no message" do
    [->(peer) { peer.answer_all(401, "") }, ->(peer) { peer.answer_all(502, "") }, RESET].each do |step|
      serve(step)
      publisher(tokens: P::TokenSource.new("t0ken"))
      error = assert_raises(P::Failure) { publish }
      refute_match(/t0ken/, error.full_message + error.inspect + error.cause.inspect + @hub.inspect[0, 0])
      teardown
    end
  end

  # -- not processed

  test "no connection is tried once more, and then unreachable" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    publisher("http://127.0.0.1:#{port}/")
    error = assert_raises(P::Unreachable) { publish }
    refute error.outcome_unknown?
    assert_includes error.message, "http://127.0.0.1:#{port}/"
    assert_equal 1, @pauses.size
  end

  test "a hub that comes back in between is reached" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    publisher("http://127.0.0.1:#{port}/")
    server = nil
    @pauses.define_singleton_method(:<<) do |seconds|
      server = TCPServer.new("127.0.0.1", port)
      Thread.new { ScriptedServer::Peer.new(server.accept, []).answer_all(200, "#id") }
      super(seconds)
    end
    assert_equal "#id", publish
  ensure
    server&.close
  end

  test "names that do not resolve, sockets that are not there and full queues are unreachable" do
    Dir.mktmpdir do |folder|
      publisher("unix:#{folder}/none.sock")
      assert_raises(P::Unreachable) { publish }
      listener = Socket.new(:UNIX, :STREAM)
      listener.bind(Socket.sockaddr_un("#{folder}/full.sock"))
      listener.listen(0)
      waiting = UNIXSocket.new("#{folder}/full.sock")
      endpoint = P::Endpoint.new("unix:#{folder}/full.sock", open_timeout: 0.02, read_timeout: 1, write_timeout: 1)
      assert_raises(Net::OpenTimeout) { endpoint.connection.start }
      waiting.close
      listener.close
    end
    publisher("http://does-not-exist.invalid/")
    assert_raises(P::Unreachable) { publish }
  end

  test "a hub that says not now is asked again, when it asks for it" do
    [408, 425, 429, 503].each do |status|
      serve(lambda do |peer|
        peer.read_request
        peer.answer(status, "", "retry-after" => "3")
        peer.answer_all(200, "#id")
      end)
      publisher
      assert_equal "#id", publish
      assert_equal [3.0], @pauses
      assert_equal 1, keys.uniq.size
      teardown
      @pauses = []
    end
  end

  test "without a Retry-After the pauses grow" do
    serve(->(peer) { peer.answer_all(503, "") })
    publisher(retries: 4)
    assert_raises(P::Refused) { publish }
    assert_equal 5, @server.requests.size
    @pauses.each_with_index { |pause, index| assert_includes (0.05 * 2**index)..(0.1 * 2**index), pause }
  end

  test "a Retry-After beyond the caller's time raises at once and tells it" do
    serve(->(peer) { peer.answer_all(429, "", "retry-after" => "60") })
    publisher
    error = assert_raises(P::Refused) { publish }
    assert_equal [429, 60.0], [error.status, error.retry_after]
    assert_predicate error, :transient?
    assert_empty @pauses
  end

  # -- unknown

  DOUBTFUL = {
    "reset" => RESET,
    "closed without an answer" => ->(peer) { peer.read_request },
    "half a head" => lambda do |peer|
      peer.read_request
      peer.write("HTTP/1.1 200 OK\r\nContent-")
    end,
    "half an id" => lambda do |peer|
      peer.read_request
      peer.answer(200, "#i", "content-length" => 3)
    end,
    "half a chunk" => lambda do |peer|
      peer.read_request
      peer.answer(200, "3\r\n#i", "transfer-encoding" => "chunked", "content-length" => nil)
    end,
    "no HTTP" => lambda do |peer|
      peer.read_request
      peer.write("SSH-2.0-x\r\n")
    end,
    "bad gateway" => ->(peer) { peer.answer_all(502, "") },
    "gateway timeout" => ->(peer) { peer.answer_all(504, "") },
    "failed in the middle" => ->(peer) { peer.answer_all(500, "") },
    "another gateway's status" => ->(peer) { peer.answer_all(520, "") }
  }.freeze

  DOUBTFUL.each do |name, step|
    test "an outcome that is not known is said to be so, and nothing is sent twice: #{name}" do
      serve(step, ANSWER)
      publisher
      error = assert_raises(P::OutcomeUnknown) { publish }
      assert error.outcome_unknown?
      assert_match(/may have been published or not/, error.message)
      assert_equal 1, @server.requests.size
    end

    test "a hub that honours Idempotency-Key gets the same publish again, with the same key: #{name}" do
      first = lambda do |peer|
        peer.read_request
        peer.answer(200, "#first", OURS)
        step.call(peer)
      end
      serve(first, ANSWER)
      publisher(retry_unknown: :auto)
      publish
      # A gateway's answer does not end the connection: the next attempt finds the same.
      if name.match?(/gateway|middle/)
        assert_raises(P::OutcomeUnknown) { publish }
        assert_equal [1, 3], [keys.drop(1).uniq.size, keys.drop(1).size]
      else
        assert_equal "#id", publish
        assert_equal [1, 2], [keys.drop(1).uniq.size, keys.drop(1).size]
      end
      refute_equal keys[0], keys[1]
    end
  end

  test "no answer in time is an unknown outcome" do
    serve(lambda do |peer|
      peer.read_request
      peer.wait_for_close
    end)
    publisher(read_timeout: 0.05)
    assert_raises(P::OutcomeUnknown) { publish }
    Timeout.timeout(60) { sleep 0.005 until @server.requests.any? }
    assert_equal [1, 1], [@server.requests.size, @server.connections]
  end

  test "where it was asked for, any hub gets it again; where it was forbidden, ours does not" do
    serve(RESET, ANSWER)
    publisher(retry_unknown: true)
    assert_equal "#id", publish
    teardown
    ours = lambda do |peer|
      peer.read_request
      peer.answer(200, "#1", OURS)
      RESET.call(peer)
    end
    serve(ours, ANSWER)
    publisher(retry_unknown: false)
    publish
    assert_raises(P::OutcomeUnknown) { publish }
    assert_equal 2, @server.requests.size
  end

  test "what a gateway answers does not make a hub ours, nor unmake it" do
    serve(lambda do |peer|
      peer.read_request
      peer.answer(404, "", OURS)
      RESET.call(peer)
    end, ANSWER)
    publisher
    assert_raises(P::Refused) { publish }
    assert_raises(P::OutcomeUnknown) { publish }
    teardown

    serve(lambda do |peer|
      peer.read_request
      peer.answer(200, "#1", OURS)
      peer.read_request
      peer.answer(403, "")
      RESET.call(peer)
    end, ANSWER)
    publisher
    publish
    assert_raises(P::Refused) { publish }
    assert_equal "#id", publish
  end

  test "the repetition says which memory of keys it relies on" do
    serve(lambda do |peer|
      peer.read_request
      peer.answer(200, "#1", "hikyaku-idempotency" => "boot-7")
      RESET.call(peer)
    end, ANSWER)
    publisher
    publish
    publish
    assert_equal [nil, nil, "boot-7"], @server.requests.map { |request| request["hikyaku-idempotency"] }
  end

  test "once in doubt, a later failure cannot tell that nothing was published" do
    [->(peer) { peer.answer_all(403, '{"detail":"no"}', "content-type" => "application/problem+json") },
      ->(peer) { peer.answer_all(429, "", "retry-after" => "99") }].each do |step|
      serve(RESET, step)
      publisher(retry_unknown: true)
      error = assert_raises(P::OutcomeUnknown) { publish }
      assert_includes [403, 429], error.status
      assert_match(/may have been published or not.*; trying again: .*refused the update/, error.message)
      teardown
    end
    serve(RESET)
    publisher(retry_unknown: true)
    pauses = @pauses.clear
    listener = @server
    pauses.define_singleton_method(:<<) do |seconds|
      listener.close
      super(seconds)
    end
    error = assert_raises(P::OutcomeUnknown) { publish }
    assert_match(/cannot be reached/, error.message)
    assert_equal 2, pauses.size, "a hub that restarts is waited for, as often as allowed"
  end

  test "attempts are bounded" do
    serve(RESET)
    publisher(retry_unknown: true, retries: 3)
    assert_raises(P::OutcomeUnknown) { publish }
    assert_equal [4, 3], [@server.requests.size, @pauses.size]
  end

  # -- tokens

  test "after a 401 the publish is repeated once, with a new token" do
    serve(lambda do |peer|
      while (request = peer.read_request)
        (request["authorization"] == "Bearer t2") ? peer.answer(200, "#id") : peer.answer(401, "")
      end
    end)
    count = 0
    publisher(tokens: P::TokenSource.new(-> { "t#{count += 1}" }))
    assert_equal "#id", publish
    assert_equal "#id", publish
    assert_equal ["Bearer t1", "Bearer t2", "Bearer t2"], @server.requests.map { |request| request["authorization"] }
    assert_empty @pauses
  end

  test "a token that is refused again, or cannot be renewed, is an error" do
    serve(->(peer) { peer.answer_all(401, "") })
    publisher(tokens: P::TokenSource.new(-> { "t" }))
    assert_equal 401, assert_raises(P::Refused) { publish }.status
    publisher(tokens: P::TokenSource.new("t"))
    assert_raises(P::Refused) { publish }
    assert_equal 3, @server.requests.size
  end

  # -- TLS and proxies

  test "the hub's certificate is verified, and its name" do
    certificate = ScriptedServer.certificate("localhost")
    Dir.mktmpdir do |folder|
      File.write("#{folder}/ca.pem", certificate.first.to_pem)
      serve(ANSWER, tls: certificate)
      publisher(@server.url("localhost"))
      assert_match(/certificate/, assert_raises(P::Unreachable) { publish }.message)
      assert_empty @pauses
      publisher(@server.url("127.0.0.1"), ca_file: "#{folder}/ca.pem")
      assert_raises(P::Unreachable) { publish }
      assert_empty @server.requests
      publisher(@server.url("localhost"), ca_file: "#{folder}/ca.pem")
      connections = @server.connections
      3.times { assert_equal "#id", publish }
      assert_equal 1, @server.connections - connections
    end
  end

  test "a proxy of the environment is used, each for its scheme, and not for this machine" do
    serve(lambda do |peer|
      while (request = peer.read_request)
        (request.verb == "CONNECT") ? peer.answer(403, "") : peer.answer(200, "#id")
      end
    end)
    proxy = "http://user:p%40ss@127.0.0.1:#{@server.port}"
    with_environment("http_proxy" => proxy, "https_proxy" => nil, "no_proxy" => "direct.invalid") do
      publisher("http://hub.invalid/h")
      publish
      request = @server.requests.last
      assert_equal ["http://hub.invalid/h", "hub.invalid"], [request.target, request["host"]]
      assert_equal "user:p@ss", request["proxy-authorization"].delete_prefix("Basic ").unpack1("m")
      publisher("http://direct.invalid/")
      assert_raises(P::Unreachable) { publish }
      publisher("https://hub.invalid/")
      assert_raises(P::Unreachable) { publish }
      assert_equal 1, @server.requests.size
    end
    with_environment("http_proxy" => nil, "https_proxy" => proxy) do
      publisher("https://hub.invalid/")
      assert_raises(P::Unreachable) { publish }
      assert_equal ["CONNECT", "hub.invalid:443"], @server.requests.last.then { |request| [request.verb, request.target] }
    end
  end

  private

  def with_environment(values)
    before = values.to_h { |name, _| [name, ENV[name]] }
    values.each { |name, value| ENV[name] = value }
    yield
  ensure
    before.each { |name, value| ENV[name] = value }
  end
end
