# frozen_string_literal: true

require "bigdecimal"
require "date"
require "set"

# Objects as an application might answer with, made by a generator that has a seed: nested, of all kinds that the codec knows.
class GeneratedObjects
  Point = Struct.new(:x, :y)
  WORDS = ["", "a", "name", "straße", "日本語", "😀", "\u0000", "\"\\\n", "e99", "\u2028", "a" * 40, "[{,", "ü" * 150].freeze
  EDGES = [0, -1, 127, 128, -32, -33, 255, 256, 65_535, 65_536, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, -2**62, 2**63 - 1, -2**63, 2**63, 2**64 - 1].freeze
  FLOATS = [0.0, -0.0, 0.1 + 0.2, 1.7976931348623157e308, 5e-324, -1e-7, 1e22, 123_456_789.123].freeze
  PLAIN = %i[null text text integer integer float boolean symbol array hash hash].freeze
  ALL = [*PLAIN, *PLAIN, :time, :date_time, :date, :decimal, :rational, :set, :struct, :range, :wide].freeze

  # @param random [Random]
  # @param kinds [Array<Symbol>]
  def initialize(random, kinds: ALL)
    @random = random
    @kinds = kinds
  end

  def next(levels = 5)
    kind = pick(@kinds)
    kind = :text if levels.zero? && %i[array hash set].include?(kind)
    __send__(kind, levels)
  end

  private

  def pick(list) = list[@random.rand(list.size)]

  def null(_levels) = nil

  def boolean(_levels) = @random.rand(2).zero?

  def text(_levels) = [pick(WORDS).dup, "text #{@random.rand(1_000)}"][@random.rand(2)]

  def symbol(_levels) = pick(WORDS).to_sym

  def integer(_levels) = @random.rand(3).zero? ? pick(EDGES) : @random.rand(-100_000..100_000)

  def float(_levels) = [@random.bytes(8).unpack1("G"), pick(FLOATS)].find(&:finite?)

  def array(levels) = Array.new(@random.rand(0..20)) { self.next(levels - 1) }

  def hash(levels)
    symbols = @random.rand(2).zero?
    Array.new(@random.rand(0..20)) { |index| "#{pick(WORDS)[0, 60]}#{index}" }.to_h { |key| [symbols ? key.to_sym : key, self.next(levels - 1)] }
  end

  def time(_levels) = Time.at(@random.rand(-2**33..2**35), @random.rand(1_000_000_000), :nsec, in: pick(["UTC", "+02:00", "-09:30"]))

  def date_time(_levels) = DateTime.new(@random.rand(1900..2100), 2, 3, 4, 5, Rational(@random.rand(60_000_000_000), 1_000_000_000), pick(["+00:00", "+05:30"]))

  def date(_levels) = Date.new(@random.rand(1..3000), 2, 28)

  def decimal(_levels) = BigDecimal("#{@random.rand(-10**20..10**20)}.#{@random.rand(10**9)}")

  def rational(_levels) = Rational(@random.rand(100), 7)

  def set(levels) = Set.new([1, "two", self.next(levels - 1)])

  def struct(_levels) = Point.new(@random.rand(10), "y")

  def range(_levels) = (1..@random.rand(10))

  def wide(_levels) = pick([1, -1]) * @random.rand(2**64..2**200)
end
