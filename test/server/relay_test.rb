# frozen_string_literal: true

require "hikyaku/server/relay"
require "rack/lint"
require "support/protocol_smoke"
require "support/protocol_test"
require "support/relayed_hub"
require "support/self_signed"
require "timeout"

# The hub's process, a worker before it that is a relay, and clients.
class RelayTest < Protocol::Test
  include ProtocolSmoke

  QUERY = {"content-type" => "application/x-www-form-urlencoded"}.freeze

  def start(**settings) = @own = RelayedHub.new(**settings)

  test "the whole protocol, the connections of subscribers being handed over" do
    start
    smoke
  end

  test "the whole protocol over TLS, where the streams are given on" do
    start(tls: SelfSigned.context)
    smoke
  end

  test "the whole protocol on a server that has something to write to, and no more" do
    start(wrap: ->(relay) { ->(env) { relay.call(env.except("puma.socket", "rack.hijack", "rack.hijack?")) } })
    smoke
  end

  test "what it answers passes Rack::Lint" do
    start(wrap: ->(relay) { Rack::Lint.new(->(env) { relay.call(env.except("puma.socket")) }) })
    smoke
  end

  test "whoever subscribes holds no thread" do
    start
    streams = Array.new(20) { follow(topic) }
    head = get("#{server.path}?match=a", method: "HEAD")
    assert_equal [200, nil], [head.status, head["content-length"]]
    publish(topic, "x")
    assert_equal ["x"], streams.map { |stream| stream.next.data }.uniq
  end

  test "requests for other paths go to the application behind, or nowhere" do
    start(app: ->(env) { [200, {}, ["app: #{env["PATH_INFO"]}"]] })
    %w[/ /.well-known/mercurex /.well-known/oauth-protected-resource /metrics /healthz].each { |path| assert_equal "app: #{path}", get(path).body }
    @own.stop
    start
    %w[/ /.well-known/mercurex /healthz].each { |path| assert_problem 404, get(path) }
  end

  test "a body that is far too large is refused before it comes" do
    start
    get(server.path, method: "HEAD") # by which it learns what hub there is
    ["POST #{server.path}", "GET #{server.path}?match=a", "POST #{server.path}/streams/x", "GET /.well-known/oauth-protected-resource#{server.path}"].each do |line|
      assert_problem 413, client.raw("#{line} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000000\r\nauthorization: Bearer #{publisher}\r\n\r\n"), line
    end
  end

  test "a hub that is mounted below a path is the same hub" do
    start(wrap: ->(relay) { ->(env) { relay.call(env.merge("SCRIPT_NAME" => server.path, "PATH_INFO" => env["PATH_INFO"].delete_prefix(server.path).then { |rest| rest.empty? ? "/" : rest })) } })
    stream = follow(topic)
    publish(topic, "x")
    assert_next "x", stream
    assert_problem 404, get("#{server.path}/y")
  end

  test "it is the hub that decides, and by the client's own address" do
    [{}, {tls: SelfSigned.context}].each do |options|
      start(max_connections_per_address: 1, anonymous: false, **options)
      assert_challenge 401, nil, subscribe("match" => topic)
      follow(topic, token: subscriber(topic))
      refused = subscribe({"match" => topic}, token: subscriber(topic), headers: {"x-forwarded-for" => "192.0.2.1"})
      assert_equal 429, refused.status, options.keys.inspect
      @own.stop
    end
    @own = nil
  end

  test "whose address the server knows better, the hub hears it" do
    start(max_connections_per_address: 1, trusted_proxies: ["127.0.0.1"], wrap: ->(relay) { ->(env) { relay.call(env.merge("REMOTE_ADDR" => env["HTTP_X_TEST"])) } })
    %w[192.0.2.1 192.0.2.2].each { |address| follow(topic, headers: {"x-test" => address, "x-forwarded-for" => "192.0.2.3"}) }
    assert_equal 429, subscribe({"match" => topic}, headers: {"x-test" => "192.0.2.1"}).status
  end

  test "a subscribe that is too large to be handed over is given on" do
    start
    body = "match=#{topic}&x=#{"y" * Hikyaku::Server::Handover::MAX_REQUEST_BYTES}"
    stream = subscribe({}, method: "QUERY", body: body)
    publish(topic, "x")
    assert_next "x", stream
  end

  test "a body that is larger than the hub takes is refused by the hub" do
    start(max_request_bytes: 2048, cors_origins: ["https://app.example"])
    response = post({"topic" => topic, "data" => "x" * 10_000}, headers: {"origin" => "https://app.example"})
    assert_problem 413, response
    assert_equal "https://app.example", response["access-control-allow-origin"]
    assert_problem 413, subscribe({}, method: "QUERY", body: "match=#{"x" * 4096}")
  end

  test "when the hub is away, everybody is told to try again, and then finds it" do
    [{}, {tls: SelfSigned.context}].each do |options|
      start(**options)
      publish(topic, "before")
      follow(topic)
      server.halt
      [-> { get("#{server.path}?match=a") }, -> { post({"topic" => topic}) }, -> { get(server.path, method: "HEAD") }, -> { subscribe({}, method: "QUERY", body: {"match" => topic}) }].each do |request|
        response = request.call
        assert_equal 503, response.status
        assert_equal "1", response["retry-after"]
      end
      response = get("#{server.path}?match=a", headers: {"accept" => "text/event-stream", "origin" => "https://app.example"})
      assert_equal [200, "text/event-stream"], [response.status, response["content-type"]], "an EventSource would not come back from 503"
      assert_match(/\Aretry: [1-4]\d{3}\n\n\z/, response.body)
      assert_equal %w[https://app.example true], [response["access-control-allow-origin"], response["access-control-allow-credentials"]]
      server.start
      stream = follow(topic)
      publish(topic, "after")
      assert_next "after", stream
      @own.stop
    end
    @own = nil
  end

  test "where no hub ever was, it says that there is none, and the application goes on; without the plugin, it says what to do" do
    Dir.mktmpdir do |path|
      folder = Hikyaku::Server::Sidecar::Folder.new(path)
      assert_equal 503, Hikyaku::Server::Relay.new(nil, folder: folder).call({"PATH_INFO" => "/.well-known/mercure"}).first
      assert_equal 204, Hikyaku::Server::Relay.new(->(_env) { [204, {}, []] }, folder: folder).call({"PATH_INFO" => "/"}).first
    end
    error = assert_raises(Hikyaku::ConfigError) { Hikyaku::Server::Relay.new.call({"PATH_INFO" => "/"}) }
    assert_match(/plugin :hikyaku/, error.message)
  end

  test "what was published, or not, is told when the hub goes away in between; what harms nobody is asked again" do
    mute do |folder, asked|
      relay = Hikyaku::Server::Relay.new(nil, folder: folder)
      env = {"REQUEST_METHOD" => "POST", "PATH_INFO" => "/.well-known/mercure", "rack.input" => StringIO.new("topic=a"), "CONTENT_TYPE" => QUERY["content-type"]}
      assert_equal 502, relay.call(env).first
      assert_equal 1, asked.size
      assert_equal 503, relay.call(env.merge("REQUEST_METHOD" => "OPTIONS")).first
      assert_equal 3, asked.size
      assert_equal 503, relay.call(env.merge("REQUEST_METHOD" => "GET")).first
      assert_equal 4, asked.size
    end
  end

  test "a change that may have been made is asked for again: made twice, it is as if it were once" do
    mute do |folder, asked|
      env = {"REQUEST_METHOD" => "POST", "PATH_INFO" => "/.well-known/mercure/streams/x", "rack.input" => StringIO.new("match=a"), "CONTENT_TYPE" => QUERY["content-type"]}
      assert_equal 503, Hikyaku::Server::Relay.new(nil, folder: folder).call(env).first
      assert_equal 2, asked.size
    end
  end

  {"handed over" => nil, "given on" => SelfSigned}.each do |way, tls|
    test "a stream that was #{way} is changed by what another request says to the hub" do
      start(tls: tls&.context)
      seen = publish(topic("b"), "seen")
      publish(topic("b"), "missed")
      stream = follow(topic("a"), headers: {"hikyaku-stream" => "1"})
      path = "#{server.path}/streams/#{stream["hikyaku-stream"]}"
      response = client.request("POST", path, headers: QUERY, body: form([["match", topic("a")], ["match", topic("b")], ["last_event_id", seen]]))
      assert_equal 204, response.status
      publish(topic("a"), "1")
      assert_equal %w[missed 1], stream.take(2).map(&:data)
      assert_problem 404, client.request("POST", "#{path}x", headers: QUERY, body: form("match" => topic("a")))
    end
  end

  test "streams that are given on end when the server is about to stop" do
    start(tls: SelfSigned.context)
    streams = Array.new(3) { follow(topic) }
    Hikyaku::Server::Relay.shutdown
    assert_equal [[], [], []], streams.map(&:rest)
    assert_equal 200, follow(topic).status
  end

  test "a client that goes away ends the stream that is given on to it" do
    start(tls: SelfSigned.context)
    follow(topic).tap(&:close)
    eventually do
      hub.publish(Hikyaku::Hub::Update.new(topics: topic, data: "x"))
      hub.stats[:subscribers].zero?
    end
  end

  private

  # A hub that reads, and goes away without an answer.
  def mute
    Dir.mktmpdir do |path|
      folder = Hikyaku::Server::Sidecar::Folder.new(path, temporary: true)
      folder.tell(path: "/.well-known/mercure", resource_identifier: "http://localhost/.well-known/mercure", hub_url: "http://localhost/.well-known/mercure", max_request_bytes: 1000)
      asked = []
      UNIXServer.open(folder.socket) do |server|
        thread = Thread.new { loop { server.accept.tap { |socket| asked << socket.readpartial(1000) }.close } }
        Timeout.timeout(60) { yield folder, asked }
      ensure
        thread&.kill
      end
    end
  end
end
