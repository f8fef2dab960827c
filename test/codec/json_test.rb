# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"

class CodecJSONTest < Minitest::Test
  Codec = Hikyaku::Codec
  JSON_FORMAT = Codec[:json]

  # Input, and what is said of it.
  REFUSED = {
    "" => /\AJSON: the text is none/,
    " \n" => /the text is none/,
    "nul" => /the text is none/,
    "[1] 2" => /the text is none/,
    "[1,]" => /the text is none/,
    "{\"a\"}" => /the text is none/,
    "[\"a\u0001\"]" => /the text is none/,
    "[\"\\x\"]" => /the text is none/,
    "\u{feff}[]" => /the text is none/,
    "[NaN]" => /the text is none/,
    "[Infinity]" => /the text is none/,
    "[-Infinity]" => /the text is none/,
    "[1] // done" => /the text is none/,
    "[\"abc" => /the text is none/,
    "[01]" => /the text is none/,
    "[\"\\ud800\"]" => /the text is none|half of a pair/,
    "[\"\\udc00\"]" => /the text is none|half of a pair/,
    "[1e999999999]" => /a number is out of range/,
    "[-1E+309]" => /a number is out of range/,
    "{\"a\":[#{"9" * 299}e99]}" => /a number is out of range/,
    "[#{"9" * 400}.0]" => /a number is out of range/,
    "[#{"9" * 1_001}]" => /a number has more than 1000 digits/,
    "[0.#{"1" * 1_001}]" => /a number has more than 1000 digits/,
    "{\"a\":1,\"b\":{\"a\":1,\"\\u0061\":2}}" => /an object has a key twice/,
    "[\"\xff\"]" => /the text is not UTF-8 from byte 2 on/,
    "[\"ü\xc3\"]" => /the text is not UTF-8 from byte 4 on/,
    "[\"\xed\xa0\x80\"]" => /not UTF-8 from byte 2/,
    "[1]".encode("UTF-16LE") => /the text is none/
  }.freeze

  test "what is not exactly JSON is refused, and it is said what is wrong" do
    REFUSED.each do |text, message|
      error = assert_raises(Codec::Malformed, text.inspect[0, 60]) { JSON_FORMAT.load(text) }
      assert_match message, error.message
      assert_kind_of Hikyaku::Error, error
    end
  end

  test "what is refused is not quoted: it may be somebody's secret" do
    ["{\"password\": tiger}", "{\"tiger\":1,\"tiger\":2}", "[\"tiger", "tiger"].each do |text|
      refute_includes assert_raises(Codec::Malformed) { JSON_FORMAT.load(text) }.message, "tiger"
    end
  end

  test "what is JSON is read exactly, whatever it looks like" do
    digits = "9" * 1_000
    {
      "[#{digits}]" => [digits.to_i],
      "[1.7976931348623157e308,1e-400,-0.0]" => [Float::MAX, 0.0, -0.0],
      "{\"\":\"\\ud83d\\ude00\\u0000\"}" => {"" => "😀\0"},
      "[\"1e999\",\"#{digits}9\",\"\\\\\",\"\\\"\"]" => ["1e999", "#{digits}9", "\\", "\""],
      " null " => nil,
      "\"a\"" => "a"
    }.each do |text, object|
      text = text.b
      object.nil? ? assert_nil(JSON_FORMAT.load(text)) : assert_equal(object, JSON_FORMAT.load(text))
    end
    refute_predicate "[]".b.tap { |bytes| JSON_FORMAT.load(bytes) }, :frozen?
  end

  test "nothing is read beyond the limits" do
    {
      "[1,2,3,4]" => {max_items: 3},
      "{\"a\":1,\"b\":{\"c\":2}}" => {max_items: 2},
      "[\"\\\\\",\",\",\"\\\",\",4]" => {max_items: 3},
      "[[],[],[],[]]" => {max_items: 3},
      "[[[1]]]" => {max_depth: 2},
      "[" * 100_000 => {},
      "{\"a\":" * 101 => {},
      "[1]  " => {max_bytes: 4}
    }.each { |text, limits| assert_raises(Codec::TooLarge, text[0, 40]) { JSON_FORMAT.load(text, **limits) } }
    assert_equal [1, 2, 3], JSON_FORMAT.load("[1,2,3]", max_items: 3, max_depth: 1, max_bytes: 7)
    assert_equal ["\\", ",[{", "\",", []], JSON_FORMAT.load("[\"\\\\\",\",[{\",\"\\\",\",[ ]]", max_items: 4)
    assert_equal [{}, [], {"a" => [1]}], JSON_FORMAT.load("[{ },[\n],{\"a\":[1]}]", max_items: 5)
    assert_raises(ArgumentError) { JSON_FORMAT.load("[]", max_depth: 501) }
    assert_raises(ArgumentError) { JSON_FORMAT.load("[]", max_depth: 0) }
  end

  test "JSON is written as the text that it is: compact, UTF-8, as bytes" do
    bytes = JSON_FORMAT.dump({"a" => ["ü", 1.0, "</script>\u2028"]})
    assert_equal "{\"a\":[\"ü\",1.0,\"</script>\u2028\"]}".b, bytes
    assert_equal Encoding::BINARY, bytes.encoding
  end

  test "a zero below zero stays one" do
    written = JSON_FORMAT.dump({"a" => [0.0, -0.0, 10.0, 0.05], "-0.0" => {"b" => -0.0}, "c" => "0.0"})
    assert_equal '{"a":[0.0,-0.0,10.0,0.05],"-0.0":{"b":-0.0},"c":"0.0"}', written
    assert_equal [Float::INFINITY, -Float::INFINITY, -Float::INFINITY], JSON_FORMAT.load(written).then { |read| [read["a"][0], read["a"][1], read["-0.0"]["b"]] }.map { |zero| 1 / zero }
  end
end
