# frozen_string_literal: true

require "test_helper"
require "active_support"
require "active_support/notifications"
require "hikyaku/http/client"
require "support/misbehaving"

# What an instrumenter is told.
class HTTPClientNoticesTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  NAME = "request.hikyaku_http"
  private_constant :HTTP, :NAME

  test "each request is told once, with its answer, and how long it took" do
    serve do |server, client|
      events = heard { client.post(server.url("/a"), body: "x") }
      event = events.first
      assert_equal [NAME, 1], [event.name, events.size]
      assert_equal({method: "POST", url: server.url("/a"), status: 200, bytes: 8, cached: false, error: nil}, event.payload.except(:seconds))
      assert_operator event.payload[:seconds], :>, 0
      assert_operator event.duration, :>, 0
    end
  end

  test "of many at once each is told, and of those that were begun, when they are waited for" do
    serve do |server, client|
      urls = Array.new(10) { |n| server.url("/#{n}") }
      assert_equal urls, heard { client.get(*urls) }.map { |event| event.payload[:url] }
      assert_equal urls.sort, heard { client.get(*urls) { |_| nil } }.map { |event| event.payload[:url] }.sort
      fetches = urls.map { |url| client.fetch(url) }
      assert_equal urls, heard { 2.times { fetches.each(&:value) } }.map { |event| event.payload[:url] }
      assert_equal [["GET", 200], ["HEAD", 200]], heard { client.get(urls.first) && client.head(urls.first) }.map { |event| event.payload.values_at(:method, :status) }
    end
  end

  test "two who wait for the same make one of it" do
    serve do |server, client|
      fetch = client.fetch(server.url("/a"))
      assert_equal 1, heard { Array.new(4) { Thread.new { fetch.value } }.each(&:join) }.size
    end
  end

  test "a stream is told when its head is there" do
    serve do |server, client|
      events = heard { client.open(server.url("/a")) { |stream| stream.status && stream.read } }
      assert_equal [["GET", 200, nil]], events.map { |event| event.payload.values_at(:method, :status, :bytes) }
      stream = client.open(server.url("/a"))
      client.get(server.url("/b")) until stream.satisfied?
      assert_equal 1, heard { stream.read }.size
    end
  end

  test "what went wrong is told by its kind, and a status as what it is" do
    serve(raise_for_status: true) do |server, client|
      seen = heard do
        assert_raises(HTTP::ConnectFailed) { client.get("http://127.0.0.1:1/a") }
        assert_raises(HTTP::BadStatus) { client.get(server.url("/404")) }
        assert_raises(HTTP::BadStatus) { client.open(server.url("/404"), &:status) }
      end
      assert_equal [["Hikyaku::HTTP::ConnectFailed", nil], ["Hikyaku::HTTP::BadStatus", 404], ["Hikyaku::HTTP::BadStatus", 404]], seen.map { |event| event.payload.values_at(:error, :status) }
    end
  end

  test "nothing of it is secret: no query, no name, no field" do
    serve do |server, client|
      url = server.url("/a?token=s3cret").sub("//", "//ada:s3cret@")
      dead = "http://ada:s3cret@127.0.0.1:1/?s3cret"
      events = heard do
        client.post(url, json: {s3cret: 1}, headers: {"Authorization" => "s3cret"}, params: {a: "s3cret"})
        assert_raises(HTTP::ConnectFailed) { client.get(dead) }
      end
      assert_equal [server.url("/a"), "http://127.0.0.1:1/"], events.map { |event| event.payload[:url] }
      refute_match(/s3cret|ada/, events.map(&:payload).inspect)
    end
  end

  test "what came from the cache says so" do
    Misbehaving.run(Misbehaving::AsTold.new { "HTTP/1.1 200 x\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok" }) do |server|
      client = client(cache: true)
      assert_equal [false, true], heard { 2.times { client.get(server.url) } }.map { |event| event.payload[:cached] }
    end
  end

  test "whoever is told may ask for something himself, and what he raises is his who waits" do
    serve do |server, client|
      asking = Object.new
      asking.define_singleton_method(:instrument) { |_, _, &block| block.call.tap { client.get(server.url("/from-there")) } }
      assert_equal Misbehaving.body_of("/a"), client(instrumenter: asking).get(server.url("/a")).body
      raising = Object.new
      raising.define_singleton_method(:instrument) { |_, _, &block| block.call && raise("no") }
      other = client(instrumenter: raising)
      assert_equal "no", assert_raises(RuntimeError) { other.get(server.url("/a")) }.message
    end
  end

  test "without one nothing is told, and what is none is refused" do
    Misbehaving.run(:well_behaved) { |server| assert_empty heard { client(instrumenter: nil).get(server.url) } }
    [-> { client(instrumenter: 5) }, -> { HTTP.instrumenter = 5 }].each do |give|
      assert_match(/the instrumenter is a Integer; it has to have the method instrument\(name, payload\)/, assert_raises(ArgumentError, &give).message)
    end
    assert_nil HTTP.instrumenter
  end

  test "the one of all clients is that of those which are given none" do
    HTTP.instrumenter = ActiveSupport::Notifications
    Misbehaving.run(:well_behaved) do |server|
      assert_equal 1, heard { HTTP::Client.new(memory: nil, proxy: nil).get(server.url) }.size
      assert_empty heard { HTTP::Client.new(memory: nil, proxy: nil, instrumenter: nil).get(server.url) }
    end
  ensure
    HTTP.instrumenter = nil
  end

  private

  def client(instrumenter: ActiveSupport::Notifications, **options) = HTTP::Client.new(memory: nil, proxy: nil, timeouts: {total: 120}, instrumenter: instrumenter, **options)

  def serve(**options)
    way = Misbehaving::AsTold.new { |request, _| "HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n" if request.path == "/404" }
    Misbehaving.run(way) do |server|
      client = client(**options)
      yield server, client
    ensure
      client&.close
    end
  end

  # @return [Array<ActiveSupport::Notifications::Event>]
  def heard(&block)
    events = Queue.new
    ActiveSupport::Notifications.subscribed(->(event) { events << event }, NAME, &block)
    Array.new(events.size) { events.pop }
  end
end
