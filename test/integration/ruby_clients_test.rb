# frozen_string_literal: true

require "support/integration"
require "hikyaku/client/event_source"
require "hikyaku/client/publisher"

# The project's own clients against the hub's own process: the library's, and the commands as processes.
class RubyClientsTest < Integration::Test
  include AccessTokens

  BOOK = Integration::BOOK
  KEY = "a secret of a deployment, of more than 32 bytes"

  # @return [Thread::Queue] of the events of a source, read in a thread of its own
  def read(source)
    events = Thread::Queue.new
    thread = Thread.new { source.each { |event| events << event } }
    thread.report_on_exception = false
    ending(Closing.new { source.close.then { thread.join(60) || flunk("the source did not end") } })
    events
  end

  Closing = Struct.new(:block) do
    def initialize(&block) = super(block)

    def close = block.call
  end

  def start_with_key(*flags)
    start_hub("--no-dev", "--issuer", "https://shop.example.com", "--publisher-key", KEY, "--subscriber-key", KEY, "--subscriptions", *flags)
  end

  def publisher(hub, **options)
    ending(Hikyaku::Publisher.new(hub.url, key: KEY, issuer: "https://shop.example.com", **options))
  end

  def subscriber_token(hub, *topics, **claims)
    details = [detail(*topics, actions: ["subscribe"])]
    token(:subscriber, key: KEY, details: details, aud: hub.url, iss: "https://shop.example.com", **claims)
  end

  test "EventSource and Publisher: every field arrives, private updates too, by GET and by QUERY" do
    hub = start_with_key
    queues = %i[get query].map do |method|
      opened = Thread::Queue.new
      queue = read(Hikyaku::EventSource.new(hub.url, method: method, params: {match: BOOK, match_urlpattern: "https://example.com/authors/:id"},
        token: subscriber_token(hub, "*"), on_open: -> { opened << true }))
      opened.pop
      queue
    end
    publisher = publisher(hub)
    ids = [publisher.publish(BOOK, {title: "Dünen"}, private: true), publisher.publish("https://example.com/authors/7", "a\nb", type: "author", id: "urn:a")]
    queues.each do |queue|
      events = Array.new(2) { queue.pop }
      assert_equal [["message", '{"title":"Dünen"}'], ["author", "a\nb"]], events.map { |event| [event.type, event.data] }
      assert_equal ids, events.map(&:id)
    end
  end

  test "EventSource takes a stream up where it was, and the Publisher outlives a restart of the hub" do
    hub = start_with_key
    told = Thread::Queue.new
    source = Hikyaku::EventSource.new(hub.url, params: {match: BOOK}, token: subscriber_token(hub, BOOK), retry_seconds: 0.05,
      on_open: -> { told << :open }, on_error: ->(error) { told << error })
    queue = read(source)
    assert_equal :open, told.pop
    publisher = publisher(hub)
    first = publisher.publish(BOOK, "before")
    assert_equal first, queue.pop.id
    hub.stop("KILL")
    hub.start
    eventually("the source") { told.size > 0 && told.pop == :open }
    second = publisher.publish(BOOK, "after")
    gap, after = queue.pop, queue.pop
    assert_equal ["mercure", "gap", first], [gap.type, *JSON.parse(gap.data).values_at("type", "last_event_id")]
    assert_equal [second, "after"], [after.id, after.data]
    assert_equal second, source.last_event_id
  end

  test "the commands as processes: token, publish, subscribe and disconnect" do
    hub = start_with_key
    settings = {"HIKYAKU_HUB" => hub.url, "HIKYAKU_PUBLISHER_KEY" => KEY, "HIKYAKU_SUBSCRIBER_KEY" => KEY, "HIKYAKU_ISSUER" => "https://shop.example.com",
                "HIKYAKU_RESOURCE_IDENTIFIER" => hub.url}
    command = ->(*words, **more) { ClientProcess.run(*Integration::HIKYAKU, *words, env: settings, **more) }
    token, status = command.call("token", "--subscribe", BOOK, "--subject", "urn:user:7")
    assert status.success?
    reader = run_client(*Integration::HIKYAKU, "subscribe", "--match", BOOK, "--json", "--token", token.strip, env: settings)
    await_subscriber(hub, "urn:user:7")
    id, status = command.call("publish", "--private", "--type", "note", BOOK, "-", input: "from a pipe")
    assert status.success?
    reader.until(/\n/)
    assert_equal({"id" => id.chomp, "type" => "note", "data" => "from a pipe"}, JSON.parse(reader.lines.first))
    closed, status = command.call("disconnect", "--revoke", "urn:user:7")
    assert_equal [true, "1"], [status.success?, closed[/\d+/]]
    assert_equal 1, reader.status.exitstatus, "a token that is revoked lets nobody in again"
    assert_match(/\Ahikyaku: .* answered 401/, reader.errors)
  end

  test "subscribe ends after its count, TERM ends it quietly" do
    hub = self.class.hub
    counting = run_client(*Integration::HIKYAKU, "subscribe", "--hub", hub.url, "--dev", "--pattern", "https://example.com/counted/:id", "--count", "2")
    endless = run_client(*Integration::HIKYAKU, "subscribe", "--hub", hub.url, "--dev", "--pattern", "https://example.com/counted/:id")
    eventually("two subscribers") { JSON.parse(HttpClient.new(hub.port).request("GET", "/.well-known/mercure/subscriptions", headers: {"authorization" => "Bearer #{hub.token(subscribe: ["*"])}"}).body)["subscriptions"].size == 2 }
    3.times { |number| hub.publish([["topic", "https://example.com/counted/#{number}"], ["data", "number #{number}"]]) }
    assert_equal 0, counting.status.exitstatus, counting.errors
    assert_equal [0, 1], counting.output.scan(/number (\d)/).flatten.map(&:to_i)
    endless.until(/number 2/)
    endless.signal("TERM")
    refute endless.status.success?
    assert_empty endless.errors
  end

  private

  # Waits until a subject has a subscription.
  def await_subscriber(hub, subject)
    listing = URI(hub.url).path + "/subscriptions"
    reader = token(:subscriber, key: KEY, details: [detail("*", actions: ["subscribe"])], aud: hub.url, iss: "https://shop.example.com", sub: "watcher")
    eventually("the subscription of #{subject}") do
      response = HttpClient.new(hub.port).request("GET", listing, headers: {"authorization" => "Bearer #{reader}"})
      assert_equal 200, response.status, response.body
      response.json["subscriptions"].any?
    end
  end
end
