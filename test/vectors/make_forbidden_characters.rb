# frozen_string_literal: true

# Writes forbidden_characters.txt. Only after a change of the rule: the file is what every engine is tested against.

require_relative "../../lib/hikyaku/hub/topic"

surrogates = 0xD800..0xDFFF
forbidden = (0..0x10FFFF).reject { |code| surrogates.cover?(code) || Hikyaku::Hub::Topic.valid_text?([code].pack("U")) }
ranges = forbidden.slice_when { |one, next_one| next_one != one + 1 }
lines = ranges.map { |range| format("%X %X", range.first, range.last) }
File.write(File.join(__dir__, "forbidden_characters.txt"), "# first and last of a range, in hexadecimal\n#{lines.join("\n")}\n")
