# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/event_source/message_pack_parser"
require "msgpack"

# docs/streams.md, "MessagePack", and the specification of MessagePack.
class EventSourceMessagePackParserTest < Minitest::Test
  E = Hikyaku::EventSource
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))

  # [type, data, id] of each event, then the last event id and the reconnection time.
  def parse(*pieces, **settings)
    parser = E::MessagePackParser.new(**settings)
    events = []
    pieces.each { |bytes| parser.feed(bytes) { |event| events << event.to_a } }
    [events, parser.last_event_id, parser.retry]
  end

  # What a gem writes that is not ours.
  def packed(*values) = values.map { |value| MessagePack.pack(value) }.join

  STREAMS = {
    "an event" => [["1", nil, "a"], [["message", "a", "1"]], "1"],
    "a type" => [["1", "note", "a"], [["note", "a", "1"]], "1"],
    "an empty type is message" => [["1", "", "a"], [["message", "a", "1"]], "1"],
    "without an id, the one before holds" => [["1", nil, "a"], [nil, nil, "b"], [["message", "a", "1"], ["message", "b", "1"]], "1"],
    "an empty id takes it away" => [["1", nil, "a"], ["", nil, "b"], [["message", "a", "1"], ["message", "b", ""]], ""],
    "ids that a header cannot carry do not count" => [["1", nil, "a"], ["2\r\nx: y", nil, "b"], ["2\0", nil, "c"], [%w[message a 1], %w[message b 1], %w[message c 1]], "1"],
    "data of many lines, and of none" => [[nil, nil, "a\nb\r\n"], [nil, nil, ""], [["message", "a\nb\r\n", ""], ["message", "", ""]], ""],
    "lengths of every size" => [["i" * 31, "t" * 200, "d" * 70_000], [["t" * 200, "d" * 70_000, "i" * 31]], "i" * 31],
    "text beyond ASCII" => [["日", "évé", "😀\u2028"], [["évé", "😀\u2028", "日"]], "日"],
    "heartbeats, and that all has come, are nothing" => [nil, true, [nil, nil, "a"], nil, [["message", "a", ""]], ""],
    "what is not known is left out" => [false, -1, -70_000, 1.5, "text", {"a" => [1, {"b" => nil}]}, "bytes".b, {}, Time.at(0).utc.to_s, ["1", nil, "a", {"more" => [1]}, 2],
      [["message", "a", "1"]], "1"]
  }.freeze

  STREAMS.each do |name, (*values, events, id)|
    test "#{name}, however the bytes are cut" do
      bytes = packed(*values)
      expected = [events, id, nil]
      assert_equal expected, parse(bytes)
      next if bytes.bytesize > 2_000
      assert_equal expected, parse(*bytes.chars), "byte by byte"
      (1...bytes.bytesize).each { |cut| assert_equal expected, parse(bytes.byteslice(0, cut), "", bytes.byteslice(cut..)), "cut at #{cut}" }
    end
  end

  test "an unsigned integer of any size is the reconnection time, and a negative one is none" do
    [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**64 - 1].each { |number| assert_equal number, parse(packed(-5, number, -1)).last }
    assert_equal 7, parse(packed(5_000, 7)).last
  end

  test "arrays and strings may be written longer than they need to be" do
    long = "\xDD\x00\x00\x00\x03\xDB\x00\x00\x00\x011\xC0\xDA\x00\x01a\xDC\x00\x03\xD9\x012\xC0\xA1b".b
    assert_equal [[%w[message a 1], %w[message b 2]], "2", nil], parse(*long.chars)
  end

  test "every kind of value is stepped over, to its last byte" do
    lengths = [0, 1, 2, 4, 8, 16, 17, 255, 256, 65_536]
    extensions = lengths.map { |length| MessagePack::ExtensionValue.new(7, "\xC1".b * length) }
    bytes = lengths.map { |length| "\xC1".b * length }
    numbers = [-1, -32, -33, -128, -129, -32_768, -32_769, -2**31, -2**31 - 1, -2**63, 0.1]
    rest = ["\xCA\xC1\xC1\xC1\xC1".b, packed((0..16).to_h { |key| [key, key] }), "\xDF\x00\x00\x00\x01\xC0\xC0".b, "x".b * 3]
    all = [*(extensions + bytes + numbers).map { |value| packed(value) }, *rest]
    stream = all.each_with_index.map { |value, index| value + packed([index.to_s, nil, "a"]) }.join
    assert_equal all.each_index.map(&:to_s), parse(stream).first.map(&:last)
    assert_equal all.each_index.map(&:to_s), parse(*stream.scan(/.{1,7}/mn)).first.map(&:last)
  end

  test "what is not UTF-8 is refused, whichever part it is" do
    {"data" => "\x93\xA11\xC0\xA3a\xFFb", "id" => "\x93\xA1\xFF\xC0\xA1a", "type" => "\x93\xC0\xA1\xFF\xA1a"}.each do |part, bytes|
      error = assert_raises(E::Malformed) { parse(bytes.b) }
      assert_equal "the #{part} of an event is no UTF-8", error.message
    end
    events, = parse("\x93\xA11\xC0\xA3a\xC3\xA9".b)
    assert_equal [%w[message aé 1]], events
    assert_equal [Encoding::UTF_8, true], [events[0][1].encoding, events[0][1].frozen?]
  end

  test "an event is given with its last byte, and not before" do
    parser = E::MessagePackParser.new
    seen = []
    "\x93\xA11\xC0\xA1a".b.each_char { |byte| parser.feed(byte) { |event| seen << event } && assert_empty(seen) unless seen.any? }
    assert_equal [%w[message a 1]], seen.map(&:to_a)
  end

  # What is refused, and whether it is for its size. None of it is long: it is refused before it is there.
  HOSTILE = {
    "a byte that begins nothing" => ["\xC1", false], "the same in an event" => ["\x93\xC1", false],
    "an array of nothing" => ["\x90", false], "an array of two" => ["\x92\xC0\xA1a", false],
    "a number for an id" => ["\x93\x01\xC0\xA1a", false], "a map for a type" => ["\x93\xC0\x80\xA1a", false],
    "bytes for data" => ["\x93\xC0\xC0\xC4\x01a", false], "no data" => ["\x93\xC0\xC0\xC0", false], "an extension for data" => ["\x93\xC0\xC0\xD4\x01\x00", false],
    "depth" => ["\x91" * 40, false], "depth of maps" => ["\x81\x01" * 40, false], "depth in an event" => ["\x94\xC0\xC0\xA0#{"\x91" * 40}", false],
    "a string of 4 GiB" => ["\xDB\xFF\xFF\xFF\xFF", true], "bytes of 4 GiB" => ["\xC6\xFF\xFF\xFF\xFF", true], "an extension of 4 GiB" => ["\xC9\xFF\xFF\xFF\xFF\x01", true],
    "an array of 4 Gi" => ["\xDD\xFF\xFF\xFF\xFF", true], "a map of 4 Gi" => ["\xDF\xFF\xFF\xFF\xFF", true], "data of 4 GiB" => ["\x93\xA11\xC0\xDB\xFF\xFF\xFF\xFF", true],
    "a string of 1,001 bytes" => ["\xDA\x03\xE9", true], "parts that are too much together" => ["\x93\xC0#{"\xDA\x01\xF4#{"x" * 500}" * 2}".b, true],
    "ever more items" => ["\xDC\x03\x20\xDC\x03\x20", true]
  }.freeze

  HOSTILE.each do |name, (bytes, large)|
    test "#{name}: it is refused, however it comes" do
      [[bytes], bytes.b.chars].each do |pieces|
        error = assert_raises(large ? E::EventTooLarge : E::Malformed) { parse(packed(["1", nil, "before"]), *pieces, max_event_bytes: 1_000) }
        assert_kind_of Hikyaku::Error, error
        assert_match(large ? /max_event_bytes, 1000/ : /stream|event/, error.message)
      end
    end
  end

  test "a value may be as large as is allowed" do
    data = "x" * 994
    assert_equal data, parse(packed([nil, nil, data]), max_event_bytes: 1_000).first[0][1]
    assert_raises(E::EventTooLarge) { parse(packed([nil, nil, "#{data}x"]), max_event_bytes: 1_000) }
  end

  test "bytes at random end in events or in one of two errors, and nothing is kept of what was read" do
    random = Random.new(SEED)
    outcomes = Array.new(3_000) do
      bytes = random.bytes(random.rand(1..60))
      bytes = "\x93\xA11\xC0\xA2ab".b * 3 if random.rand(4).zero?
      bytes.setbyte(random.rand(bytes.bytesize), random.rand(256))
      parse(*bytes.scan(/.{1,#{random.rand(1..9)}}/mn), max_event_bytes: 500).first.any?
    rescue E::Malformed, E::EventTooLarge => error
      error.class
    end
    assert_equal [E::EventTooLarge, E::Malformed, false, true].map(&:to_s).sort, outcomes.uniq.map(&:to_s).sort
    parser = E::MessagePackParser.new
    20_000.times { parser.feed("\x93\xA11\xC0\xA2ab") {} }
    assert_operator parser.instance_variable_get(:@values).instance_variable_get(:@bytes).bytesize, :<, 20
  end
end
