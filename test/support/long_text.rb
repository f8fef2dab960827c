# frozen_string_literal: true

require "zlib"

# Texts of 20 KB of which no two, and no two parts, are alike: whoever receives one sees whether all of it is there.
module LongText
  BYTES = 10_000
  private_constant :BYTES

  # @param who [String, Integer] without a space
  # @param number [Integer]
  # @return [String] which begins with both
  def self.of(who, number)
    first = "#{who} #{number}"
    [first, *Random.new(Zlib.crc32(first)).bytes(BYTES).unpack1("H*").scan(/.{1,500}/)].join("\n")
  end

  # @param text [String]
  # @return [Array(String, Integer)] whose it is
  # @raise [RuntimeError] no such text, or not all of one
  def self.read(text)
    who, number = text.lines.first.to_s.split
    raise "not a whole text: #{text.bytesize} bytes, #{text[0, 100].inspect}…" unless who && text == of(who, number.to_i)
    [who, number.to_i]
  end
end
