# frozen_string_literal: true

require "test_helper"
require "objspace"
require "hikyaku/hub"
require "hikyaku/hub/native_engine"

# The engine holds no Ruby object, and Ruby objects hold the engine's memory as long as somebody needs it.
class GarbageCollectionTest < Minitest::Test
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  Hub = Hikyaku::Hub

  def setup
    @topics = Hub::Topics.new(hub_url: HUB_URL)
    @engine = Hub::NativeEngine.new(topics: @topics, documents: Hub::SubscriptionDocument.new(@topics.hub_path))
  end

  def teardown
    GC.stress = false
  end

  def matcher(type, pattern) = Hub::Matcher.build(type: type, pattern: pattern, base: HUB_URL)

  def stressed
    GC.stress = true
    yield
  ensure
    GC.stress = false
  end

  # Of strings and arrays, what may move in memory has moved and what may go has gone.
  def compact
    GC.respond_to?(:verify_compaction_references) ? GC.verify_compaction_references(toward: :empty) : GC.start
  end

  test "every call works with the garbage collector running at each allocation" do
    matchers = [matcher("exact", "/a"), matcher("urlpattern", "https://example.com/:id"), matcher("uri_template", "{+x}")]
    grant = Hub::Grant.new(matchers: matchers, reads: matchers, subject: "alice", payloads: [{"n" => 1}, nil, nil])
    update = Hub::Update.new(topics: ["/a", "https://EXAMPLE.com/%31"], data: "hello", type: "note")
    own = Hub::Update.new(topics: "/a", data: "own", id: "urn:own")
    topics = update.topics.map { |topic| @topics[topic].tap { |each| [each.url, each.reserved?] } }
    compiled = @engine.compile(grant)
    seen = stressed do
      id = @engine.publish(update, topics: topics, now: 1.0)
      reader = @engine.subscribe(grant, now: 1.0, last_event_id: +"earliest", address: +"192.0.2.1", expires_in: 60)
      @engine.publish(own, topics: topics.first(1), now: 1.0)
      @engine.writable(reader)
      @engine.control(reader, +":\n\n")
      bytes = +""
      while (ready = @engine.next_ready)
        taken = @engine.take(ready, 10_000) or next
        bytes << taken
        @engine.wrote(ready, taken.bytesize, now: 1.0)
      end
      @engine.tick(now: 2.0)
      listed = @engine.each_subscription.map { |each| [each.matcher.pattern, each.payload, each.subscriber.address] }
      figures = [@engine.stats[:publishes], @engine.lag, @engine.watched?(+"/a"), @engine.notify(+"/a", +"data: x\n\n"), @engine.resolve(id, grant), @engine.cursor(grant) == @engine.last_event_id]
      [reader.last_event_id, bytes, listed, figures, @engine.matcher("exact", "/a"), reader.closing, @engine.disconnect(+"alice"), reader.closing, @engine.unsubscribe(reader, now: 3.0)]
    end
    assert_same compiled, @engine.compile(grant)
    id = seen[1][/^id: (#.{11})$/, 1]
    assert_match(/\A:\n\nevent: note\nid: #.{11}\ndata: hello\n\n.*id: urn:own\ndata: own\n\n\z/m, seen[1])
    assert_equal 3, seen[1].scan('"active":true').size
    assert_equal ["earliest", [["/a", {"n" => 1}, "192.0.2.1"], ["https://example.com/:id", nil, "192.0.2.1"], ["{+x}", nil, "192.0.2.1"]]], seen.values_at(0, 2)
    assert_equal [5, [0, 0], true, 1, [1, id], true], seen[3]
    assert_equal [matchers.first, nil, 1, :disconnected, true], seen.drop(4)
  end

  test "grants are compiled with the garbage collector running at each allocation" do
    matchers = [matcher("exact", "/a"), matcher("uri_template", "{+x}")]
    grant = Hub::Grant.new(matchers: matchers.first(1), reads: matchers, publishes: matchers.last(1), subject: "alice", expires_at: 2e9)
    engine = Hub::NativeEngine.new(topics: @topics)
    stressed { engine.compile(grant) }
    reader = engine.subscribe(grant, now: 1.0)
    engine.publish(Hub::Update.new(topics: "/a", data: "x", private: true), topics: [@topics["/a"]], now: 1.0)
    engine.writable(reader)
    assert_same reader, engine.next_ready
    assert_match(/data: x/, engine.take(reader, 100))
  end

  test "nothing of the engine's is lost or moved when objects are" do
    readers = Array.new(50) do |i|
      grant = Hub::Grant.new(matchers: [matcher("exact", "/#{i}"), matcher("urlpattern", "/all/:x")], reads: [matcher("exact", "/#{i}")])
      @engine.subscribe(grant, now: 1.0, address: "192.0.2.#{i}").tap { |reader| @engine.writable(reader) }
    end
    @engine.next_ready.then { |ready| @engine.take(ready, 1) } while @engine.ready?
    compact
    50.times { |i| @engine.publish(Hub::Update.new(topics: "/#{i}", data: i.to_s, private: true), topics: [@topics["/#{i}"]], now: 1.0) }
    compact
    received = Hash.new { |all, reader| all[reader] = +"" }
    while (ready = @engine.next_ready)
      bytes = @engine.take(ready, 100_000) or next
      @engine.wrote(ready, bytes.bytesize, now: 1.0)
      received[ready] << bytes
    end
    assert_equal readers.sort_by(&:serial), received.keys.sort_by(&:serial)
    readers.each_with_index { |reader, i| assert_match(/\Aid: #.{11}\ndata: #{i}\n\n\z/, received[reader]) }
    assert_equal Array.new(50) { |i| "192.0.2.#{i}" }, @engine.each_subscriber.map(&:address)
  end

  test "what nobody holds any more is freed, in whatever order its objects go" do
    counts = lambda do
      3.times { GC.start }
      ObjectSpace.each_object(Hub::NativeEngine).count
    end
    before = counts.call
    Thread.new do
      20.times do |i|
        engine = Hub::NativeEngine.new(topics: @topics, history: 100_000)
        grant = Hub::Grant.new(matchers: [matcher("exact", "/#{i}")])
        kept = engine.compile(grant)
        engine.subscribe(grant, now: 1.0)
        engine.publish(Hub::Update.new(topics: "/#{i}", data: "x" * 1000), topics: [@topics["/#{i}"]], now: 1.0)
        (@kept ||= []) << kept if i.even?
      end
    end.join
    assert_operator counts.call, :<=, before + 2, "engines went"
    @kept.each { |compiled| assert_operator ObjectSpace.memsize_of(compiled), :>, 100 }
    @kept.shuffle!.pop while @kept.any?
    GC.start
  end
end
