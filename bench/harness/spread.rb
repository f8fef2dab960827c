# frozen_string_literal: true

module Bench
  # The same figure from several rounds. None is dropped.
  class Spread
    attr_reader :values

    # @param values [Array<Numeric>] at least one
    def initialize(values)
      @values = values.map(&:to_f)
    end

    def min = values.min

    def max = values.max

    def median
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
    end

    # @param digits [Integer] after the point
    # @return [String] "1.42 (1.38–1.51)"
    def to_s(digits = 2) = format("%.#{digits}f (%.#{digits}f–%.#{digits}f)", median, min, max)

    def to_h = {"median" => median, "min" => min, "max" => max, "values" => values}
  end
end
