# frozen_string_literal: true

# Writes position_ids.txt. Only after a change of the cipher: the file is what every engine is tested against.

require_relative "../../lib/hikyaku/log"

keys = ["0001020308090a0b1011121318191a1b", "00" * 16, "ff" * 16, "5e1f0c6ab7d94283c1e0577a9d3b6f24"]
# The first is the plaintext of the vector that the cipher's designers published, for the first key.
positions = [0x3b7265747475432d, 0, 1, 2, 3, 255, 256, 65_535, 65_536, 1_000_000, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
digits = [*"A".."Z", *"a".."z", *"0".."9", "-", "_"]

lines = keys.flat_map do |key|
  cipher = Hikyaku::Log::PositionCipher.new(key: [key].pack("H*"))
  ids = positions.to_h { |position| [cipher.seal(position), position] }
  # The other spellings of the same bits, and what is a little too short, too long, or of other characters.
  id = cipher.seal(7)
  last = digits.index(id[-1])
  wrong = (1..3).map { |spare| id[0..-2] + digits[last + spare] }
  wrong += [id[0..-2], "#{id}A", id[1..], "A#{id[1..]}", "#", "#{id[0..-2]}=", "#{id[0, 5]}+#{id[6..]}", "#{id[0, 5]}/#{id[6..]}", "#{id[0, 5]}@#{id[6..]}", "#{id[0, 5]}[#{id[6..]}", "#{id[0, 5]}`#{id[6..]}",
    "#{id[0, 5]}{#{id[6..]}", "#{id[0, 5]}:#{id[6..]}", "earliest", "urn:uuid:0d5a"]
  ids.map { |each, position| "#{key} #{position} #{each}" } + wrong.map { |each| "#{key} - #{each}" }
end
File.write(File.join(__dir__, "position_ids.txt"), "# key, position (-: the id has not the form of ours), id\n#{lines.join("\n")}\n")
