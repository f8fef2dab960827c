# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/event_source/parser"

# HTML standard, sections "Parsing an event stream" and "Interpreting an event stream".
class EventSourceParserTest < Minitest::Test
  Parser = Hikyaku::EventSource::Parser

  # [type, data, id] of each event, then the last event id and the reconnection time.
  def parse(*pieces, **settings)
    parser = Parser.new(**settings)
    events = []
    pieces.each { |bytes| parser.feed(bytes) { |event| events << event.to_a } }
    [events, parser.last_event_id, parser.retry]
  end

  def message(data, id = "", type = "message") = [type, data, id]

  STREAMS = {
    "one event" => ["data: a\n\n", [%w[message a] + [""]]],
    "two lines" => ["data: YHOO\ndata: +2\ndata: 10\n\n", [["message", "YHOO\n+2\n10", ""]]],
    "fields of an event" => ["event: add\nid: 7\ndata: 73857293\n\n", [%w[add 73857293 7]], "7"],
    "comments are nothing" => [": test stream\n\n:\ndata: first\n:data: no\n\n", [["message", "first", ""]]],
    "one space is taken away" => ["data:test\n\ndata: test\n\ndata:  test\n\ndata:\ttest\n\n",
      [["message", "test", ""], ["message", "test", ""], ["message", " test", ""], ["message", "\ttest", ""]]],
    "empty data is data" => ["data\n\ndata\ndata\n\ndata:", [["message", "", ""], ["message", "\n", ""]]],
    "a line break at the end of data stays" => ["data: a\ndata:\n\n", [["message", "a\n", ""]]],
    "an event without data is none, but its id counts" => ["id: 1\nevent: x\n\ndata: a\n\n", [%w[message a 1]], "1"],
    "an id stays until another comes" => ["data: a\nid: 1\n\ndata: b\n\nid\ndata: c\n\ndata: d\n\n",
      [%w[message a 1], %w[message b 1], ["message", "c", ""], ["message", "d", ""]]],
    "an id with NUL is ignored" => ["id: 1\n\nid: 2\0\ndata: a\n\n", [%w[message a 1]], "1"],
    "the id of an event that did not end does not count" => ["id: 1\ndata: a\n\nid: 2\ndata: b\n", [%w[message a 1]], "1"],
    "an event that did not end is none" => ["data: a\n\ndata: b\n", [["message", "a", ""]]],
    "retry takes digits only" => ["retry: 1500\nretry: 20x\nretry: -3\nretry:\nretry: 1.5\nretry: ٣\n", [], "", 1500],
    "retry counts at once" => ["retry: 10\n", [], "", 10],
    "leading zeros" => ["retry:0020\n", [], "", 20],
    "the last type and id win" => ["event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\n", [%w[b x 2]], "2"],
    "an empty type is message" => ["event:\ndata: x\n\nevent: a\nevent\ndata: y\n\n", [["message", "x", ""], ["message", "y", ""]]],
    "a type does not stay" => ["event: a\ndata: x\n\ndata: y\n\nevent: b\n\ndata: z\n\n", [["a", "x", ""], ["message", "y", ""], ["message", "z", ""]]],
    "names are exact" => ["Data: a\nDATA: a\ndata : a\n data: a\ndat: a\ndataa: a\nmatch: x\ndata: b\n\n", [["message", "b", ""]]],
    "colons of a value" => ["data: a: b:c\nid::x\n\n", [["message", "a: b:c", ":x"]], ":x"],
    "CR" => ["data: a\rdata: b\r\rdata: c\r\r", [["message", "a\nb", ""], ["message", "c", ""]]],
    "CRLF" => ["data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [["message", "a\nb", ""], ["message", "c", ""]]],
    "mixed" => ["data: a\r\ndata: b\rdata: c\ndata: d\n\r\ndata: e\r\r\n\n\r", [["message", "a\nb\nc\nd", ""], ["message", "e", ""]]],
    "LF CR is two ends" => ["data: a\n\rdata: b\n\r", [["message", "a", ""], ["message", "b", ""]]],
    "a byte order mark" => ["\uFEFFdata: a\n\n", [["message", "a", ""]]],
    "only one, and only at the beginning" => ["\uFEFF\uFEFFdata: a\ndata: b\n\n\uFEFFdata: c\n\ndata: \uFEFFd\n\n", [["message", "b", ""], ["message", "\uFEFFd", ""]]],
    "text beyond ASCII" => ["event: évé\nid: 日\ndata: 😀\u2028\u0085\v\f\n\n", [["évé", "😀\u2028\u0085\v\f", "日"]], "日"],
    "bytes that are not UTF-8" => ["data: a\xFFb\xE2\x82\n\n".b, [["message", "a\uFFFDb\uFFFD", ""]]],
    "NUL in data" => ["data: a\0b\n\n", [["message", "a\0b", ""]]],
    "nothing" => ["", []],
    "empty lines" => ["\n\n\r\r\n\n", []]
  }.freeze

  STREAMS.each do |name, (stream, events, last_id, retry_time)|
    test "the standard's interpretation: #{name}" do
      assert_equal [events, last_id || "", retry_time], parse(stream)
    end
  end

  test "however the bytes are cut, the events are the same" do
    STREAMS.each do |name, (stream, _)|
      whole = parse(stream)
      bytes = stream.b
      assert_equal whole, parse(*bytes.each_char), "#{name}, byte by byte"
      (1...bytes.bytesize).each do |cut|
        assert_equal whole, parse(bytes.byteslice(0, cut), bytes.byteslice(cut..)), "#{name}, cut at #{cut}"
        assert_equal whole, parse(bytes.byteslice(0, cut), "", bytes.byteslice(cut..)), "#{name}, nothing read at #{cut}"
      end
    end
  end

  # Of the words that the grammar is made of, so that line ends, fields and broken text meet in every way.
  WORDS = ["\r", "\n", "\r\n", ":", " ", "data", "id", "event", "retry", "data: x", "1", "\0", "\xEF\xBB\xBF", "\xE2\x82\xAC", "\xFF"].map(&:b).freeze

  test "random streams, cut at random, give what a plain reading of the standard gives" do
    random = Random.new(Integer(ENV.fetch("SEED", 4711)))
    400.times do
      stream = Array.new(random.rand(1..60)) { WORDS.sample(random: random) }.join
      expected = plainly(stream)
      assert_equal expected, parse(stream), stream.inspect
      pieces = []
      rest = stream
      rest = rest.byteslice(pieces.last.bytesize..) while !rest.empty? && pieces << rest.byteslice(0, random.rand(1..7))
      assert_equal expected, parse(*pieces), "#{stream.inspect} as #{pieces.inspect}"
    end
  end

  test "an event is given as soon as its last byte is there" do
    seen = []
    parser = Parser.new
    "data: a\r\r".each_char { |byte| parser.feed(byte) { |event| seen << event.data } }
    assert_equal ["a"], seen
    parser.feed("\ndata: b\n\n") { |event| seen << event.data }
    assert_equal %w[a b], seen
  end

  test "a new connection goes on with the id of the last" do
    assert_equal [[%w[message a 5]], "5", nil], parse("data: a\n\n", last_event_id: "5")
    assert_equal [[["message", "a", ""]], "", nil], parse("id\ndata: a\n\n", last_event_id: "5")
  end

  test "lines and events are bounded, however they are cut" do
    refuse = lambda do |*pieces|
      error = assert_raises(Hikyaku::EventSource::EventTooLarge) { parse(*pieces, max_event_bytes: 100) }
      assert_match(/max_event_bytes, 100/, error.message)
      assert_kind_of Hikyaku::LimitExceeded, error
    end
    refuse.call("data: #{"x" * 101}\n\n")
    refuse.call("data: #{"x" * 101}")
    refuse.call(*(["x"] * 101))
    refuse.call(":#{"x" * 101}")
    refuse.call(*(["data: #{"x" * 30}\n"] * 4))
    refuse.call(*(["data\n"] * 101))
    assert_equal ["x" * 99], parse("data:#{"x" * 99}\n\n", max_event_bytes: 100).first.map { |event| event[1] }
    assert_equal 50, parse(*(["data:#{"x" * 90}\n\n"] * 50), max_event_bytes: 100).first.size
  end

  test "what is fed is not changed, and events cannot be" do
    bytes = "data: a\n\n"
    event = nil
    Parser.new.feed(bytes) { |each| event = each }
    assert_equal "data: a\n\n", bytes
    assert_predicate event, :frozen?
    assert_predicate event.data, :frozen?
    assert_equal Encoding::UTF_8, event.data.encoding
  end

  private

  # The standard's own steps on the whole text, without regard to speed.
  def plainly(stream)
    text = stream.dup.force_encoding("UTF-8").scrub.delete_prefix("\uFEFF")
    lines = text.split(/\r\n|\n|\r/, -1)
    lines.pop
    data = +""
    type = +""
    buffer = last_id = ""
    time = nil
    events = []
    lines.each do |line|
      if line.empty?
        last_id = buffer
        events << [type.empty? ? "message" : type, data.chomp("\n"), last_id] unless data.empty?
        data = +""
        type = +""
        next
      end
      next if line.start_with?(":")

      name, value = line.include?(":") ? line.split(":", 2) : [line, ""]
      value = value[1..] if value.start_with?(" ")
      case name
      when "event" then type = value
      when "data" then data << value << "\n"
      when "id" then buffer = value unless value.include?("\0")
      when "retry" then time = value.to_i if value.match?(/\A[0-9]+\z/)
      end
    end
    [events, last_id, time]
  end
end
