# frozen_string_literal: true

# Bytes that were something once, changed at random, always in the same way for the same seed.
class MutatedBytes
  # First bytes and parts of text that mean something.
  TOKENS = {
    msgpack: ["\xc1", "\xc7", "\xc9\xff\xff\xff\xff", "\xd4", "\xd7\xff", "\xd9", "\xdb\xff\xff\xff\xff", "\xdc\xff\xff", "\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff",
      "\x91" * 60, "\x81\xa1a" * 60, "\xcb\x7f\xf8", "\xed\xa0\x80", "\xff", "\x80", "\xa1a"],
    json: ["[", "]", "{", "}", "\"", "\\", "\\u", "\\ud800", ",", ":", "1e999", "9" * 400, "[" * 60, "null", "\xff", "\xed\xa0\x80", "-", "\0"],
    gzip: ["\x1f\x8b", "\x1f\x8b\x08\x1c", "\0\0\xff\xff", "\x01\0\0\xff\xff", "\x03\0", "\xff" * 8]
  }.transform_values { |tokens| tokens.map(&:b) }.freeze

  # @param random [Random]
  # @param seeds [Array<String>] what is changed
  # @param name [Symbol] of TOKENS
  def initialize(random, seeds, name)
    @random = random
    @seeds = seeds
    @tokens = TOKENS.fetch(name)
  end

  # @return [String]
  def next
    bytes = @seeds[@random.rand(@seeds.size)].b
    @random.rand(1..3).times { change(bytes, @random.rand(bytes.bytesize + 1)) }
    bytes
  end

  private

  def change(bytes, at)
    case @random.rand(4)
    when 0 then bytes.setbyte(at, @random.rand(256)) if at < bytes.bytesize
    when 1 then bytes[at, 0] = @tokens[@random.rand(@tokens.size)]
    when 2 then bytes[at, @random.rand(4)] = ""
    else bytes[at, 8] = bytes[@random.rand(bytes.bytesize + 1), 8] || ""
    end
  end
end
