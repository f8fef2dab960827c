# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/reading/sizes"
require "json"
require "msgpack"
require "zlib"

class ReadingSizesTest < Minitest::Test
  Sizes = Hikyaku::Codec::Reading::Sizes

  OBJECT = {"items" => Array.new(50) { |index| {"id" => index, "name" => "Item #{index}"} }}.freeze
  JSON_BYTES = JSON.generate(OBJECT).freeze
  PACKED = MessagePack.pack(OBJECT).freeze

  test "the sizes are those of what a client would get" do
    {json: JSON_BYTES, msgpack: PACKED}.each do |type, body|
      sizes = Sizes.new(body, type: type, came: 77, coding: "br")
      assert_nil sizes.missing
      assert_equal({"br" => 77}, sizes.rows["as it came"])
      assert_equal sizes.rows[(type == :json) ? "JSON" : "MessagePack"], sizes.rows["identity"]
      assert_equal [JSON_BYTES, PACKED].map(&:bytesize), sizes.rows.values_at("JSON", "MessagePack").map { |row| row["plain"] }
      assert_equal %w[plain gzip br zstd], sizes.columns
      sizes.rows.except("as it came").each_value { |row| assert_operator row.values_at("gzip", "br", "zstd").max, :<, row["plain"] / 2 }
    end
    require "brotli"
    assert_equal [JSON_BYTES, PACKED], [JSON_BYTES, PACKED].map { |body| Brotli.inflate(Hikyaku::Codec::Coding[:br].compress(body)).force_encoding(body.encoding) }
  end

  test "they are said in numbers and percent of the body without codings" do
    heading, came, identity = Sizes.new(JSON_BYTES, type: :json, came: 100).table
    assert_equal ["", "plain", "", "gzip", "", "br", "", "zstd", ""], heading
    assert_equal ["as it came", "100", "#{(10_000.0 / JSON_BYTES.bytesize).round} %", "", "", "", "", "", ""], came
    assert_equal ["identity", JSON_BYTES.bytesize.to_s.sub(/(?=\d{3}\z)/, ","), "100 %"], identity.first(3)
  end

  test "a body that cannot be read has no other representations, and it is said why" do
    sizes = Sizes.new("\x92\x01".b, type: :msgpack)
    assert_equal ["identity"], sizes.rows.keys
    refute_empty sizes.missing
    assert_equal "-", Sizes.new("", type: :json).percent(20)
  end

  test "a bomb is not made of a small body" do
    assert_match(/\S/, Sizes.new("\xdd\xff\xff\xff\xff".b, type: :msgpack).missing)
    assert_match(/\S/, Sizes.new("\x91".b * 100_000, type: :msgpack).missing)
  end
end
