# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/reading"
require "msgpack"
require_relative "generated"

class ReadingMessagePackTest < Minitest::Test
  Reading = Hikyaku::Codec::Reading
  Broken = Reading::Broken

  # Values of which tokens are made up again.
  class Builder
    attr_reader :values

    def initialize
      @values = []
      @open = []
    end

    def <<(token)
      case token.kind
      when :array, :map then @open << [token.kind, []]
      when :end
        kind, parts = @open.pop
        add((kind == :map) ? parts.each_slice(2).to_h : parts)
      when :string then add(token.value.dup.force_encoding("UTF-8"))
      else add(token.value)
      end
    end

    def add(value) = (@open.empty? ? @values : @open.last.last) << value
  end

  def values(bytes, pieces: [bytes])
    reader = Reading::MessagePack.new
    builder = Builder.new
    pieces.each do |piece|
      reader << piece
      while (token = reader.next)
        builder << token
      end
    end
    reader.finish
    assert_nil reader.next
    builder.values
  end

  def tokens(bytes, **options)
    reader = (Reading::MessagePack.new(**options) << bytes.b).finish
    found = []
    while (token = reader.next)
      found << token
    end
    found
  end

  # All values back to back, extensions as type and bytes, or that they are broken.
  def by_gem(bytes)
    unpacker = MessagePack::Unpacker.new(allow_unknown_ext: true)
    unpacker.feed(bytes)
    found = []
    found << plain(unpacker.read) until unpacker.buffer.empty?
    found
  rescue EOFError, MessagePack::MalformedFormatError
    :broken
  end

  def plain(value)
    case value
    when MessagePack::ExtensionValue then [value.type, value.payload]
    when Array then value.map { |each| plain(each) }
    when Hash then value.to_h { |key, each| [plain(key), plain(each)] }
    else value
    end
  end

  test "what the gem writes is read as the gem reads it, whole and byte by byte" do
    300.times do |seed|
      object = Generated.new(seed).value
      bytes = MessagePack.pack(object)
      assert_equal [MessagePack.unpack(bytes)], values(bytes), "seed #{seed}"
      assert_equal [MessagePack.unpack(bytes)], values(bytes, pieces: bytes.chars), "seed #{seed}" if bytes.bytesize < 500
    end
  end

  test "of bytes that were changed it reads what the gem reads, and finds broken what the gem finds broken" do
    random = Random.new(8)
    outcomes = 3000.times.map do |index|
      bytes = MessagePack.pack(Generated.new(index % 100).value(3))
      random.rand(1..3).times { bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) }
      theirs = by_gem(bytes)
      ours = begin
        values(bytes)
      rescue Broken
        :broken
      end
      # NaN is not itself.
      assert_equal theirs.inspect, ours.inspect, bytes.inspect
      ours == :broken
    end
    assert_operator outcomes.count(true), :>, 300
    assert_operator outcomes.count(false), :>, 300
  end

  test "every form of the specification is read, with its name, its offset and its value" do
    {
      "\x07" => ["positive fixint", 7], "\xe0" => ["negative fixint", -32], "\xc0" => ["nil", nil], "\xc2" => ["false", false], "\xc3" => ["true", true],
      "\xcc\xff" => ["uint 8", 255], "\xcd\xff\xfe" => ["uint 16", 65_534], "\xce\xff\xff\xff\xfe" => ["uint 32", 4_294_967_294],
      "\xcf\xff\xff\xff\xff\xff\xff\xff\xfe" => ["uint 64", 2**64 - 2], "\xd0\x80" => ["int 8", -128], "\xd1\x80\x00" => ["int 16", -32_768],
      "\xd2\x80\x00\x00\x00" => ["int 32", -2**31], "\xd3\x80\x00\x00\x00\x00\x00\x00\x00" => ["int 64", -2**63], "\xca\x3f\xc0\x00\x00" => ["float 32", 1.5],
      "\xcb\xbf\xf8\x00\x00\x00\x00\x00\x00" => ["float 64", -1.5], "\xa2ab" => ["fixstr", "ab"], "\xd9\x02ab" => ["str 8", "ab"],
      "\xda\x00\x02ab" => ["str 16", "ab"], "\xdb\x00\x00\x00\x02ab" => ["str 32", "ab"], "\xc4\x01\xff" => ["bin 8", "\xff".b],
      "\xc5\x00\x01\xff" => ["bin 16", "\xff".b], "\xc6\x00\x00\x00\x01\xff" => ["bin 32", "\xff".b], "\xd4\xfea" => ["fixext 1", [-2, "a"]],
      "\xd5\x05ab" => ["fixext 2", [5, "ab"]], "\xd6\x05abcd" => ["fixext 4", [5, "abcd"]], "\xd7\x05abcdefgh" => ["fixext 8", [5, "abcdefgh"]],
      "\xd8\x05abcdefghijklmnop" => ["fixext 16", [5, "abcdefghijklmnop"]], "\xc7\x03\x05abc" => ["ext 8", [5, "abc"]],
      "\xc8\x00\x03\x05abc" => ["ext 16", [5, "abc"]], "\xc9\x00\x00\x00\x03\x05abc" => ["ext 32", [5, "abc"]]
    }.each do |bytes, (form, value)|
      token = tokens("\xc0#{bytes}").last
      assert_equal [form, value, 1], [token.form, token.value, token.offset], bytes.inspect
      refute_nil value if token.kind != :nil
    end
    {"\x91\xc0" => "fixarray", "\xdc\x00\x01\xc0" => "array 16", "\xdd\x00\x00\x00\x01\xc0" => "array 32", "\x81\xc0\xc0" => "fixmap",
     "\xde\x00\x01\xc0\xc0" => "map 16", "\xdf\x00\x00\x00\x01\xc0\xc0" => "map 32"}.each do |bytes, form|
      found = tokens(bytes)
      assert_equal [form, 1, :end], [found.first.form, found.first.value, found.last.kind]
    end
  end

  test "what is broken says the byte and what was expected there" do
    {
      "\xc1" => [0, "expected a value, but 0xc1 begins no value"],
      "\x92\x01\xc1" => [2, "expected entry 2 of 2 of the array that begins at byte 0, but 0xc1 begins no value"],
      "\xdd\xff\xff\xff\xff" => [5, "expected entry 1 of 4,294,967,295 of the array that begins at byte 0, but the body ends"],
      "\x01\xdf\xff\xff\xff\xff\x01\x02" => [8, "expected key 2 of 4,294,967,295 of the map that begins at byte 1, but the body ends"],
      "\x82\x01\x02\x03" => [4, "expected the value of key 2 of 2 of the map that begins at byte 0, but the body ends"],
      "\x82\x01" => [2, "expected the value of key 1 of 2 of the map that begins at byte 0, but the body ends"],
      "\xdb\xff\xff\xff\xffab" => [7, "expected 4,294,967,300 bytes of the str 32 that begins at byte 0, but there are 7"],
      "\xcd\x01" => [2, "expected 3 bytes of the uint 16 that begins at byte 0, but there are 2"],
      "\xc9\x00\x00\x00" => [4, "expected 5 bytes of the ext 32 that begins at byte 0, but there are 4"]
    }.each do |bytes, (offset, message)|
      error = assert_raises(Broken, bytes.inspect) { tokens(bytes) }
      assert_equal [offset, "at byte #{offset}: #{message}"], [error.offset, error.message]
      assert_kind_of Hikyaku::Error, error
    end
  end

  test "cut off at any byte, it is broken at the last, or only wants more" do
    bytes = MessagePack.pack({"a" => [1, 300, "text", "\xff".b, 1.5, nil], "b" => {"c" => "x" * 40}, "t" => MessagePack::ExtensionValue.new(5, "abc")})
    (1...bytes.bytesize).each do |length|
      assert_equal length, assert_raises(Broken) { tokens(bytes.byteslice(0, length)) }.offset
      reader = Reading::MessagePack.new << bytes.byteslice(0, length)
      nil while reader.next
      assert_operator reader.offset, :<=, length
    end
  end

  test "nesting costs no stack, and has a limit" do
    assert_equal 200_001, tokens("#{"\x91" * 100_000}\xc0").size
    error = assert_raises(Broken) { tokens("#{"\x91" * 100_001}\xc0") }
    assert_equal "at byte 100,000: a fixarray begins inside 100,000 others, and deeper is not read", error.message
    assert_raises(Broken) { tokens("\x81\xc0" * 4 + "\xc0", max_depth: 3) }
  end

  test "a value may have so many bytes with all its parts, and one behind the other the same again" do
    assert_equal 6, tokens("\xa4abcd" * 6, max_bytes: 5).size
    {"\xa5abcde" => 0, "\xdb\xff\xff\xff\xff" => 0, "\x95\x01\x02\x03\x04\x05" => 5, "\x01\x92\xa2ab\xc4\x02ab" => 5}.each do |bytes, offset|
      assert_equal offset, assert_raises(Broken, bytes.inspect) { tokens(bytes, max_bytes: 5) }.offset
    end
  end

  test "a length that is too much is refused when it is read, before its bytes are there" do
    reader = Reading::MessagePack.new(max_bytes: 1000) << "\xdb\x7f\xff\xff\xff".b
    assert_match(/a str 32 of 2,147,483,647 bytes begins here, and the value may have 1,000 in all/, assert_raises(Broken) { reader.next }.message)
    reader = Reading::MessagePack.new(max_bytes: 1000) << MessagePack.pack(["x" * 600]).b.sub("\x91".b, "\x92".b) << "\xda\x01\xf4".b
    2.times { refute_nil reader.next }
    assert_match(/a str 16 of 500 bytes/, assert_raises(Broken) { reader.next }.message)
  end

  test "random bytes raise Broken and nothing else" do
    random = Random.new(8)
    broken = 2000.times.count do
      bytes = random.bytes(random.rand(200))
      tokens(bytes).size
      false
    rescue Broken => error
      assert_operator error.offset, :<=, bytes.bytesize
      true
    end
    assert_operator broken, :>, 500
  end

  test "what was read is not kept" do
    reader = Reading::MessagePack.new
    piece = MessagePack.pack("x" * 60_000)
    100.times do
      reader << piece
      assert_equal :string, reader.next.kind
    end
    assert_equal 100 * piece.bytesize, reader.offset
    assert_operator reader.instance_variable_get(:@buffer).bytesize, :<, 4 * piece.bytesize
  end
end
