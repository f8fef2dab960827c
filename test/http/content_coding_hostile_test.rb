# frozen_string_literal: true

require "test_helper"
require "brotli"
require "zlib"
require "zstd-ruby"
require "hikyaku/http/content_coding"
require "support/mutated_bytes"

# Bodies with a coding that were changed at random: they are decoded, or corrupt, or too large, and the same however they come.
class ContentCodingHostileTest < Minitest::Test
  ContentCoding = Hikyaku::HTTP::ContentCoding
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  TEXTS = ["", "x", "said " * 400, Array.new(300) { |index| "{\"id\":#{index * 7919 % 997}}," }.join, Random.new(1).bytes(3_000), "\0" * 60_000].map(&:b).freeze
  ENCODERS = {"gzip" => Zlib.method(:gzip), "deflate" => Zlib.method(:deflate), "br" => Brotli.method(:deflate), "zstd" => Zstd.method(:compress)}.freeze
  MOST_BYTES = 100_000
  ROUNDS = 400

  ENCODERS.each do |coding, encoder|
    test "#{coding} that was changed at random is decoded or refused, whole and in pieces alike" do
      random = Random.new(SEED)
      mutated = MutatedBytes.new(random, TEXTS.map(&encoder), :gzip)
      outcomes = Array.new(ROUNDS) do
        bytes = mutated.next
        whole, step = decode(coding, bytes, bytes.bytesize + 1), random.rand(1..40)
        assert_equal whole, decode(coding, bytes, step), "#{step}: #{bytes[0, 200].inspect}"
        whole.is_a?(String) ? :decoded : whole
      end
      assert_operator outcomes.tally.fetch(:decoded), :>, 5, outcomes.tally.inspect
      assert_operator outcomes.tally.fetch(ContentCoding::Corrupt), :>, ROUNDS / 4, outcomes.tally.inspect
    end
  end

  private

  # @return [String, Class] what came out, or what was raised
  def decode(coding, bytes, step)
    decoder = ContentCoding.decoder([coding], max_bytes: MOST_BYTES)
    out = +"".b
    0.step(bytes.bytesize - 1, step) { |at| out << (decoder << bytes.byteslice(at, step)) }
    out << decoder.finish
  rescue ContentCoding::Corrupt, ContentCoding::TooLarge => error
    error.class
  ensure
    assert_operator out.bytesize, :<=, MOST_BYTES
  end
end
