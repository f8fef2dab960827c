# frozen_string_literal: true

require "hikyaku/server"
require "logger"
require "rack/lint"
require "rack/mock_request"
require "support/protocol_smoke"
require "support/protocol_test"
require "support/running_hub"
require "support/self_signed"
require "tmpdir"

# The same protocol, however the hub is served.
class Protocol::ServersTest < Protocol::Test
  include ProtocolSmoke

  test "on Puma, with the socket" do
    start
    smoke
  end

  test "as Rack has it: every answer and every stream passes Rack::Lint" do
    start(wrap: ->(web) { Rack::Lint.new(web) })
    smoke
  end

  test "over TLS, where Puma keeps the socket to itself" do
    start(tls: SelfSigned.context)
    smoke
  end

  # Hikyaku::Server as the tests' server.
  StandAlone = Struct.new(:process, :client) do
    def hub = process.app.hub

    def path = hub.hub_path

    def stop = process.stop
  end

  test "by Hikyaku::Server, on TCP" do
    serve("127.0.0.1:0")
    smoke
  end

  test "by Hikyaku::Server, on a Unix socket, whose clients have no address to count" do
    Dir.mktmpdir do |folder|
      serve("unix:#{folder}/hub.sock", unix: "#{folder}/hub.sock", max_connections_per_address: 1)
      smoke
      server.stop
    end
  end

  test "by exe/hikyaku, in a process of its own" do
    keys = AccessTokens::SECRETS.flat_map { |role, secret| ["--#{role}-key", secret] }
    process = RunningHub.new("--resource-identifier", AccessTokens::HUB_URL, "--issuer", AccessTokens::ISSUER, *keys)
    @own = Struct.new(:process, :client, :path) { def stop = process.stop }.new(process, HttpClient.new(process.port), "/.well-known/mercure")
    smoke
  end

  test "in developer mode, with the secret that everybody knows and the hub's address as audience" do
    process = Hikyaku::Server.new(Hikyaku::Config.new(dev: true, listen: "127.0.0.1:0"), logger: Logger.new(nil)).start
    @own = StandAlone.new(process, HttpClient.new(process.config.address.port))
    known = {key: Hikyaku::Config::Settings::DEVELOPMENT_SECRET, iss: "hikyaku", aud: process.url}
    stream = subscribe({"match" => topic, "topic" => topic("{x}")}, token: subscriber(topic, **known))
    publish(topic, "private", private: "on", token: token(:publisher, "*", **known))
    publish(topic("y"), "legacy", token: legacy_token(:publisher, {"publish" => ["*"]}, key: known[:key]))
    assert_equal %w[private legacy], stream.take(2).map(&:data)
    assert_equal 401, post({"topic" => topic}, token: publisher).status
  end

  test "when the hub stops, streams end with a time to come back, and no new ones begin" do
    start
    streams = Array.new(3) { follow(topic) }
    hub.publish(Hikyaku::Hub::Update.new(topics: topic, data: "last"))
    HubServer::OWN ? server.stop : server.web.shutdown
    streams.each do |stream|
      assert_equal ["last"], stream.rest.map(&:data)
      assert_kind_of Integer, stream.retry_after
    end
    assert_operator streams.map(&:retry_after).uniq.size, :>, 1, "not all at once"
    return assert_raises(Errno::ECONNREFUSED) { subscribe("match" => topic) } if HubServer::OWN
    assert_problem 503, subscribe("match" => topic)
  end

  # What answers at the level of Rack, without a server.
  ANSWERS = {
    ["GET", "?match=a"] => 200, ["HEAD", "?match=a"] => 200, ["QUERY", "?match=a"] => 200, ["GET", ""] => 400, ["GET", "?match_x=a"] => 400, ["OPTIONS", ""] => 204, ["PUT", ""] => 405,
    ["GET", "?match=a&last_event_id=earliest"] => 200, ["GET", "?match=a&last_event_id"] => 200, ["GET", "/subscriptions"] => 401, ["GET", "/x"] => 404, ["DELETE", "/subscribers/a"] => 401,
    ["HEAD", "/subscriptions"] => 401, ["POST", ""] => 401, ["OPTIONS", "/subscriptions"] => 204
  }.freeze

  test "answers pass Rack::Lint also where nobody reads them (Rack 3)" do
    web = HubServer.shared(cors_origins: ["https://app.example"]).web
    app = Rack::Lint.new(web)
    before = web.hub.stats[:subscribers]
    ANSWERS.each do |(method, rest), status|
      [{}, {"HTTP_ORIGIN" => "https://app.example"}, {"HTTP_AUTHORIZATION" => "Bearer x"}, {"SERVER_PROTOCOL" => "HTTP/2"}].each do |more|
        env = Rack::MockRequest.env_for("http://hub.example.com#{web.hub.hub_path}#{rest}", {method: method}.merge(more))
        answered, headers, body = app.call(env)
        # Where a token counts, a bad one is the first thing that is wrong.
        expected = (more.key?("HTTP_AUTHORIZATION") && [200, 400].include?(status)) ? 401 : status
        assert_equal expected, answered, [method, rest, more].inspect
        assert_equal more["SERVER_PROTOCOL"] == "HTTP/2", !headers.key?("connection"), "HTTP/2 has no such field" if body.respond_to?(:call)
        body.each { |part| assert_kind_of String, part } if body.respond_to?(:each)
        body.close if body.respond_to?(:close)
      end
    end
    assert_equal before, web.hub.stats[:subscribers], "a stream that was never begun is no subscriber"
  end

  # What another server may give: something to write to, and no more.
  class Sink
    attr_reader :written

    def initialize(&on_write)
      @on_write = on_write
      @written = Queue.new
      @closed = false
    end

    def write(bytes)
      @on_write&.call(bytes)
      @written << bytes.dup
      bytes.bytesize
    end

    def close = @closed = true

    def closed? = @closed

    def text(parts) = Array.new(parts) { part }.join

    private

    def part
      deadline = HttpClient.now + HttpClient::PATIENCE
      sleep 0.002 while @written.empty? && HttpClient.now < deadline
      @written.pop(true)
    end
  end

  test "a server that gives something to write to gets the stream written, on its own thread" do
    sink = Sink.new
    thread = run_stream(sink)
    assert_equal ":\n\n", sink.text(1)
    id = publish(topic, "x")
    assert_equal "id: #{id}\ndata: x\n\n", sink.text(1)
    hub.disconnect(subject: "user-1")
    assert_match(/\Aretry: \d+\n\n\z/, sink.text(1))
    assert thread.join(60)
    assert_predicate sink, :closed?
    assert_equal 0, watching
  end

  test "a stream that fails when it is written to ends the subscription, and harms nobody" do
    [IOError, Errno::EPIPE, Errno::ECONNRESET].each do |error|
      writes = 0
      sink = Sink.new { raise error if (writes += 1) == 2 }
      thread = run_stream(sink)
      sink.text(1)
      other = follow(topic)
      publish(topic, "x")
      assert thread.join(60), error.name
      assert_next "x", other
      assert_predicate sink, :closed?
      other.close
      eventually { watching.zero? }
    end
  end

  test "a stream that takes its time holds up nobody but itself" do
    gate = Queue.new
    writes = 0
    sink = Sink.new { gate.pop if (writes += 1) == 2 }
    thread = run_stream(sink)
    sink.text(1)
    other = follow(topic)
    100.times { |i| publish(topic, i.to_s) }
    assert_equal (0...100).map(&:to_s), other.take(100).map(&:data)
    gate << :go
    text = +""
    text << sink.text(1) until text.include?("data: 99\n")
    assert_equal (0...100).map(&:to_s), text.scan(/^data: (.*)$/).flatten
    hub.disconnect(subject: "user-1")
    assert thread.join(60)
  end

  test "a stream whose end comes before its connection is told when to come back, and ended" do
    start
    [false, true].each do |running|
      follow(topic("other")).comments_until(1) if running
      _, _, body = call_web
      assert_equal 1, hub.disconnect(subject: "user-1")
      eventually { watching.zero? } if running
      sink = Sink.new
      thread = Thread.new { body.call(sink).then { body.close } }
      assert thread.join(60)
      assert_match(/\A(:\n\n)?retry: \d+\n\n\z/, sink.text(1))
      assert_predicate sink, :closed?
      eventually { watching.zero? }
    end
  end

  test "a body that is closed without having been called leaves nothing behind (Rack: close)" do
    before = watching
    _, _, body = call_web
    assert_equal before + 1, watching
    body.close
    assert_equal before, watching
  end

  private

  def watching = hub.subscriptions(type: "exact", pattern: topic).last.size

  def call_web
    env = Rack::MockRequest.env_for("http://hub.example.com#{server.path}?#{form("match" => topic)}", "HTTP_AUTHORIZATION" => "Bearer #{subscriber(topic)}")
    server.web.call(env)
  end

  def run_stream(sink)
    status, _, body = call_web
    assert_equal 200, status
    Thread.new { body.call(sink).then { body.close } }
  end

  def serve(listen, unix: nil, **settings)
    config = Hikyaku::Config.new(**HubServer::SETTINGS, listen: listen, **settings)
    process = Hikyaku::Server.new(config, logger: Logger.new(nil)).start
    @own = StandAlone.new(process, HttpClient.new(unix ? nil : process.config.address.port, unix: unix))
  end
end
