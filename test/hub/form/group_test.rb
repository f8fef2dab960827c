# frozen_string_literal: true

require "test_helper"
require "support/form_readers"
require "support/forming_engine"

class FormGroupTest < Minitest::Test
  extend SentenceTests
  include FormingEngine

  def publish_many(count) = count.times { |i| publish("the text of an event, which is like the one before and the one behind, number #{i}") }

  def assert_said(reader, events)
    gzip = FormReaders::Gzip.new << reader.connection << reader.last_words(":\n\n")
    assert_predicate gzip, :finished?
    assert_equal events, gzip.text.scan("\ndata: ").size
  end

  test "epochs go on from those before as long as nobody waits, and begin anew after 64 events when somebody does" do
    readers = Array.new(60) { subscribe(coding: :gzip) }
    group = readers.first.group
    assert_equal [0], beginnings(group) { publish_many(200) }
    late = subscribe(coding: :gzip)
    assert_equal [56], beginnings(group) { publish_many(200) }
    assert_equal readers.first.connection.byteslice(-2_000, 2_000), late.connection.byteslice(-2_000, 2_000)
    readers.each { |reader| assert_said(reader, 400) }
    assert_said(late, 200)
  end

  test "an epoch begins early when as much stood alone as that costs" do
    group = subscribe(coding: :gzip).group
    publish_many(3)
    late = Array.new(2) { subscribe(coding: :gzip) }
    assert_equal [13], beginnings(group) { publish_many(60) }
    late.each { |reader| assert_said(reader, 60) }
  end

  test "where nobody is in step an epoch begins at once" do
    readers = Array.new(3) { subscribe(coding: :gzip) }
    publish_many(3)
    found = beginnings(readers.first.group) do
      2.times do
        readers.each { |reader| @engine.control(reader, ":\n\n") }
        drain
        publish_many(4)
      end
      @engine.unsubscribe(readers.pop, now: 1.0)
      publish_many(4)
      @engine.control(readers[0], ":\n\n")
      drain
      @engine.unsubscribe(readers.pop, now: 1.0)
      publish_many(4)
    end
    assert_equal [0, 4, 12], found
    assert_said(readers[0], 19)
  end

  test "an epoch goes on for nobody: not where those who are left have not read for long" do
    readers = Array.new(2) { subscribe(coding: :gzip) }
    publish_many(2)
    @engine.control(readers[1], ":\n\n")
    publish_many(1)
    readers[1].blocked = true
    publish_many(70)
    @engine.unsubscribe(readers[0], now: 1.0)
    found = beginnings(readers[1].group) do
      publish_many(1)
      @engine.writable(readers[1])
      drain
    end
    assert_equal [0], found
    assert_said(readers[1], 74)
  end

  test "of what was compressed for a group two epochs are kept, whoever is still behind" do
    readers = Array.new(2) { subscribe(coding: :gzip) }
    publish_many(3)
    readers[1].blocked = true
    first = readers[1].epoch
    {60 => true, 64 => true, 65 => false}.each do |count, kept|
      publish_many(count)
      assert_equal kept, first.sends?(3, 2, first)
    end
    @engine.writable(readers[1])
    drain
    readers.each { |reader| assert_said(reader, 192) }
  end

  test "who is changed leaves its group, which goes when it was the last, and belongs to none when it may read what is private" do
    reader = subscribe(coding: :gzip)
    publish("one")
    groups = @engine.instance_variable_get(:@groups)
    former = reader.group
    give = ->(topic, reads = []) { @engine.change(reader, Hikyaku::Hub::Grant.new(matchers: matchers_of(topic), reads: matchers_of(*reads)), now: 1.0) }
    give.call("/b")
    assert_equal [1, 0, 1], [groups.size, former.streams, reader.group.streams]
    refute_same former, reader.group
    give.call("/b", ["/b"])
    assert_equal [0, nil, nil], [groups.size, reader.group, reader.epoch]
    publish("two", "/b")
    assert_said(reader, 2)
  end

  test "who is given the same again stays in step" do
    readers = Array.new(2) { subscribe(coding: :gzip) }
    found = beginnings(readers[0].group) do
      100.times do
        publish_many(1)
        @engine.change(readers[1], Hikyaku::Hub::Grant.new(matchers: matchers_of("/a"), reads: []), now: 1.0)
      end
    end
    assert_equal [0], found
    assert_equal 1, readers.map(&:connection).uniq.size
    assert_equal 2, readers[0].group.streams
    readers.each { |reader| assert_said(reader, 100) }
  end

  test "whose events are older than the history stays in step, and whoever has missed some does not" do
    @engine = Hikyaku::Hub::RubyEngine.new(topics: @topics, heartbeat: nil, history: 10_000)
    readers = Array.new(2) { subscribe(coding: :gzip) }
    found = beginnings(readers[0].group) do
      3.times { publish_many(1) && 50.times { publish("x" * 300, "/b") } }
    end
    assert_equal [0], found
    assert_equal 1, readers.map(&:connection).uniq.size
    readers[1].blocked = true
    publish_many(100)
    @engine.writable(readers[1])
    drain
    assert_nil readers[1].epoch
    assert_equal 1, @engine.stats[:gaps]
    assert_operator (FormReaders::Gzip.new << readers[1].connection << readers[1].last_words("")).text.scan("\ndata: the").size, :<, 103
    assert_said(readers[0], 103)
  end

  test "an event that is too large to be kept for who has a part of it stands alone for everybody, and one that is not is shared" do
    readers = Array.new(2) { subscribe(coding: :gzip) }
    publish_many(2)
    {60_000 => true, 61_500 => false, 61_000 => true, 70_000 => false}.each do |size, shared|
      publish("x" * size)
      assert_equal [shared] * 2, readers.map { |reader| !reader.epoch.nil? }, size
    end
    assert_equal 1, readers.map(&:connection).uniq.size
    readers.each { |reader| assert_said(reader, 6) }
  end

  test "those whose matchers have the same text and another type share nothing" do
    grants = %w[exact urlpattern uri_template].map do |type|
      Hikyaku::Hub::Grant.new(matchers: [Hikyaku::Hub::Matcher.build(type: type, pattern: "/a/:id", base: FormingEngine::HUB_URL)], reads: [])
    end
    readers = grants.map { |grant| @engine.subscribe(grant, now: 1.0, coding: :gzip) }
    assert_equal 3, readers.map(&:group).uniq.size
    assert_same readers[1].group, @engine.subscribe(grants[1], now: 1.0, coding: :gzip).group
  end

  test "the length is counted as the trailer has it, beyond 4 GiB, too" do
    member = Object.new.extend(Hikyaku::Hub::Form::Member)
    [2**32 - 10, 25, 2**32 - 1, 2**32].each { |size| member.receive_piece(Hikyaku::Hub::Form::Piece.new("x", 7, size), nil) }
    assert_equal 14, member.length
    assert_equal [member.crc, 14], Hikyaku::Hub::Form::Blocks.trailer(member).unpack("@2VV")
  end

  test "who joins in the last moment of an epoch need not wait for two" do
    group = Array.new(70) { subscribe(coding: :gzip) }.first.group
    publish_many(64)
    subscribe(coding: :gzip)
    assert_equal [0], beginnings(group) { publish_many(1) }
  end

  test "whoever is a little behind when an epoch ends gets the rest of it, and stays in step" do
    readers = Array.new(2) { subscribe(coding: :gzip) }
    publish_many(60)
    readers[1].blocked = true
    publish_many(30)
    @engine.writable(readers[1])
    drain
    assert_equal 1, readers.map(&:connection).uniq.size
    readers[1].blocked = true
    publish_many(140)
    @engine.writable(readers[1])
    drain
    assert_operator readers[1].connection.bytesize, :>, readers[0].connection.bytesize, "what ended before is not kept"
    readers.each { |reader| assert_said(reader, 230) }
  end

  test "whoever stood aside when an epoch began cannot read what goes on from it" do
    readers = Array.new(2) { subscribe(coding: :gzip) }
    publish_many(20)
    @engine.control(readers[1], ":\n\n")
    publish_many(1)
    readers[1].blocked = true
    assert_equal [0], beginnings(readers[0].group) { publish_many(140) }
    @engine.writable(readers[1])
    drain
    assert_equal [4], beginnings(readers[0].group) { publish_many(60) }
    readers.each { |reader| assert_said(reader, 221) }
  end

  test "whatever goes on from whatever: those who are now and then behind, or told something alone, get what others get" do
    random = Random.new(14)
    plain, *readers = [:identity, *[:gzip] * 12].map { |coding| subscribe(coding: coding) }
    parts = Hash.new { |all, reader| all[reader] = +"".b }
    serve = -> { @engine.serve(1_000, 1_500, now: 1.0) { |reader, bytes| (parts[reader] << bytes) && bytes.bytesize } }
    900.times do |i|
      @engine.publish(Hikyaku::Hub::Update.new(topics: "/a", data: "number #{i} #{random.rand(1_000)}"), topics: [@topics["/a"]], now: 1.0)
      serve.call if random.rand(3) > 0
      reader = readers.sample(random: random)
      case random.rand((i / 150).even? ? 100 : 1_000)
      when 0..3 then reader.blocked = true
      when 4..40 then @engine.writable(reader)
      when 41 then @engine.control(reader, ":\n\n")
      end
    end
    readers.each { |reader| @engine.writable(reader) }
    3.times { serve.call }
    readers.each do |reader|
      gzip = FormReaders::Gzip.new << parts[reader] << reader.last_words("")
      assert_predicate gzip, :finished?
      assert_equal parts[plain], gzip.text.gsub(/^:\n\n/, "")
    end
  end
end
