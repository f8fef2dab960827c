# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/client/event_source"
require "hikyaku/client/publisher"
require "hikyaku/client/publisher/token_mint"
require "hikyaku/server"
require "hikyaku/web"
require "logger"
require "puma"
require "puma/server"
require "support/scripted_server"
require "timeout"

# Publisher and EventSource against the hub of this project.
class PublisherHikyakuHubTest < Minitest::Test
  KEY = "0123456789abcdef0123456789abcdef"
  TOPIC = "https://example.com/books/1"

  def start(listen: "127.0.0.1:0", **settings)
    config = Hikyaku::Config.new(listen: listen, publisher_key: KEY, subscriber_key: KEY, anonymous: true, **settings)
    @server = Hikyaku::Server.new(config, logger: Logger.new(nil)).start
  end

  def publisher(url = @server.url, **settings)
    @publisher = Hikyaku::Publisher.new(url, key: KEY, audience: @server.config.resource_identifier, **settings)
  end

  # Events come into a queue; returns when the stream is open.
  def subscribe(url = @server.url, **settings)
    opened = Queue.new
    @events = Queue.new
    @source = Hikyaku::EventSource.new(url, on_open: -> { opened << true }, **settings)
    @reader = Thread.new { @source.each { |event| @events << event } }
    opened.pop
  end

  def event = Timeout.timeout(60) { @events.pop }

  def teardown
    @source&.close
    @reader&.join(5)
    @publisher&.close
    @relay&.close
    @server&.stop
  end

  test "what is published over HTTP arrives, with every field" do
    start
    subscribe(params: {match_urlpattern: "https://example.com/books/:id"})
    id = publisher.publish([TOPIC, "b"], "zwei\r\nZeilen ü", type: "kind", id: "urn:x:1")
    assert_equal ["kind", "zwei\nZeilen ü", "urn:x:1", "urn:x:1"], [*event.to_a, id]
    id = @publisher.publish(TOPIC, {n: 1})
    assert_equal ["message", '{"n":1}', id], event.to_a
  end

  test "a Unix socket serves both, without settings beyond the key" do
    Dir.mktmpdir do |folder|
      config = Hikyaku::Config.new(listen: "unix:#{folder}/hub.sock", publisher_key: KEY, anonymous: true)
      web = Hikyaku::Web.new(config)
      puma = Puma::Server.new(web, nil, supported_http_methods: :any, log_writer: Puma::LogWriter.null, max_threads: 2)
      puma.add_unix_listener("#{folder}/hub.sock")
      puma.run
      subscribe("unix:#{folder}/hub.sock", method: :query, params: {match: TOPIC})
      @publisher = Hikyaku::Publisher.new("unix:#{folder}/hub.sock", key: KEY)
      assert_equal ["message", "1", @publisher.publish(TOPIC, "1")], event.to_a
    ensure
      puma.stop(true)
      web.shutdown
      @source.close
    end
  end

  test "a refusal of the hub says what was wrong" do
    start
    error = assert_raises(Hikyaku::Publisher::Refused) { publisher.publish("a\u200Bb") }
    assert_equal 400, error.status
    assert_match(/topic/, error.detail)
    error = assert_raises(Hikyaku::Publisher::Refused) { Hikyaku::Publisher.new(@server.url, key: "x" * 32).publish(TOPIC) }
    assert_equal 401, error.status
  end

  # Mercure draft-08, section "Reconnection".
  test "a reader that comes back gets what it missed" do
    start
    first = publisher.publish(TOPIC, "1")
    @publisher.publish(TOPIC, "2")
    subscribe(params: {match: TOPIC}, last_event_id: first)
    assert_equal "2", event.data
    assert_equal first, @source.response_headers["mercure-last-event-id"]
  end

  test "a reader finds a hub that was restarted, by itself" do
    start
    subscribe(params: {match: TOPIC}, retry_seconds: 0)
    publisher.publish(TOPIC, "1")
    assert_equal "1", event.data
    @server.stop
    start(listen: @server.config.listen)
    # What is published until the reader is back is what it asks for with its last event.
    publisher(retry_unknown: true).publish(TOPIC, "2")
    received = []
    received << event.data until received.last == "2"
    assert_equal "2", received.last
  end

  test "an answer that is lost on its way does not publish twice" do
    start
    subscribe(params: {match: TOPIC})
    port = @server.config.address.port
    forward = lambda do |request|
      Net::HTTP.start("127.0.0.1", port) do |http|
        http.post(request.target, request.body, request.headers.except("host", "content-length"))
      end
    end
    pass = lambda do |peer|
      while (request = peer.read_request)
        answer = forward.call(request)
        peer.answer(answer.code, answer.body, "hikyaku-idempotency" => answer["hikyaku-idempotency"])
      end
    end
    lose = lambda do |peer|
      request = peer.read_request
      answer = forward.call(request)
      peer.answer(answer.code, answer.body, "hikyaku-idempotency" => answer["hikyaku-idempotency"])
      forward.call(peer.read_request)
      peer.reset
    end
    @relay = ScriptedServer.new(lose, pass)
    publisher(@relay.url)
    first = @publisher.publish(TOPIC, "1")
    second = @publisher.publish(TOPIC, "2")
    third = @publisher.publish(TOPIC, "3")
    assert_equal [["1", first], ["2", second], ["3", third]], Array.new(3) { event }.map { |each| [each.data, each.id] }
    assert_empty @events
    assert_equal 4, @relay.requests.size
  end

  test "the streams of a subject are closed from afar" do
    start
    subscribe(params: {match: TOPIC}, token: Hikyaku::Publisher::TokenMint.new(key: KEY, issuer: "hikyaku", audience: @server.config.resource_identifier,
      subject: "urn:user:é/1").method(:call).to_proc)
    assert_equal 1, publisher.disconnect(subject: "urn:user:é/1")
    assert_equal 0, @publisher.disconnect(subject: "nobody")
  end
end
