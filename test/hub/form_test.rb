# frozen_string_literal: true

require "test_helper"
require "objspace"
require "support/form_readers"
require "support/forming_engine"

class FormTest < Minitest::Test
  extend SentenceTests
  include FormingEngine

  # @return [Hash{Symbol => Integer}] how often methods of Form's classes were called
  def calls(*names)
    counts = Hash.new(0)
    trace = TracePoint.new(:call) { |point| counts[point.method_id] += 1 if names.include?(point.method_id) && point.path.include?("/hub/form") }
    trace.enable { yield }
    counts
  end

  test "an event is written and compressed once, however many receive it" do
    readers = Array.new(20) { subscribe(form: :message_pack) } + Array.new(20) { subscribe(form: :message_pack, coding: :gzip) }
    insiders = Array.new(20) { subscribe(form: :message_pack, coding: :gzip, reads: ["/b"]) }
    drain
    counts = calls(:of, :follow) { 15.times { |i| publish("number #{i}") } }
    assert_equal 15, counts[:of], "as MessagePack"
    assert_equal 15 * 2, counts[:follow], "for the group, and to stand alone"
    assert_equal 1, insiders.map(&:connection).uniq.size
    assert_equal 2, readers.map(&:connection).uniq.size
  end

  test "while nobody has asked for another form nothing is made" do
    subscribe
    assert_empty(calls(:of, :follow, :piece) { publish("one") })
  end

  test "many events at once are compressed once for a group, too, over the end of an epoch" do
    readers = Array.new(3) { subscribe(coding: :gzip) }
    publish("first")
    begun = nil
    counts = calls(:follow) do
      begun = beginnings(readers.first.group) do
        100.times { |i| @engine.publish(Hikyaku::Hub::Update.new(topics: "/a", data: i.to_s), topics: [@topics["/a"]], now: 1.0) }
        drain
      end
    end
    assert_equal 100, counts[:follow]
    assert_empty begun
    assert_equal 1, readers.map(&:connection).uniq.size
    assert_equal 101, (FormReaders::Gzip.new << readers.first.connection).text.scan("data:").size
  end

  test "forms and groups are let go when the last of their streams has left" do
    readers = [subscribe(coding: :gzip), subscribe("/b", coding: :gzip), subscribe(form: :message_pack, coding: :gzip), subscribe(form: :message_pack)]
    publish("one")
    held = -> { [@engine.instance_variable_get(:@forms).size, @engine.instance_variable_get(:@groups).size] }
    assert_equal [3, 3], held.call
    readers.each { |reader| @engine.unsubscribe(reader, now: 1.0) }
    assert_equal [0, 0], held.call
  end

  test "there are 64 groups at most" do
    readers = Array.new(100) { |i| subscribe("/#{i}", coding: :gzip) }
    groups = @engine.instance_variable_get(:@groups)
    assert_equal [64, 64], [groups.size, readers.count(&:group)]
    @engine.unsubscribe(readers.first, now: 1.0)
    assert subscribe("/new", coding: :gzip).group
    assert_nil subscribe("/newer", coding: :gzip).group
  end

  test "a compressed stream costs 64 bytes more than another, and no object of its own" do
    plain, coded = [:identity, :gzip].map { |coding| Array.new(2) { subscribe(coding: coding) } }
    80.times { |i| publish(i.to_s) }
    grown = [plain, coded].map { |readers| ObjectSpace.memsize_of(readers.first) }
    assert_operator grown[1] - grown[0], :<=, 64
    own = [plain, coded].map { |one, other| (ObjectSpace.reachable_objects_from(one) - ObjectSpace.reachable_objects_from(other)).map(&:class) }
    assert_equal(*own.map { |classes| classes.map(&:name).sort })
  end

  test "what is made of events is kept until it is too much, or the ring has passed them, and then made again" do
    log = Hikyaku::Log::Ring.new(capacity: 10_000)
    shelf = Form::Shelf.new(log, 2_000)
    made = []
    fetch = ->(position) { shelf.fetch(position) { made << position and Form::Piece.new("x" * 340) } }
    4.times { log.append("record") }
    [1, 2, 3, 3, 2, 4, 4, 1].each(&fetch)
    assert_equal [1, 2, 3, 4], made
    5.times { log.append("record") }
    log.keep_from(5)
    fetch.call(9)
    assert_equal 1, shelf.size
    shelf.fetch(8) { Form::Piece.new("x" * 5_000) }
    assert_equal 0, shelf.size
  end

  # Server-Sent Events, and what they are as MessagePack.
  VALUES = {
    ":\n\n" => [nil], ": caught up\n\n" => [true], ":\n\n: caught up\n\n:\n\n" => [nil, true, nil],
    "id: 1\ndata: x\n\n" => [["1", nil, "x"]], "data: x\n\n" => [[nil, nil, "x"]], "event: t\ndata: \n\n" => [[nil, "t", ""]],
    "data: a\ndata: \ndata:  b\n\n" => [[nil, nil, "a\n\n b"]], "data: id: x\n\n" => [[nil, nil, "id: x"]], "data: :\n\n" => [[nil, nil, ":"]],
    "retry: 7\n\n" => [7], "event: t\nretry: 300\nid: é\ndata: é\n\n" => [300, ["é", "t", "é"]], "id: 1\n\n" => [], "id: 1\n\ndata: x\n\n" => [[nil, nil, "x"]],
    "retry: no\ndata: x\n\n" => [[nil, nil, "x"]], "other: 1\ndata: x\n\n" => [[nil, nil, "x"]], "data: x" => [[nil, nil, "x"]], "" => []
  }.freeze

  test "what events say as MessagePack" do
    VALUES.each { |frames, values| assert_equal values, (FormReaders::Pack.new << Form::MessagePack.of(frames.b)).values, frames.inspect }
    [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 10**12 - 1].each do |number|
      assert_equal [number], (FormReaders::Pack.new << Form::MessagePack.of("retry: #{number}\n\n")).values
    end
    [0, 31, 32, 255, 256, 65_535, 65_536].each do |size|
      assert_equal size, (FormReaders::Pack.new << Form::MessagePack.of("data: #{"x" * size}\n\n")).values.first.last.size
    end
  end

  test "numbers and strings take as little as they can" do
    {"retry: 5\n\n" => "05", "retry: 200\n\n" => "CCC8", "retry: 1000\n\n" => "CD03E8", "retry: 70000\n\n" => "CE00011170", "id: 1\ndata: x\n\n" => "93A131C0A178",
     "event: t\ndata: \n\n" => "93C0A174A0", ":\n\n" => "C0", ": caught up\n\n" => "C3"}.each do |frames, bytes|
      assert_equal bytes, Form::MessagePack.of(frames).unpack1("H*").upcase
    end
  end
end
