# frozen_string_literal: true

require "json"
require_relative "plot"

module Bench
  # What is measured: a test, of an entrant, at a size.
  Cell = Struct.new(:test, :entrant, :size)

  # The same figure from several rounds.
  class Spread
    attr_reader :values

    def initialize(values) = @values = values.map(&:to_f)

    def min = values.min

    def max = values.max

    def median
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
    end

    # "1.42 (1.38–1.51)": the median, the least and the greatest.
    def to_s(digits = 2) = format("%.#{digits}f (%.#{digits}f–%.#{digits}f)", median, min, max)

    def scale(factor) = Spread.new(values.map { |value| value * factor })
  end

  # One measurement of a cell. `round` counts from 0, `others` is the share of a core that other processes used meanwhile.
  Run = Struct.new(:cell, :round, :figures, :failure, :seconds, :others, keyword_init: true) do
    def whole? = !figures.nil? && figures["whole"]

    def to_h
      {"test" => cell.test, "entrant" => cell.entrant, "size" => cell.size, "round" => round + 1, "seconds" => seconds&.round(2),
       "others" => others&.round(3), "failure" => failure, "figures" => figures}.compact
    end

    def self.of(hash)
      new(cell: Cell.new(*hash.values_at("test", "entrant", "size")), round: hash["round"] - 1,
        **%w[figures failure seconds others].to_h { |name| [name.to_sym, hash[name]] })
    end
  end

  # A promise about an entrant, and the measured figure.
  Target = Struct.new(:name, :entrant, :at_most, :at_least, :less_than, :spread, :whole, keyword_init: true) do
    def reached? = verdict == "reached"

    def verdict
      return "not measured" unless spread
      return "**missed**" unless within?
      whole ? "reached" : "**incomplete**"
    end

    def bound = "#{kind.to_s.tr("_", " ")} #{Bench.grouped(self[kind])}"

    def measured
      return "–" unless spread
      spread.to_s({100 => 0, 0.2 => 2}.find { |least, _| spread.median >= least }&.last || 3)
    end

    private

    def kind = %i[at_most less_than at_least].find { |name| self[name] }

    def within? = spread.median.public_send({at_most: :<=, less_than: :<, at_least: :>=}.fetch(kind), self[kind])
  end

  # The runs of a scenario. A ratio is taken within a round, between two runs that are neighbours in time.
  class Results
    attr_reader :runs

    def initialize(runs = [])
      @runs = runs
      @of = runs.group_by(&:cell)
    end

    # @param path [String] of a figure: "delivery.cpu_us_each"
    # @return [Spread, nil]
    def spread(cell, path) = combine([cell], path) { |value| value }

    def ratio(above, below, path) = combine([above, below], path) { |one, other| one.fdiv(other) if other.positive? }

    # Combines the figures of one round, for each round that has all of them; the block gets them in the order of the cells.
    def combine(cells, path)
      first, *others = cells.map { |cell| values(cell, path) }
      rounds = first.keys.select { |round| others.all? { |its| its.key?(round) } }
      found = rounds.filter_map { |round| yield(*[first, *others].map { |its| its.fetch(round) }) }
      Spread.new(found) if found.any?
    end

    def whole?(*cells) = cells.all? { |cell| @of.fetch(cell, []).all?(&:whole?) }

    def incomplete = runs.reject(&:whole?)

    # @param bound [Hash] `at_most:`, `less_than:` or `at_least:`
    def target(name, cell, path, **bound) = Target.new(name: name, entrant: cell.entrant, spread: spread(cell, path), whole: whole?(cell), **bound)

    def ratio_target(name, above, below, path, **bound)
      Target.new(name: name, entrant: above.entrant, spread: ratio(above, below, path), whole: whole?(above, below), **bound)
    end

    private

    def values(cell, path) = @of.fetch(cell, []).to_h { |run| [run.round, run.figures&.dig(*path.split("."))] }.compact
  end

  # Scenarios that were measured in one run: their results, and a head with "page", "command", "rounds", "interrupted", "machine"
  # and "left_out". In a file (JSON Lines) a head comes first, then each run on a line of its own; a further head begins another
  # part of the page, which was measured apart.
  Part = Struct.new(:head, :scenarios) do
    def self.dump(parts) = parts.join

    # @return [Array<Part>]
    def self.load(text)
      text.each_line.map { |line| JSON.parse(line) }.slice_before { |line| line.key?("machine") }.map do |head, *lines|
        runs = lines.group_by { |line| line.fetch("scenario") }
        new(head, head.fetch("scenarios").map do |key, its|
          Scenario.fetch(key).new(entrants: its["entrants"], values: its["settings"].transform_keys(&:to_sym),
            results: Results.new(runs.fetch(key, []).map { |line| Run.of(line) }))
        end)
      end
    end

    def to_s
      described = scenarios.to_h { |scenario| [scenario.class.key, {"entrants" => scenario.entrants, "settings" => scenario.values}] }
      lines = scenarios.flat_map { |scenario| scenario.results.runs.map { |run| {"scenario" => scenario.class.key, **run.to_h} } }
      [head.merge("scenarios" => described), *lines].map { |line| "#{JSON.generate(line)}\n" }.join
    end

    def targets = scenarios.flat_map(&:targets)

    # The shares of a core that other processes used.
    def others = scenarios.flat_map { |scenario| scenario.results.runs.filter_map(&:others) }.then { |shares| Spread.new(shares) if shares.any? }

    def date = head["machine"]["date"].to_s[/\A\S+/]
  end

  # Thousands are separated by commas.
  def self.grouped(number) = number.to_s.sub(/\A\d+/) { |whole| whole.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") }
end
