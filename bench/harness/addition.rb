# frozen_string_literal: true

require_relative "markdown"
require_relative "results"
require_relative "spread"

module Bench
  # What was measured apart from the rest of a page, on another day: with facts and tables of its own, for a figure of one run is
  # not to be compared with one of another.
  class Addition
    # Of a core, used by others than the benchmark.
    MUCH = 0.2
    KEPT = %w[machine left_out notes].freeze
    private_constant :MUCH, :KEPT

    # @return [Hash] of its file: "machine", "left_out", "notes"
    attr_reader :head
    # @return [Hash{Scenario => Results}]
    attr_reader :results

    # @param head [Hash] see {Record.load}
    # @param results [Hash{Scenario => Results}]
    def initialize(head, results)
      @head = head.slice(*KEPT)
      @results = results
    end

    # @return [String] when it began: "2026-11-23"
    def day = head["machine"]["date"].to_s[/\A\S+/]

    # @return [Array<Target>] which say that they are of this run
    def targets = results.flat_map { |scenario, its| scenario.targets(its) }.each { |target| target.name += ", measured apart" }

    # @param type [Class] a scenario
    # @return [Array<String>] Markdown: what was measured of it; empty when nothing was
    def section(type)
      results.select { |scenario, _| scenario.instance_of?(type) }.flat_map do |scenario, its|
        tables = scenario.tables(its).each { |table| table.title = "Measured apart, #{day}: #{table.title}" }
        [introduction(its), *tables.map { |table| table.to_s.chomp }]
      end
    end

    private

    def introduction(its)
      <<~TEXT.chomp
        *Measured apart, #{day}*: those that the run above leaves out, and some that it has, again, for comparison. A figure here is
        compared with one here alone; the plots are of the run above.#{beside_others(its)}

        #{Markdown.table(%w[What Value], facts(its)).chomp}
      TEXT
    end

    def beside_others(its)
      shares = its.runs.filter_map(&:others)
      return if shares.empty? || Spread.new(shares).median < MUCH
      "\nThe machine did other work meanwhile: CPU and times are the greater for it, bytes and losses are not."
    end

    def facts(its)
      shares = its.runs.filter_map(&:others)
      others = [["other load on the machine", "#{Spread.new(shares)} of a core"]] if shares.any?
      [["command", "`#{head["notes"]["command"]}`"], ["rounds", its.runs.map(&:round).max.to_i + 1], *head["machine"], *others,
        *head["left_out"].to_h.map { |name, why| ["#{name} did not take part", why] }]
    end
  end
end
