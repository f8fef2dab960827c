# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"

class CodecPiecesTest < Minitest::Test
  Codec = Hikyaku::Codec

  # Has no size, and can be gone through once.
  class Source
    include Enumerable

    attr_reader :begun, :given

    def initialize(count) = (@count, @begun, @given = count, 0, 0)

    def each
      raise "it has been gone through" if (@begun += 1) > 1
      @count.times do |index|
        @given += 1
        yield({"index" => index, "text" => "x" * 20})
      end
    end
  end

  test "pieces are together the array, as dump writes it" do
    [0, 1, 2, 15, 16, 17, 1_000, 65_535, 65_536].each do |count|
      items = (0...count).map { |index| (index % 3 == 0) ? nil : index }
      %i[json msgpack].each do |name|
        assert_equal Codec[name].dump(items), Codec[name].each_piece(items, buffer: 1_000).to_a.join, "#{name} of #{count}"
      end
    end
  end

  test "a piece has about as many bytes as it is to have, and is binary" do
    %i[json msgpack].each do |name|
      pieces = Codec[name].each_piece(Source.new(1_000), buffer: 512, count: 1_000).to_a
      assert_operator pieces.size, :>, 50
      pieces[0...-1].each { |piece| assert_includes 512..600, piece.bytesize }
      assert(pieces.all? { |piece| piece.encoding == Encoding::BINARY })
      assert_equal pieces.uniq(&:object_id).size, pieces.size
      Codec[name].each_piece(["x" * 50] * 1_000).take(2).each { |piece| assert_includes 16_384..16_500, piece.bytesize }
    end
  end

  test "items are taken as pieces are" do
    %i[json msgpack].each do |name|
      source = Source.new(1_000_000)
      pieces = Codec[name].each_piece(source, count: 1_000_000)
      assert_equal 0, source.begun
      pieces.next
      assert_operator source.given, :<, 1_000
      given = 0
      Codec[name].each_piece(Source.new(3), count: 3) { given += 1 }
      assert_equal 1, given
    end
  end

  test "MessagePack must know how many there are, before anything is sent" do
    source = Source.new(3)
    error = assert_raises(Codec::WrongCount) { Codec[:msgpack].each_piece(source) }
    assert_match(/give each_piece the count/, error.message)
    [loop, (1..).each, Enumerator.new { |all| all << 1 }].each { |endless| assert_raises(Codec::WrongCount) { Codec[:msgpack].each_piece(endless) } }
    [-1, 2**32, 1.0].each { |count| assert_raises(Codec::WrongCount) { Codec[:msgpack].each_piece(source, count: count) } }
    assert_equal 0, source.begun
    assert_equal [1, 2], Codec[:msgpack].load(Codec[:msgpack].each_piece(Enumerator.new(2) { |all| all << 1 << 2 }).to_a.join)
    assert_equal [0, 1, 2], Codec[:json].load(Codec[:json].each_piece(Source.new(3)).to_a.join).map { |item| item["index"] }
  end

  test "where the count is wrong, the stream is broken off" do
    [2, 4, 0].each do |count|
      sent = []
      error = assert_raises(Codec::WrongCount) { Codec[:msgpack].each_piece(Source.new(3), count: count, buffer: 1) { |piece| sent << piece } }
      assert_match(/broken off/, error.message)
      assert_equal [count, 3].min, sent.size
    end
    assert_raises(Codec::WrongCount) { Codec[:json].each_piece(Source.new(3), count: 2).to_a }
  end

  test "an item that cannot be written ends the stream, after those before it" do
    sent = []
    assert_raises(Codec::Unrepresentable) { Codec[:json].each_piece([1, 2, Object.new], buffer: 1) { |piece| sent << piece } }
    assert_equal ["[1", ",2"], sent
  end

  test "a hash is the array of its pairs" do
    %i[json msgpack].each { |name| assert_equal [["a", 1], ["b", 2]], Codec[name].load(Codec[name].each_piece({a: 1, b: 2}).to_a.join) }
  end
end
