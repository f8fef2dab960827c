# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/reading"
require "json"
require_relative "generated"

class ReadingJsonTest < Minitest::Test
  Reading = Hikyaku::Codec::Reading
  Broken = Reading::Broken

  def tokens(text)
    reader = Reading::Json.new(text)
    found = []
    while (token = reader.next)
      found << token
    end
    found
  end

  def strings(text) = tokens(text).select { |token| token.kind == :string }.map { |token| token.value.dup.force_encoding("UTF-8") }

  # Only what JSON has: texts, and finite numbers.
  def jsonable(object)
    case object
    when Array then object.map { |each| jsonable(each) }
    when Hash then object.transform_values { |each| jsonable(each) }
    when String then (object.valid_encoding? && object.encoding == Encoding::UTF_8) ? object : object.unpack1("H*")
    else object
    end
  end

  test "what is shown of generated JSON is the same JSON" do
    300.times do |seed|
      object = jsonable(Generated.new(seed).value)
      [JSON.generate(object), JSON.pretty_generate(object)].each do |json|
        shown = Reading.show(json, type: :json, limits: Reading::Printer::EVERYTHING)
        assert_equal [nil, 1], [shown.broken, shown.values]
        assert_equal [JSON.parse(json)], [JSON.parse(shown.text)], "seed #{seed}"
      end
    end
  end

  test "texts are those that JSON means" do
    assert_equal ["a\"\\/\b\f\n\r\té\u{1f600}\u2028"], strings('"a\\"\\\\\\/\\b\\f\\n\\r\\té\\uD83D\\ude00\\u2028"')
    assert_equal "\xED\xA0\x80a".b, tokens('"\ud800a"').first.value
  end

  test "numbers stay as they are written" do
    %w[0 -0 1.50 1E400 -12e-7 123456789012345678901234567890].each { |number| assert_equal [number], tokens(number).map(&:value) }
  end

  test "what is broken says the byte and what was expected there" do
    {
      "[1 2]" => [3, "expected a comma or ], but 0x32 is there"], "[1,]" => [3, "expected a value, but 0x5d is there"],
      '{"a" 1}' => [5, "expected a colon, but 0x31 is there"], "{a: 1}" => [1, "expected a key in quotes, but 0x61 is there"],
      '{"a": 1' => [7, "expected a comma or }, but the body ends"], '{"a":' => [5, "expected a value, but the body ends"], "[" => [1, "expected a value, but the body ends"],
      "-" => [0, "expected a number, but 0x2d is there"], "nul" => [0, "expected a value, but 0x6e is there"], "01" => [1, "expected white space between two values, but 0x31 is there"],
      '"ab' => [3, "expected the rest of a string, with control characters escaped, but the body ends"], '"\\q"' => [1, "expected an escape that JSON knows, but 0x5c is there"],
      "\"a\nb\"" => [2, "expected the rest of a string, with control characters escaped, but 0x0a is there"], '"\\u12"' => [1, "expected an escape that JSON knows, but 0x5c is there"]
    }.each do |text, (offset, message)|
      error = assert_raises(Broken, text) { tokens(text) }
      assert_equal [offset, "at byte #{offset}: #{message}"], [error.offset, error.message], text
    end
  end

  test "cut off at any byte, it raises Broken or is whole" do
    json = '{"a": [1.5e3, -2, null, true, {"\\ud83d\\ude00": "x"}], "b": {}}'
    (1...json.bytesize).each { |length| assert_raises(Broken) { tokens(json.byteslice(0, length)) } }
  end

  test "nesting costs no stack, and has a limit" do
    assert_equal 200_000, tokens("[" * 100_000 + "]" * 100_000).size
    assert_match(/begins inside 100,000 arrays and maps/, assert_raises(Broken) { tokens("[" * 100_001) }.message)
  end

  test "random bytes, and JSON with random bytes in it, raise Broken and nothing else" do
    random = Random.new(8)
    json = '{"a": [1.5e3, -2, null, true, {"\\ud83d\\ude00": "xyz"}], "b": {}}'
    2000.times do |index|
      text = index.even? ? random.bytes(random.rand(60)) : json.dup.b.tap { |bytes| 3.times { bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) } }
      tokens(text)
    rescue Broken => error
      assert_operator error.offset, :<=, text.bytesize
    end
  end
end
