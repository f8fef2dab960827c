# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "hikyaku/codec"
require "msgpack"
require "support/generated_objects"

# MessagePack is read in C and in Ruby, and both read and refuse the same.
class CodecUnpackerTest < Minitest::Test
  PACKED = Hikyaku::Codec[:msgpack]
  Reader = Hikyaku::Codec::MessagePack.const_get(:Reader)
  Timestamp = Hikyaku::Codec::MessagePack.const_get(:Timestamp)
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  # What first bytes may claim: forms of every kind, with counts that are true, false, and false by one.
  BEHIND = ["", "\0", "\1", "\0\1a", "\0\0\0\1a", "\xff\0\0\0\1", "\3\xff#{"\0" * 12}", "\xff" * 9, "\1\xffaaaa"].map(&:b).freeze
  FORMS = (0..255).flat_map { |first| BEHIND.map { |rest| first.chr + rest } }.freeze

  def setup
    skip "the extension in C is not compiled" unless Hikyaku::Codec.const_defined?(:Unpacker)
  end

  test "every first byte, with much and little behind it" do
    FORMS.each { |bytes| assert_same_reading bytes }
    FORMS.each { |bytes| assert_same_reading "\x92".b + bytes + "\x01" }
    FORMS.each { |bytes| assert_same_reading "\x81".b + bytes + "\x01" }
  end

  # What is wrong with numbers and keys alone.
  WRONG = %w[
    cb7ff8000000000000 cbfff0000000000000 ca7f800000 82a16101a16102 82a16101d9016102 81c0c0 8190c0 d8ff00000000000000000000000000000000 a3eda080
  ].freeze

  test "numbers that are none, keys that are there already, and timestamps of another length are refused" do
    WRONG.each { |hex| refute assert_same_reading([hex].pack("H*")), hex }
    %w[cb8000000000000000 ca3fc00000 82a16101a16202].each { |hex| assert assert_same_reading([hex].pack("H*")), hex }
    ["\xd8\xff", "\xc7\x0d\xff", "\xd6\xfe"].each { |first| Hikyaku::Codec::Unpacker.unpack(first.b + "\0" * 16, 1, 1) { flunk "nobody asks for it" } }
  end

  test "what was something once and was changed at random, cut, or made longer" do
    random = Random.new(SEED)
    generator = GeneratedObjects.new(random)
    read = 0
    120.times do
      whole = PACKED.dump(generator.next(3))
      40.times do
        bytes = whole.dup
        random.rand(3).times { bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) }
        bytes = bytes.byteslice(0, random.rand(bytes.bytesize + 1)) if random.rand(4).zero?
        bytes << random.bytes(1) if random.rand(8).zero?
        read += 1 if assert_same_reading(bytes, levels: random.rand(1..4), items: random.rand(60))
      end
    end
    assert_includes 500..4_300, read
  end

  test "limits are the same to the last level and the last item" do
    bytes = MessagePack.pack([[[1, 2], {"a" => [3]}], 4])
    read = (1..5).to_a.product((0..9).to_a).count { |levels, items| assert_same_reading(bytes, levels: levels, items: items) }
    assert_equal 4, read, "4 levels and 8 items, or more"
    [["\x91", "\xc0"], ["\x81\xa1a", "\xc0"]].each do |opening, inside|
      [499, 500, 501, 100_000].each { |levels| assert_same_reading((opening * levels + inside).b, levels: 500) }
    end
  end

  test "a counted claim is believed as far as there are bytes, and makes nothing before" do
    require "objspace"
    ["\xdd\xff\xff\xff\xff", "\xdf\x7f\xff\xff\xff\xa1a", "\xdb\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\xff",
      "\xdd\x00\x03\xd0\x90".b * 40 + "\xc0".b * 250_000].each do |bytes|
      before = ObjectSpace.memsize_of_all
      refute assert_same_reading(bytes.b)
      assert_operator ObjectSpace.memsize_of_all - before, :<, 8_000_000
    end
  end

  test "the strings of what was read are its own, and keys are frozen and shared" do
    first, second = Array.new(2) { PACKED.load("\x82\xa1a\xa1b\xa1c\xc4\x01d".b) }
    assert_equal [false, false], first.values.map(&:frozen?)
    assert_equal [Encoding::UTF_8, Encoding::BINARY], first.values.map(&:encoding)
    first.keys.zip(second.keys) { |one, other| assert_same one, other }
    assert_equal [[true, Encoding::UTF_8]] * 2, first.keys.map { |key| [key.frozen?, key.encoding] }
  end

  test "bytes that another thread changes meanwhile are read as they were" do
    bytes = "\x92\xd6\xff\x00\x00\x00\x01\xa5first".b + ""
    read = Timestamp.stub(:time, ->(_) { bytes.replace("\xc1" * 100) && Time.at(1) }) { PACKED.load(bytes) }
    assert_equal [Time.at(1), "first"], read
  end

  test "without the extension everything is read as well, and an exception of Ruby's goes through" do
    native = Hikyaku::Codec::Unpacker
    assert_equal [1], native.stub(:unpack, ->(*) { native }) { PACKED.load("\x91\x01".b) }
    Timestamp.stub(:time, ->(_) { raise Interrupt }) { assert_raises(Interrupt) { PACKED.load("\xd6\xff\x00\x00\x00\x01".b) } }
  end

  test "memory is marked while it is read, and moved where Ruby likes" do
    bytes = PACKED.dump(Array.new(4) { |index| {"key #{index}" => ["text" * 10, Time.at(index), {"bytes" => "\xff".b * 50}]} })
    expected = PACKED.load(bytes)
    GC.stress = true
    again = PACKED.load(bytes)
    GC.stress = false
    assert_equal expected, again
  ensure
    GC.stress = false
  end

  private

  # @return [Boolean] whether it was read
  def assert_same_reading(bytes, levels: 100, items: 250_000)
    in_c = Hikyaku::Codec::Unpacker.unpack(bytes.dup, levels, items) { |timestamp| Timestamp.time(timestamp) }
    in_ruby = begin
      Reader.new(bytes, max_depth: levels, max_items: items).read
    rescue Hikyaku::Codec::Malformed
      Hikyaku::Codec::Unpacker
    end
    assert alike?(in_ruby, in_c), "#{bytes[0, 200].inspect}: #{in_ruby.inspect[0, 200]} in Ruby, #{in_c.inspect[0, 200]} in C"
    !in_c.equal?(Hikyaku::Codec::Unpacker)
  end

  # Also 0.0 and -0.0, and text and bytes, are two things.
  def alike?(one, other)
    return false unless one.instance_of?(other.class)
    case one
    when Hash then one.keys == other.keys && alike?(one.keys, other.keys) && alike?(one.values, other.values)
    when Array then one.size == other.size && one.zip(other).all? { |each, another| alike?(each, another) }
    when String then one == other && one.encoding == other.encoding
    when Float then [one].pack("G") == [other].pack("G")
    when Time then one == other && one.nsec == other.nsec && one.utc? && other.utc?
    else one == other
    end
  end
end
