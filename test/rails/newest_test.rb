# frozen_string_literal: true

require "test_helper"
require "support/rails_settings"
require "support/free_port"
require "support/hub_server"
require "support/scripted_server"

# A hub in another process is asked for its newest event, for pages that are rendered now.
class NewestTest < Minitest::Test
  include RailsSettings

  KEYS = {publisher_key: AccessTokens::SECRETS[:publisher], subscriber_key: AccessTokens::SECRETS[:subscriber]}.freeze
  # Of a hub in which nothing was published yet.
  BEGINNING = /\A#[\w-]{11}\z/

  def setup
    @log = StringIO.new
    @now = 100.0
  end

  def teardown
    @server&.stop
  end

  test "it is the newest event, whoever published it, and an id that stands for the beginning where there is none" do
    newest = newest_of(serve(subscriptions: false))
    beginning = newest.call
    assert_equal [beginning, Encoding::UTF_8], newest.call.then { |answer| [answer, answer.encoding] }
    assert_match BEGINNING, beginning
    3.times do |n|
      id = publish("/news/#{n}")
      assert_equal [id, Encoding::UTF_8], newest.call.then { |answer| [answer, answer.encoding] }
    end
    assert_equal publish("/news", id: "木"), newest.call
    assert_empty @log.string
  end

  test "who begins after it misses nothing and gets nothing twice" do
    newest = newest_of(serve)
    publish("/news", data: "before")
    cursor = newest.call
    publish("/news", data: "after")
    assert_equal "after", following(cursor) { |stream| stream.next.data }
  end

  test "who begins in an empty hub gets what is published then, and in a hub that was restarted meanwhile is told a gap" do
    newest = newest_of(serve(subscriptions: false))
    cursor = newest.call
    publish("/news", data: "first")
    assert_equal [cursor, "first"], following(cursor) { |stream| [stream["mercure-last-event-id"], stream.next.data] }
    @server.stop
    serve(subscriptions: false)
    publish("/news", data: "after the restart")
    assert_equal ["earliest", "gap", "after the restart"], following(cursor) { |stream|
      [stream["mercure-last-event-id"], JSON.parse(stream.next.data)["type"], stream.next.data]
    }
  end

  test "of another empty hub, which knows but the header of the specification, it is what that says" do
    server = ScriptedServer.new(->(peer) { peer.read_request.then { peer.write("HTTP/1.1 200 OK\r\nMercure-Last-Event-ID: earliest\r\nContent-Length: 0\r\n\r\n") } })
    assert_equal "earliest", newest_of(server.url).call
    assert_empty @log.string
  ensure
    server&.close
  end

  test "it tells no id of a private event" do
    newest = newest_of(serve)
    publish("/secret", private: true, id: "urn:secret:1")
    refute_match(/secret/, newest.call)
  end

  test "a hub that lets nobody in without a token lets the application in" do
    newest = newest_of(serve(anonymous: false, subscriptions: false))
    assert_match BEGINNING, newest.call
  end

  test "with a key that the hub does not know there is none, the log says why, and the hub is left alone for a while" do
    newest = newest_of(serve(subscriptions: false), subscriber_key: "another secret of more than 32 bytes")
    assert_nil newest.call
    assert_match(/does not say which event is its newest.*it answers 401/, @log.string)
    refute_match(/secret|eyJ/, @log.string)
    @log.truncate(0)
    @now += 4.9
    assert_nil newest.call
    assert_empty @log.string
    @now += 0.2
    assert_nil newest.call
    refute_empty @log.string
  end

  test "without a hub there is none, at once, and it is asked again when it is back" do
    port = FreePort.pick
    newest = Hikyaku::Railtie::Newest.new("http://127.0.0.1:#{port}/.well-known/mercure", config, logger: Logger.new(@log), clock: -> { @now })
    assert_nil newest.call
    assert_match(/127\.0\.0\.1:#{port}.*does not say/, @log.string)
    serve(listen: "127.0.0.1:#{port}", subscriptions: false)
    assert_nil newest.call
    @now += 6
    assert_match BEGINNING, newest.call
  end

  test "a server that answers something else gives none" do
    {
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" => /answers 200 without mercure-last-event-id/, "HTTP/1.1 404 Not Found\r\n\r\n" => /answers 404/,
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n\r\n" => /answers 307/, "SSH-2.0-x\r\n" => /does not say/, "" => /does not say/
    }.each do |answer, reason|
      server = ScriptedServer.new(->(peer) { peer.read_request.then { peer.write(answer) } })
      newest = newest_of(server.url)
      assert_nil newest.call, answer
      assert_match(reason, @log.string)
    ensure
      server&.close
    end
  end

  test "no token goes over a network in the clear" do
    newest = Hikyaku::Railtie::Newest.new("http://hub.example.com/x", config)
    assert_nil newest.instance_variable_get(:@tokens).token
    newest = Hikyaku::Railtie::Newest.new("http://hub.example.com/x", config, insecure: true)
    assert newest.instance_variable_get(:@tokens).token
  end

  test "an application knows where to ask" do
    in_environment("production") do
      assert_nil settings.newest
      assert_match(%r{http://hub\.example\.com/x}, settings(hub: "http://hub.example.com/x").newest.inspect)
      assert_match(%r{unix:/run/hub\.sock}, settings(hub: {url: "unix:/run/hub.sock", retries: 1}).newest.inspect)
    end
    assert_nil settings(hub: "http://hub.example.com/x").newest, "tests talk to nobody"
  end

  private

  def serve(**settings)
    @server = HubServer.new(**settings)
    "http://127.0.0.1:#{@server.port}#{@server.path}"
  end

  def config(**more) = Hikyaku::Config.new(issuer: AccessTokens::ISSUER, resource_identifier: AccessTokens::HUB_URL, **KEYS, **more)

  def newest_of(url, **more) = Hikyaku::Railtie::Newest.new(url, config(**more), logger: Logger.new(@log), clock: -> { @now })

  def following(cursor)
    stream = @server.client.stream("GET", "#{@server.path}?#{URI.encode_www_form(match: "/news", last_event_id: cursor)}")
    yield stream
  ensure
    stream&.close
  end

  # Not by Hikyaku.publish, which is recorded here.
  def publish(topic, **options) = Hikyaku::Publisher.new(@server.hub).publish(topic, options.delete(:data) || "x", **options)
end
