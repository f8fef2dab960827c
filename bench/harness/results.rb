# frozen_string_literal: true

require_relative "parts"
require_relative "scenario"

module Bench
  # One measurement: the cell, the round (from 0), the figures or why there are none, how many seconds it took, and how much
  # of a core whatever else ran on the machine used meanwhile.
  Run = Struct.new(:cell, :round, :figures, :failure, :seconds, :others, keyword_init: true) do
    # @return [Boolean] whether it ended, and lost and misdirected nothing
    def whole? = !figures.nil? && figures["whole"]

    # @return [Hash] for JSON
    def to_h
      {"test" => cell.test, "entrant" => cell.entrant, "size" => cell.size, "round" => round + 1, "seconds" => seconds&.round(2),
       "others" => others&.round(3), "failure" => failure, "figures" => figures}.compact
    end

    # @param hash [Hash] see {#to_h}
    # @return [Run]
    def self.of(hash)
      new(cell: Cell.new(*hash.values_at("test", "entrant", "size")), round: hash["round"] - 1, figures: hash["figures"],
        failure: hash["failure"], seconds: hash["seconds"], others: hash["others"])
    end
  end

  # The figures of all rounds of a scenario. A ratio is taken within a round, between two runs that were neighbours in time;
  # its median over the rounds is what counts.
  class Results
    # @return [Array<Run>]
    attr_reader :runs

    # @param runs [Array<Run>]
    def initialize(runs)
      @runs = runs
      @of = runs.group_by(&:cell)
    end

    # @param cell [Cell]
    # @param path [Array<String>] keys into its figures
    # @return [Spread, nil] nil when there is none
    def spread(cell, *path) = collect(values(cell, path).values)

    # @param above [Cell]
    # @param below [Cell]
    # @param path [Array<String>] keys into the figures of both
    # @return [Spread, nil] of the rounds' own ratios
    def ratio(above, below, *path)
      others = values(below, path)
      collect(values(above, path).filter_map { |round, value| value.fdiv(others[round]) if others[round]&.positive? })
    end

    # @param cell [Cell]
    # @param above [Array<String>] keys into its figures
    # @param below [Array<String>] likewise
    # @return [Spread, nil] of each round's one figure over the other
    def share(cell, above, below)
      others = values(cell, below)
      collect(values(cell, above).filter_map { |round, value| value.fdiv(others[round]) if others[round]&.positive? })
    end

    # @param cells [Array<Cell>]
    # @param path [Array<String>] keys into the figures of all
    # @yieldparam figures [Array<Numeric>] of one round, in the order of the cells
    # @yieldreturn [Numeric, nil] what they come to
    # @return [Spread, nil] of the rounds in which all have one
    def combine(cells, *path)
      first, *others = cells.map { |cell| values(cell, path) }
      collect(first.keys.select { |round| others.all? { |its| its.key?(round) } }
        .filter_map { |round| yield [first, *others].map { |its| its.fetch(round) } })
    end

    # @param cells [Array<Cell>]
    # @return [Boolean] whether nothing was lost in any run of these
    def whole?(*cells) = cells.all? { |cell| @of.fetch(cell, []).all?(&:whole?) }

    # @return [Array<Run>] that failed, or lost or misdirected something
    def incomplete = runs.reject(&:whole?)

    # @param name [String]
    # @param cell [Cell]
    # @param path [Array<String>] keys into its figures
    # @param bound [Hash] `at_most:`, `less_than:` or `at_least:`
    # @return [Target] about one figure
    def target(name, cell, *path, **bound)
      Target.new(name: name, entrant: cell.entrant, spread: spread(cell, *path), whole: whole?(cell), **bound)
    end

    # @return [Target] about a ratio; see {#target} and {#ratio}
    def ratio_target(name, above, below, *path, **bound)
      Target.new(name: name, entrant: above.entrant, spread: ratio(above, below, *path), whole: whole?(above, below), **bound)
    end

    private

    # @return [Hash{Integer => Numeric}] by round
    def values(cell, path)
      @of.fetch(cell, []).to_h { |run| [run.round, run.figures&.dig(*path)] }.compact
    end

    def collect(values) = values.empty? ? nil : Spread.new(values)
  end
end
