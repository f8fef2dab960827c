# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"
require "msgpack"

# The specification of MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md
class CodecMessagePackTest < Minitest::Test
  Codec = Hikyaku::Codec
  PACKED = Codec[:msgpack]

  READ = {
    "c0" => nil, "c2" => false, "c3" => true,
    "00" => 0, "7f" => 127, "e0" => -32, "ff" => -1,
    "ccff" => 255, "cdffff" => 65_535, "ceffffffff" => 2**32 - 1, "cfffffffffffffffff" => 2**64 - 1,
    "d080" => -128, "d18000" => -32_768, "d280000000" => -2**31, "d38000000000000000" => -2**63, "d37fffffffffffffff" => 2**63 - 1,
    "ca3fc00000" => 1.5, "cb3fb999999999999a" => 0.1, "cb8000000000000000" => -0.0,
    "a0" => "", "a161" => "a", "d902c3bc" => "ü", "da0001" + "61" => "a", "db0000000161" => "a",
    "c403ff0061" => "\xff\0a".b, "c5000161" => "a".b, "c60000000161" => "a".b, "c400" => "".b,
    "90" => [], "92c0a0" => [nil, ""], "dc000101" => [1], "dd0000000101" => [1], "dc0000" => [],
    "80" => {}, "81a16101" => {"a" => 1}, "de0001a16101" => {"a" => 1}, "df00000001d9016101" => {"a" => 1}, "df00000000" => {},
    "d6ff00000001" => Time.at(1), "d6ffffffffff" => Time.at(2**32 - 1),
    "d7ff" + "ee6b27fc" + "00000000" => Time.at(0, 999_999_999, :nsec), "d7ff" + "00000003" + "ffffffff" => Time.at(2**34 - 1),
    "c70cff" + "00000001" + "ffffffffffffffff" => Time.at(-1, 1, :nsec),
    "c704ff00000001" => Time.at(1), "c80004ff00000001" => Time.at(1), "c900000008ff0000000000000001" => Time.at(1)
  }.freeze

  # Bytes, and what is said of them.
  REFUSED = {
    "" => "a value is expected, and there is nothing more, at byte 0",
    "c1" => "there is 0xC1, which begins no value, at byte 0",
    "92c0c1" => "there is 0xC1, which begins no value, at byte 2",
    "c0c0" => "1 bytes stand behind the value, which ends at byte 1",
    "9101ff" => "1 bytes stand behind the value, which ends at byte 2",
    # cut
    "cc" => "1 bytes are expected, and there are only 0 more, at byte 1",
    "cb00000000" => "8 bytes are expected, and there are only 4 more, at byte 1",
    "a2c3" => "2 bytes are expected, and there are only 1 more, at byte 1",
    "da00" => "2 bytes are expected, and there are only 1 more, at byte 1",
    "81a161" => "a value is expected, and there is nothing more, at byte 3",
    "9201" => "there is an array of 2, and only 1 bytes more, at byte 1",
    # what is claimed
    "dfffffffff" => "there is a map of 4294967295, and only 0 bytes more, at byte 5",
    "ddffffffff" => "there is an array of 4294967295, and only 0 bytes more, at byte 5",
    "deffff" + "00" * 65_535 => "there is a map of 65535, and only 65535 bytes more, at byte 3",
    "dbffffffff61" => "4294967295 bytes are expected, and there are only 1 more, at byte 5",
    "c6ffffffff61" => "4294967295 bytes are expected, and there are only 1 more, at byte 5",
    "c9ffffffffff" => "4294967295 bytes are expected, and there are only 0 more, at byte 6",
    # text
    "a2c328" => "there is text that is no UTF-8 at byte 1",
    "92a161d902ff61" => "there is text that is no UTF-8 at byte 5",
    "a3eda080" => "there is text that is no UTF-8 at byte 1",
    # keys
    "810101" => "there is a key that is no text at byte 1",
    "81c4016101" => "there is a key that is no text at byte 1",
    "81d6ff0000000101" => "there is a key that is no text at byte 1",
    "8190c0" => "there is a key that is no text at byte 1",
    "81dc000101c0" => "there is a key that is no text at byte 1",
    "82a16101a16102" => "there is a key for the second time at byte 4",
    "82a16101d9016102" => "there is a key for the second time at byte 4",
    # extension types: none but timestamps, also not one in another
    "d40100" => "there is the extension type 1, which is not known, at byte 1",
    "c70000" => "there is the extension type 0, which is not known, at byte 2",
    "c7020192c0" => "there is the extension type 1, which is not known, at byte 2",
    "d8ff" + "00" * 16 => "there is a timestamp that is none at byte 2",
    "c700ff" => "there is a timestamp that is none at byte 3",
    "d7ff" + "ee6b2800" + "00000000" => "there is a timestamp that is none at byte 2",
    "c70cff" + "3b9aca00" + "0000000000000000" => "there is a timestamp that is none at byte 3",
    # numbers
    "cb7ff8000000000000" => "there is a number that is none or endless at byte 0",
    "92c0cbfff0000000000000" => "there is a number that is none or endless at byte 2",
    "ca7f800000" => "there is a number that is none or endless at byte 0"
  }.freeze

  test "every form of a value is read" do
    READ.each do |hex, object|
      read = PACKED.load([hex].pack("H*"))
      object.nil? ? assert_nil(read) : assert_equal([object, object.class], [read, read.class], hex)
      assert_equal object.encoding, read.encoding, hex if object.is_a?(String)
      assert_predicate read, :utc? if object.is_a?(Time)
    end
  end

  test "what is not exactly one value is refused, and it is said what is wrong, and where" do
    REFUSED.each do |hex, message|
      error = assert_raises(Codec::Malformed, hex[0, 60]) { PACKED.load([hex].pack("H*")) }
      assert_equal "MessagePack: #{message}", error.message
    end
  end

  test "what the gem writes is read as the gem reads it" do
    [2**14, 2**17].each do |size|
      object = {"text" => "a" * size, "list" => (0..size / 8).to_a, "map" => (1..size / 8).to_h { |i| ["k#{i}", -i] }, "bytes" => "\xff".b * size}
      assert_equal object, PACKED.load(MessagePack.pack(object))
      assert_equal MessagePack.pack(object), PACKED.dump(object)
    end
  end

  test "nothing is read beyond the limits" do
    {
      [1, 2, 3, 4] => {max_items: 3},
      {"a" => 1, "b" => {"c" => 2}} => {max_items: 2},
      [[], [], [], []] => {max_items: 3},
      [[[1]]] => {max_depth: 2},
      [[[]]] => {max_depth: 2},
      "abc" => {max_bytes: 3}
    }.each { |object, limits| assert_raises(Codec::TooLarge) { PACKED.load(MessagePack.pack(object), **limits) } }
    assert_equal [1, [2], {"a" => 3}], PACKED.load(MessagePack.pack([1, [2], {"a" => 3}]), max_items: 5, max_depth: 2, max_bytes: 8)
    assert_equal [1, [2]], PACKED.load(MessagePack.pack([1, [2]]), max_items: 2**70), "as many as one likes"
    nested = ("\x91" * 100 + "\xc0").b
    assert_equal 100, PACKED.load(nested).inspect.count("[")
    [101, 127, 128, 129, 100_000].each { |levels| assert_raises(Codec::TooLarge) { PACKED.load(("\x91" * levels + "\xc0").b) } }
    assert_raises(Codec::TooLarge) { PACKED.load(("\x81\xa1a" * 101 + "\xc0").b) }
    assert_equal 500, PACKED.load(("\x91" * 500 + "\xc0").b, max_depth: 500).inspect.count("[")
    assert_raises(ArgumentError) { PACKED.load(nested, max_depth: 501) }
  end

  test "a header's claim costs nothing" do
    before = ObjectSpace.memsize_of_all if require "objspace"
    [0xdd, 0xdf].each { |first| assert_raises(Codec::Malformed) { PACKED.load([first, 0xffff_ffff].pack("CN")) } }
    counts = "\x93\xdc\xff\xff".b + "\x01" * 65_535 + "\xdc\xff\xff".b
    assert_raises(Codec::Malformed) { PACKED.load(counts + "\x01") }
    assert_operator ObjectSpace.memsize_of_all - before, :<, 50_000_000 if before
  end

  test "moments are timestamps of the smallest form" do
    {
      Time.at(0) => "d6ff00000000",
      Time.at(2**32 - 1) => "d6ffffffffff",
      Time.at(2**32) => "d7ff0000000100000000",
      Time.at(1, 1, :nsec, in: "+09:00") => "d7ff0000000400000001",
      Time.at(2**34) => "c70cff000000000000000400000000",
      Time.at(-1, 999_999_999, :nsec) => "c70cff3b9ac9ffffffffffffffffff"
    }.each { |time, hex| assert_equal hex, PACKED.dump(time).unpack1("H*"), time.inspect }
    assert_match(/further away/, assert_raises(Codec::Unrepresentable) { PACKED.dump([Time.at(2**63)]) }.message)
    assert_equal "91c0", PACKED.dump([nil]).unpack1("H*"), "the packer is used again after that"
  end

  test "bytes are bytes, integers beyond 64 bits are text" do
    assert_equal "93" + "c402ff61" + "a3" + "c3bc61" + "c40161", PACKED.dump(["\xffa".b, "üa", "a".b]).unpack1("H*")
    assert_equal ["18446744073709551616", "-9223372036854775809", 2**64 - 1, -2**63], PACKED.load(PACKED.dump([2**64, -2**63 - 1, 2**64 - 1, -2**63]))
  end

  test "the gem's own factory is left alone, and what it has been told is not written" do
    point = Class.new { def to_msgpack_ext = "secret" }
    MessagePack::DefaultFactory.register_type(1, point, packer: :to_msgpack_ext)
    assert_raises(Codec::Unrepresentable) { PACKED.dump(point.new) }
    assert_equal [point], MessagePack::DefaultFactory.registered_types(:packer).map { |type| type[:class] }
    assert_raises(NoMethodError) { MessagePack.pack(Time.at(0)) }
  end

  test "threads write at the same time" do
    bytes = PACKED.dump([1, "a"] * 100)
    threads = Array.new(20) { Thread.new { 100.times.all? { PACKED.dump([1, "a"] * 100) == bytes } } }
    assert threads.all?(&:value)
  end
end
