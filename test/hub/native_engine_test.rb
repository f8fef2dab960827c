# frozen_string_literal: true

require "test_helper"
require "contracts/engine_contract"
require "contracts/engine/persistence"
require "hikyaku/hub"
require "hikyaku/hub/native_engine"
require "objspace"

class NativeEngineTest < Minitest::Test
  include CompressionContract
  include EngineContract
  include PersistenceContract

  def new_engine(**options) = Hikyaku::Hub::NativeEngine.new(**options)

  RUBY = Hikyaku::Hub::RubyEngine
  NATIVE = Hikyaku::Hub::NativeEngine

  def self.methods_of(engine) = engine.public_instance_methods - Object.public_instance_methods

  test "both engines have the same public methods, beside what drivers of the native one ask of it" do
    own = %i[compile handed_over last_words_for state_of tidy trim]
    assert_equal self.class.methods_of(RUBY).sort, (self.class.methods_of(NATIVE) - own).sort
  end

  test "both engines take the same arguments" do
    (self.class.methods_of(RUBY) & self.class.methods_of(NATIVE)).each do |name|
      names = [RUBY, NATIVE].map { |engine| engine.instance_method(name).parameters - [[:block, :block]] }
      assert_equal(*names, name) unless name == :serve
    end
    own = {RUBY => %i[cipher random], NATIVE => %i[key secret]}
    assert_equal(*own.map { |engine, names| engine.instance_method(:initialize).parameters.map(&:last) - names })
  end

  test "what was kept for subscribers that are gone is let go when somebody tidies up, and nothing of those that stay" do
    documents = Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path)
    @engine = make_engine(documents: documents)
    stays = subscribe(pattern("/stays/:id"), reads: ["/stays/1"])
    gone = Array.new(700) { |i| subscribe(pattern("/gone/#{i}/*"), format: :message_pack) }
    grants = @engine.instance_variable_get(:@grants)
    refute @engine.tidy, "everything is in use"
    assert_equal 701, grants.size
    gone.each { |reader| @engine.unsubscribe(reader, now: @now) }
    assert @engine.tidy, "so much that memory is worth giving back"
    @engine.trim
    assert_equal 1, grants.size
    refute @engine.tidy
    publish("/stays/1", "on", private: true)
    assert_equal ["on"], received(stays).last(1)
    again = subscribe(pattern("/gone/1/*"))
    publish("/gone/1/x", "again")
    assert_equal ["again"], received(again)
  end

  test "the bytes of a matcher are counted, with those that Ruby keeps" do
    [["exact", "/a"], ["urlpattern", "https://example.com/books/:id/*"], ["urlpattern", "/a#{"{a}?" * 200}"], ["uri_template", "/{a}/{b}"]].each do |type, text|
      make = ->(i) { Hikyaku::Hub::Matcher.build(type: type, pattern: "#{text}#{i}", base: EngineContract::HUB_URL) }
      make[0]
      GC.start
      before = ObjectSpace.memsize_of_all
      GC.disable
      kept = Array.new(200, &make)
      GC.enable
      GC.start
      each = (ObjectSpace.memsize_of_all - before) / 200
      assert_includes((each / 2)..(each * 3 + 500), kept.first.bytes, [type, text].inspect)
    end
  end

  test "a subscriber is the same object as long as Ruby drives it" do
    reader = subscribe(exact("/a"))
    @engine.each_subscriber { |each| assert_same reader, each }
    assert_same reader, listed.first.subscriber
    publish("/a")
    assert_same reader, @engine.next_ready
  end

  test "a subscriber whose object was let go comes back as an equal one, with its grant and its address" do
    reader = subscribe(exact("/a", "/b"), address: "192.0.2.1", subject: "alice")
    @engine.handed_over(reader)
    again = @engine.each_subscriber.first
    refute_same reader, again
    assert_equal reader, again
    assert_equal 1, [reader, again].uniq.size
    assert_equal ["alice", "192.0.2.1", reader.id], [again.grant.subject, again.address, again.id]
    assert_same reader.grant, again.grant
    publish("/a")
    assert_equal again, @engine.next_ready
    refute_equal again, subscribe(exact("/a"))
  end

  test "what a subscriber was is known when it has left, and nothing fails then" do
    reader = subscribe(exact("/a"))
    other = subscribe(exact("/a"))
    id = other.id
    publish("/a")
    drain
    @engine.close(reader, :hung_up)
    refute reader.closed
    @engine.handed_over(other)
    @engine.unsubscribe(reader)
    @engine.unsubscribe(@engine.each_subscriber.first)
    assert_equal [true, :hung_up, 1, false, 0, nil], [reader.closed, reader.closing, reader.cursor, reader.blocked, reader.offset, reader.control]
    assert_equal [true, nil, id], [other.closed, other.cursor, other.id]
    @engine.writable(reader)
    @engine.control(reader, ":\n\n")
    @engine.close(reader, :expired)
    @engine.wrote(reader, 5, now: @now)
    assert_nil @engine.take(reader, 100)
    refute @engine.unsubscribe(reader)
    assert_nil @engine.next_ready
  end

  test "what is on its way to a reader is told" do
    reader = subscribe(exact("/a"), room: 3)
    assert_equal [false, 0, nil], [reader.blocked, reader.offset, reader.control]
    publish("/a", "first")
    drain
    @engine.control(reader, ":\n\n")
    assert_equal [true, 1, ":\n\n"], [reader.blocked, reader.offset, reader.control]
  end

  test "only reasons that there are close a stream" do
    reader = subscribe(exact("/a"))
    assert_raises(ArgumentError) { @engine.close(reader, :tired) }
    assert_raises(TypeError) { @engine.close(reader, "expired") }
    assert_nil reader.closing
  end

  test "the matcher that is in use is found, and no other" do
    used = exact("/a")
    reader = subscribe(used + pattern("/:x"))
    assert_same used.first, @engine.matcher("exact", "/a")
    assert_nil @engine.matcher("exact", "/b")
    assert_nil @engine.matcher("urlpattern", "/a")
    @engine.unsubscribe(reader)
    assert_nil @engine.matcher("exact", "/a")
  end

  test "a grant is compiled once, and let go when nobody uses it" do
    held = grant(exact("/held"), subject: "alice")
    @engine.subscribe(held, now: @now)
    once = @engine.compile(held)
    assert_same once, @engine.compile(held)
    grants = @engine.instance_variable_get(:@grants)
    5_000.times { |i| @engine.compile(grant(exact("/#{i}"))) }
    assert_operator grants.size, :<, 3_000
    assert_same once, @engine.compile(held)
    assert_equal ["alice"], @engine.each_subscriber.map { |subscriber| subscriber.grant.subject }
  end

  test "subscribers that are gone without Ruby's doing leave no objects behind" do
    readers = Array.new(50) { @engine.subscribe(grant(exact("/a")), now: @now) }
    readers.each { |reader| @engine.__send__(:_unsubscribe, reader.serial, @now) }
    3_000.times { subscribe(exact("/a")).then { |reader| @engine.__send__(:_unsubscribe, reader.serial, @now) } }
    assert_operator @engine.instance_variable_get(:@subscribers).size, :<, 1_100
    assert_equal 0, @engine.subscriber_count
  end

  test "topics that only Ruby can take apart are published like any others" do
    odd = ["https://EXAMPLE.com/%61", "https://example.com:443/a", "https://bücher.example/", "urn:x", "no url at all\\", "/a/../b", "é"]
    reader = subscribe(exact(*odd) + pattern("https://example.com/*", "/b", "https://xn--bcher-kva.example/*"))
    names = odd.each_index.map(&:to_s)
    odd.each_with_index { |topic, i| publish([topic, "/unheard"], i.to_s) }
    publish(odd, "all")
    assert_equal names + ["all"], received(reader)
    by_pattern = subscribe(pattern("https://example.com/a", "/b", "https://xn--bcher-kva.example/*"), last_event_id: "earliest")
    assert_equal %w[1 2 5 all], received(by_pattern)
    publish(Array.new(300) { |i| "https://EXAMPLE.com/many/#{i}" } + ["/b"], "many")
    assert_equal "many", received(by_pattern).last
  end

  test "what is given is copied: changing it afterwards changes nothing" do
    data = +"one"
    cursor = +"earliest"
    address = +"192.0.2.1"
    update = Struct.new(:data, :id, :type, :retry_after) { def private? = false }.new(data, nil, nil, nil)
    @engine.publish(update, topics: [@topics["/a"]], now: @now)
    reader = subscribe(exact("/a"), last_event_id: cursor, address: address)
    [data, cursor, address].each { |string| string.replace("x" * 50) }
    assert_equal ["one"], received(reader)
    assert_equal "192.0.2.1", @engine.handed_over(reader).then { @engine.each_subscriber.first.address }
  end

  test "misuse raises and changes nothing" do
    assert_raises(TypeError) { @engine.publish(Struct.new(:data, :id, :type, :retry_after) { def private? = false }.new(1, nil, nil, nil), topics: [@topics["/a"]], now: @now) }
    update = Hikyaku::Hub::Update.new(topics: "/a", data: "x")
    assert_raises(ArgumentError) { @engine.publish(update, topics: [], now: @now) }
    assert_raises(TypeError) { @engine.publish(update, topics: nil, now: @now) }
    assert_raises(NoMethodError) { @engine.publish(update, topics: ["/a"], now: @now) }
    assert_raises(TypeError) { @engine.tick(now: "soon") }
    assert_raises(ArgumentError) { @engine.tick(now: Float::NAN) }
    assert_raises(RuntimeError) { @engine.__send__(:_setup, {}) }
    assert_raises(RuntimeError) { NATIVE.allocate.stats }
    assert_raises(TypeError) { @engine.__send__(:_subscribe, "no grant", nil, nil, nil, nil, @now, false, false, false) }
    assert_raises(TypeError) { @engine.__send__(:_change, 1, "no grant", nil, nil, @now) }
    assert_raises(ArgumentError) { new_engine(topics: @topics, key: "short") }
    assert_raises(NoMethodError) { @engine.dup }
    assert_equal [0, 0], @engine.stats.values_at(:publishes, :subscribers)
  end

  test "times beyond any clock are cut to what can be counted" do
    reader = subscribe(exact("/a"), expires_in: Float::INFINITY)
    @engine.tick(now: 1e12)
    assert_nil reader.closing
    assert_nil @engine.next_tick
  end

  test "what an engine holds is told to ObjectSpace" do
    before = ObjectSpace.memsize_of(@engine)
    publish("/a", "x" * 1_000_000)
    assert_operator ObjectSpace.memsize_of(@engine), :>, before + 1_000_000
  end

  test "the engine shows nothing of what it holds" do
    reader = subscribe(exact("/a"), subject: "alice")
    [@engine, reader].each { |object| refute_match(/alice|@/, object.inspect) }
  end
end
