# frozen_string_literal: true

require "test_helper"
require "hikyaku/log"

class PositionCipherTest < Minitest::Test
  VECTORS = File.expand_path("../vectors/position_ids.txt", __dir__)
  KEY = [0x03020100, 0x0b0a0908, 0x13121110, 0x1b1a1918].pack("L<4")

  def setup = @cipher = Hikyaku::Log::PositionCipher.new(key: KEY)

  test "it is Speck64/128: the designers' test vector" do
    id = @cipher.seal((0x3b726574 << 32) | 0x7475432d)
    bytes = "#{id.delete_prefix("#").tr("-_", "+/")}=".unpack1("m")
    assert_equal "8c6fa548454e028b", bytes.unpack1("H*")
  end

  test "positions are enciphered as the vectors say" do
    lines = File.readlines(VECTORS, chomp: true).reject { |line| line.start_with?("#") }.map(&:split)
    assert_operator lines.size, :>, 130
    lines.each do |key, position, id|
      cipher = Hikyaku::Log::PositionCipher.new(key: [key].pack("H*"))
      if position == "-"
        assert_nil cipher.open(id), id
      else
        assert_equal [id, position.to_i], [cipher.seal(position.to_i), cipher.open(id)]
      end
    end
  end

  test "ids are opened again" do
    [0, 1, 2, 1000, 2**32, 2**64 - 1].each { |position| assert_equal position, @cipher.open(@cipher.seal(position)) }
  end

  test "ids are a fragment of 12 characters, and tell nothing of their order" do
    ids = (1..100).map { |position| @cipher.seal(position) }
    assert(ids.all?(/\A#[\w-]{11}\z/))
    assert_equal 100, ids.uniq.size
    refute_equal ids, ids.sort
  end

  test "what has not the form of an id is not opened" do
    ["", "#", "#short", "urn:uuid:1", "earliest", "x#{@cipher.seal(1)[1..]}", "#{@cipher.seal(1)}x", "#***********",
      "#\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"].each { |id| assert_nil @cipher.open(id), id.inspect }
  end

  test "only the spelling that was made is opened: the spare bits of the last character count" do
    id = @cipher.seal(7)
    twin = id[0..-2] + ("A".."Z").to_a.find { |last| id[0..-2] + last != id && "#{id[1..-2]}#{last}=".tr("-_", "+/").unpack1("m") == "#{id[1..]}=".tr("-_", "+/").unpack1("m") }.to_s
    assert_nil @cipher.open(twin) unless twin == id[0..-2]
  end

  test "an id of another key opens to a position that no log has" do
    other = Hikyaku::Log::PositionCipher.new
    assert_operator @cipher.open(other.seal(1)), :>, 2**40
  end

  test "the key is not shown" do
    refute_includes @cipher.inspect, "\x03"
    assert_raises(ArgumentError) { Hikyaku::Log::PositionCipher.new(key: "short") }
  end
end
