# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/coding"
require "brotli"
require "zstd-ruby"

# Whole bodies and bodies in pieces, through each coding and back by libraries that are not ours.
class CodingTest < Minitest::Test
  Coding = Hikyaku::Codec::Coding
  UNDONE = {"gzip" => Zlib.method(:gunzip), "br" => Brotli.method(:inflate), "zstd" => Zstd.method(:decompress)}.freeze
  TEXTS = ["", "a", "é" * 40, "abc" * 100_000, Random.new(1).bytes(70_000), ("\x00".b * 3)].freeze

  test "codings are known by the names that HTTP has for them" do
    assert_equal %w[gzip gzip br zstd], [:gzip, "x-gzip", :br, "zstd"].map { |name| Coding[name].name }
    error = assert_raises(Coding::Unknown) { Coding[:deflate] }
    assert_kind_of Hikyaku::Error, error
    assert_match(/"deflate" is not known; gzip, br and zstd are/, error.message)
    assert_operator assert_raises(Coding::Unknown) { Coding["x" * 1_000_000] }.message.size, :<, 200
  end

  UNDONE.each do |name, undo|
    test "what is compressed whole by #{name} is the same again" do
      coding = Coding[name]
      assert_predicate coding, :available?
      TEXTS.each do |text|
        bytes = coding.compress(text)
        assert_equal Encoding::BINARY, bytes.encoding
        assert_same_bytes text, undo.call(bytes)
      end
      assert_operator coding.compress("abc" * 1_000).bytesize, :<, 100
    end

    test "what is given to a stream of #{name} in pieces is the same again, and each piece once it is flushed" do
      stream = Coding[name].stream
      decoded = decoder(name)
      ["one", "", "two", "é", "x" * 100_000].each do |piece|
        assert_same_bytes piece, decoded.call((stream << piece) + stream.flush)
      end
      assert_equal "".b, decoded.call(stream.flush + stream.flush)
      whole = Coding[name].stream.then { |other| TEXTS.map { |text| (other << text) + other.flush }.join + other.finish }
      assert_same_bytes TEXTS.map(&:b).join, undo.call(whole)
    end

    test "a stream of #{name} that is closed early leaves nothing to the next body" do
      20.times do
        stream = Coding[name].stream
        stream << "a secret of somebody else" * 10_000
        stream.close
        stream.close
      end
      assert_equal "mine", undo.call(Coding[name].compress("mine"))
      assert_equal "mine", undo.call(Coding[name].stream.then { |other| (other << "mine") + other.finish })
    end

    test "threads that compress by #{name} at the same time do not disturb one another" do
      texts = Array.new(12) { |index| "#{index} " * (index + 1) * 500 }
      results = texts.map { |text| Thread.new { Array.new(20) { Coding[name].compress(text) } } }.map(&:value)
      texts.zip(results) { |text, compressed| assert(compressed.all? { |bytes| undo.call(bytes).b == text }) }
    end

    test "levels of #{name} are those that it has" do
      smallest = {"gzip" => 9, "br" => 11, "zstd" => 19}.fetch(name)
      text = Array.new(500) { |index| %({"id":#{index},"name":"member #{index * 7919 % 1_000}","score":#{index * 104_729 % 9_973}}) }.join(",")
      assert_operator Coding[name].compress(text, level: smallest).bytesize, :<, Coding[name].compress(text, level: 1).bytesize
      [smallest + 1, -1, "6", 1.5].each do |level|
        error = assert_raises(Coding::InvalidLevel) { Coding[name].compress(text, level: level) }
        assert_match(/coding #{name}; it has \d to #{smallest}/, error.message)
        assert_raises(Coding::InvalidLevel) { Coding[name].stream(level: level) }
      end
    end
  end

  {"gzip" => Zlib::Deflate, "zstd" => Zstd::StreamingCompress}.each do |name, compressor|
    test "compressors of #{name} are used again, for bodies and for streams" do
      3.times { Coding[name].compress("warm") }
      GC.disable
      before = ObjectSpace.each_object(compressor).count
      20.times { Coding[name].compress("abc" * 100) }
      20.times { Coding[name].stream.then { |stream| (stream << "abc") + stream.finish } }
      assert_equal before, ObjectSpace.each_object(compressor).count
    ensure
      GC.enable
    end
  end

  test "members of gzip name no time and no file, and are the same for the same bytes" do
    first = Coding[:gzip].compress("abc" * 100)
    assert_equal "\x1F\x8B\x08\x00\x00\x00\x00\x00".b, first.byteslice(0, 8)
    assert_equal first, Coding[:gzip].compress("abc" * 100)
  end

  test "no window of zstd is larger than clients have to understand" do
    [1, 3, 19].each do |level|
      descriptor, window = Coding[:zstd].compress("abc", level: level).unpack("x4CC")
      assert_equal 0, descriptor & 0x20, "no single segment"
      assert_operator 10 + (window >> 3), :<=, 23
    end
  end

  test "a coding whose gem is not there says which gem to add" do
    library = Hikyaku::Library.new("no-such-gem-as-this") { true }
    refute_predicate library, :there?
    %w[br zstd].each do |name|
      coding = Coding[name].dup.tap { |other| other.instance_variable_set(:@library, library) }
      [-> { coding.compress("a") }, -> { coding.stream }].each do |use|
        error = assert_raises(Hikyaku::Codec::Unavailable, &use)
        assert_kind_of Hikyaku::Error, error
        assert_equal "the content coding #{name} needs the gem no-such-gem-as-this: add `gem \"no-such-gem-as-this\"` to the Gemfile", error.message
      end
    end
    refute_predicate Hikyaku::Library.new("zlib") { false }, :there?
    assert_predicate Hikyaku::Library.new("zlib") { true }, :there?
  end

  private

  # Without a page of bytes when they are not.
  def assert_same_bytes(expected, bytes)
    assert expected.b == bytes.b, "#{expected.bytesize} bytes became #{bytes.bytesize} others"
  end

  # What can be decoded of the pieces so far.
  def decoder(name)
    case name
    when "gzip" then Zlib::Inflate.new(Zlib::MAX_WBITS + 16).method(:inflate)
    when "br" then Brotli::Decompressor.new.then { |decoder| ->(bytes) { bytes.empty? ? "".b : decoder.process(bytes) } }
    else
      Zstd::StreamingDecompress.new.then { |decoder| ->(bytes) { decoder.decompress(bytes) } }
    end
  end
end
