# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/reading"
require "json"
require "msgpack"
require_relative "reading/generated"

class ReadingTest < Minitest::Test
  Reading = Hikyaku::Codec::Reading
  Limits = Reading::Printer::Limits

  def show(bytes, **options) = Reading.show(bytes.b, type: :msgpack, **options)

  def text(bytes, **options) = show(bytes, **options).text

  # @return [Integer] how many were read
  def tokens(&block)
    count = 0
    TracePoint.new(:call) { |point| count += 1 if point.method_id == :next && point.defined_class == Reading::MessagePack }.enable(&block)
    count
  end

  def packed(object, **options) = text(MessagePack.pack(object), **options)

  test "MessagePack is shown as the JSON that it is, where it is that" do
    200.times do |seed|
      object = Generated.new(seed).value
      object = MessagePack.unpack(MessagePack.pack(object))
      next if object.inspect.match?(/\\x/)
      shown = packed(object, limits: Reading::Printer::EVERYTHING)
      # Only what JSON has a word for.
      next if shown.include?("bin(")
      assert_equal [object], [JSON.parse(shown)], "seed #{seed}"
    end
  end

  test "what JSON has no word for is said in words" do
    {
      "\xc4\x03\x00\xff\x10" => "bin(3, 00ff10)", "\xc4\x00" => "bin(0)", "\xd4\x05a" => "ext(5, 61)", "\xd4\xfea" => "ext(-2, 61)",
      "\xd6\xff\x6a\x00\x00\x00" => "time(2026-05-10T03:48:16Z)", "\xd7\xff\x77\x35\x93\xfc\x6a\x00\x00\x00" => "time(2026-05-10T03:48:16.499999999Z)",
      "\xd7\xff\x77\x35\x94\x00\x6a\x00\x00\x00" => "time(2026-05-10T03:48:16.5Z)",
      "\xc7\x0c\xff\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff" => "time(1969-12-31T23:59:59.000000001Z)",
      "\xc7\x0c\xff\x00\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff" => "time(9223372036854775807 s)",
      "\xd7\xff\xff\xff\xff\xff\xff\xff\xff\xff" => "ext(-1, ffffffffffffffff)", "\xd4\xff\x00" => "ext(-1, 00)",
      "\xcf\xff\xff\xff\xff\xff\xff\xff\xff" => "18446744073709551615", "\xca\x3d\xcc\xcc\xcd" => "0.10000000149011612", "\xcb\x80\x00\x00\x00\x00\x00\x00\x00" => "-0.0",
      "\xca\x7f\x80\x00\x00" => "Infinity", "\xcb\xff\xf0\x00\x00\x00\x00\x00\x00" => "-Infinity", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00" => "NaN",
      "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01" => "NaN(0x7ff8000000000001)", "\x81\x05\xc0" => "{5: null}", "\x81\x91\x01\x80" => "{[1]: {}}", "\x81\xc0\x90" => "{null: []}"
    }.each { |bytes, shown| assert_equal shown, text(bytes), bytes.inspect }
  end

  test "no more items are read than is said, shown or not, and then that is said" do
    limits = Limits.new(entries: 2, text: 10, depth: 8, bytes: 1_000, items: 10)
    [MessagePack.pack([1] * 1_000), MessagePack.pack([1] * 1_000) + "\xc1".b, "\xdd\xff\xff\xff\xff#{"\x01" * 500}".b].each do |bytes|
      [false, true].each do |listing|
        shown = nil
        assert_operator tokens { shown = show(bytes, limits: limits, listing: listing) }, :<=, 24
        assert_nil shown.broken
        assert_match(/1.*1 … what follows is not read: there are more than 10 items\z/m, shown.text)
      end
    end
    assert_equal "[1, 1, … 7 more]", packed([1] * 9, limits: Limits.new(entries: 2, text: 10, depth: 8, bytes: 1_000, items: 11))
    assert_equal 6, show("\x01" * 5, limits: limits).values + 1
    assert_match(/\A(1\n){9}1 … what follows/, show("\x01" * 500, limits: limits).text)
    assert_includes Reading.show("[#{"1," * 50}1]", type: :json, limits: limits).text, "more than 10 items"
    refute_includes Reading.show("[#{"1," * 50}1]", type: :json, limits: Reading::Printer::EVERYTHING).text, "items"
  end

  test "a key that stands in its map again is pointed out, and in another map it is not" do
    assert_equal '{"a": 1, "a" (again): 2, "b": {"a": 3}}', text("\x83\xa1a\x01\xa1a\x02\xa1b\x81\xa1a\x03")
    assert_equal '{"1": 1, 1: 2, [1]: 3, [1]: 4}', text("\x84\xa11\x01\x01\x02\x91\x01\x03\x91\x01\x04")
  end

  test "no text makes a terminal do anything, or is read in another order, and what is no UTF-8 is shown as bytes" do
    {
      "\e]0;x\a\e[31m" => '"\u001b]0;x\u0007\u001b[31m"', "\u009b31m" => '"\u009b31m"', "\u202e\u2066\u200b\ufeff" => '"\u202e\u2066\u200b\ufeff"', "\u2028" => '"\u2028"',
      "\x7f\x00\r" => '"\u007f\u0000\r"', "\"\\" => '"\"\\\\"', "\u{e0001}" => '"\u{e0001}"', "a\xff\xc3é\xed\xa0\x80\e" => '"a\xff\xc3é\xed\xa0\x80\u001b"', "日本 😀" => '"日本 😀"'
    }.each do |value, shown|
      assert_equal shown, packed(value)
      assert_equal "{#{shown}: 1}", packed({value => 1})
    end
  end

  test "nothing of random bytes is obeyed by a terminal, and the text is as long as its limit at most" do
    random = Random.new(8)
    limits = Limits.new(entries: 20, text: 20, depth: 5, bytes: 3000)
    2000.times do |index|
      bytes = random.bytes(random.rand(400))
      type = index.even? ? :msgpack : :json
      [false, true].each do |listing|
        shown = Reading.show(bytes, type: type, limits: limits, listing: listing).text
        assert shown.valid_encoding?
        refute_match(/[[\p{Cc}\p{Cf}]&&[^\n]]/, shown)
        assert_operator shown.bytesize, :<=, 4000
      end
    end
  end

  test "short things share a line, long ones have lines of their own, and numbers fill theirs" do
    assert_equal '[1, {"a": [null, true]}]', packed([1, {"a" => [nil, true]}])
    assert_equal <<~TEXT.chomp, packed({"name" => "x" * 20, "list" => ["y" * 10, {"z" => []}], "numbers" => (1..15).to_a}, width: 40)
      {
        "name": "xxxxxxxxxxxxxxxxxxxx",
        "list": ["yyyyyyyyyy", {"z": []}],
        "numbers": [
          1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
          12, 13, 14, 15
        ]
      }
    TEXT
  end

  test "no line is wider than it may be where it can be broken" do
    100.times do |seed|
      packed(Array.new(5) { Generated.new(seed).value }, width: 60).each_line(chomp: true) do |line|
        assert(line.size <= 60 || !line.strip.match?(/\A[\[{].*[\]}],?\z/), line)
      end
    end
  end

  test "of what is long the beginning is shown, and how much more there is" do
    limits = Limits.new(entries: 3, text: 4, depth: 3, bytes: 100_000)
    {
      (1..10).to_a => "[1, 2, 3, … 7 more]", [1, 2, 3] => "[1, 2, 3]", {"a" => 1, "b" => [1] * 5, "c" => {}, "d" => [[1]], "e" => {"f" => {}}} => '{"a": 1, "b": [1, 1, 1, … 2 more], "c": {}, … 2 more}',
      "abcdefg" => '"abcd" … 3 more bytes', "éééééé" => '"éééé" … 4 more bytes', [[[[1, 2], 3]]] => "[[[[… 2 more], 3]]]", {"a" => {"b" => {"c" => {"d" => 1}}}} => '{"a": {"b": {"c": {… 1 more}}}}'
    }.each { |object, shown| assert_equal shown, packed(object, limits: limits) }
    assert_equal "bin(1,000, 00000000 … 996 more bytes)", text("\xc5\x03\xe8#{"\0" * 1000}", limits: limits)
    assert_equal "[1, 2, 3, … 1,231 more]", packed(Array.new(1234) { |index| (index < 3) ? index + 1 : {"a" => [1]} }, limits: limits)
    assert_equal "1234 … 3 more digits", Reading.show("1234567", limits: limits).text
  end

  test "a text that becomes too long ends, and says so" do
    shown = packed([["x" * 50] * 100] * 100, limits: Limits.new(entries: 1000, text: 1000, depth: 64, bytes: 5000)).lines
    assert_equal "… what follows is not shown: the text is too long", shown.last
    assert_operator shown.join.bytesize, :<, 5200
    assert_equal "\n… what follows is not shown: the text is too long", packed("x" * 100, limits: Limits.new(entries: 9, text: 1000, depth: 9, bytes: 50))
    # Nor is it read.
    assert_nil show(MessagePack.pack(["x" * 100]).b.sub("\x91".b, "\x92".b), limits: Limits.new(entries: 9, text: 1000, depth: 9, bytes: 50), width: 80).broken
  end

  test "what is broken is shown as far as it goes, with what is wrong" do
    {
      "\x92\x01\xa5abc" => '[1, "abc" … broken at byte 6: expected 6 bytes of the fixstr that begins at byte 2, but there are 4',
      "\xdd\xff\xff\xff\xff" => "[ … broken at byte 5: expected entry 1 of 4,294,967,295 of the array that begins at byte 0, but the body ends",
      "\x01\xc1" => "1\n … broken at byte 1: expected a value, but 0xc1 begins no value"
    }.each do |bytes, text|
      assert_equal text, text(bytes)
      assert_equal text[/broken (.*)/, 1], show(bytes).broken.message
    end
    assert_equal '{"a": "b" … broken at byte 8: expected the rest of a string, with control characters escaped, but the body ends', Reading.show('{"a": "b').text
    assert_match(/\A\[{65} … broken at byte 100,000: /, text("\x91" * 100_001, width: 1000))
  end

  test "several values back to back have a line each" do
    shown = show(["id", nil, "data"].to_msgpack + "\xc0".b + [[1] * 100].to_msgpack)
    assert_equal [3, 3], [shown.values, shown.text.lines.size]
    assert_equal "[\"id\", null, \"data\"]\nnull\n", shown.text.lines.first(2).join
    assert_equal "{\"a\": 1}\n[2]", Reading.show("{\"a\":1}\n[2]\n").text
    assert_equal ["", 0], Reading.show("").to_a.values_at(0, 2)
  end

  test "the listing has the byte and the form of each value" do
    shown = show("\x82\xa1a\x93\x01\xca\x3f\xc0\x00\x00\xc4\x01\xff\xa1a\xcd\x01\x00\xc0", listing: true).text
    assert_equal <<~TEXT.gsub(/^/, " " * 10).chomp, shown
       0  fixmap            {2
       1  fixstr              "a":
       3  fixarray            [3
       4  positive fixint       1
       5  float 32              1.5
      10  bin 8                 bin(1, ff)
      13  fixstr              "a": (again)
      15  uint 16             256
      18  nil               null
    TEXT
  end

  test "what a body is, is said by its type, else by its first bytes" do
    types = %w[application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac].to_h { |type| [type, :msgpack] }
    types.merge("application/json" => :json, "application/problem+json; charset=utf-8" => :json, "APPLICATION/VND.MSGPACK;x=y" => :msgpack).each do |type, kind|
      assert_equal kind, Reading.type_of("\x80".b, type), type
      assert_equal kind, Reading.type_of("{}", type), type
      assert Reading.known?(type)
    end
    {"{}" => :json, " \n[1" => :json, "\xEF\xBB\xBF{" => :json, "12" => :json, "-3" => :json, "null" => :json, "\x80" => :msgpack, "\x93\x01" => :msgpack, "\xc0" => :msgpack, "" => :msgpack}
      .each { |bytes, kind| assert_equal kind, Reading.type_of(bytes.b, "text/plain"), bytes.inspect }
    ["hello", "\x05\x01", "<html>"].each { |bytes| assert_nil Reading.type_of(bytes.b, nil) }
    refute Reading.known?("text/html")
    refute Reading.known?(nil)
  end
end
