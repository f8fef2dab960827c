# frozen_string_literal: true

# Values of every kind that MessagePack has, the same for the same seed.
class Generated
  INTEGERS = [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63, 2**64 - 1, -1, -32, -33, -128, -129, -32_768, -32_769, -2**31, -2**31 - 1, -2**63].freeze
  TEXTS = ["", "a", "é", "\u{1f600}", "\"quoted\" \\", "line\nbreak\ttab", "x" * 31, "x" * 32, "x" * 256, "\e[31m", "\u202e"].freeze

  def initialize(seed)
    @random = Random.new(seed)
  end

  def value(depth = 4)
    case @random.rand((depth > 0) ? 9 : 7)
    when 0 then nil
    when 1 then @random.rand(2).zero?
    when 2 then INTEGERS.sample(random: @random)
    when 3 then @random.rand(-1e6..1e6)
    when 4, 5 then TEXTS.sample(random: @random)
    when 6 then @random.bytes(@random.rand(20))
    when 7 then Array.new(@random.rand(18)) { value(depth - 1) }
    when 8 then Array.new(@random.rand(18)) { |index| ["#{index} #{TEXTS.sample(random: @random)}", value(depth - 1)] }.to_h
    end
  end
end
