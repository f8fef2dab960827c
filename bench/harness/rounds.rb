# frozen_string_literal: true

require_relative "disturbance"
require_relative "estimate"
require_relative "results"

module Bench
  # Measures scenarios, round after round, and says how far it is.
  class Rounds
    # @param scenarios [Array<Scenario>]
    # @param count [Integer] of rounds
    # @yieldparam line [String] what came out, and how much is left
    def initialize(scenarios, count, &tell)
      @count = count
      @tell = tell
      @steps = scenarios.flat_map { |scenario| Array.new(count_of(scenario)) { |round| steps(scenario, round) }.flatten(1) }
      @scenarios = scenarios
      @estimate = Estimate.new(@steps.map { |scenario, cell, _| [scenario.class.key, cell] })
      @runs = scenarios.to_h { |scenario| [scenario, []] }
    end

    # @return [Integer] of rounds
    attr_reader :count

    # @return [Integer] of runs, in all of them
    def size = @steps.size

    # @return [Boolean] whether somebody ended it early
    def interrupted? = @runs.sum { |_, runs| runs.size } < @steps.size

    # Until the end, or an interrupt.
    #
    # @return [Hash{Scenario => Results}]
    def call
      @steps.each { |scenario, cell, round| take(scenario, cell, round) }
      results
    rescue Interrupt
      @tell.call("interrupted")
      results
    end

    private

    def count_of(scenario) = [@count, scenario.class.at_most_rounds].compact.min

    def steps(scenario, round) = scenario.groups.flat_map { |group| group.rotate(round) }.map { |cell| [scenario, cell, round] }

    def results = @runs.transform_values { |runs| Results.new(runs) }

    def take(scenario, cell, round)
      started = now
      disturbance = Disturbance.new
      run = Run.new(cell: cell, round: round)
      begin
        run.figures = scenario.measure(cell)
      rescue => error
        run.failure = error.respond_to?(:reason) ? error.reason : "#{error.class}: #{error.message}".strip
      end
      run.seconds = now - started
      run.others = disturbance.share
      @runs[scenario] << run
      @estimate.done([scenario.class.key, cell], run.seconds)
      @tell.call(line(scenario, run))
    end

    def line(scenario, run)
      cell = run.cell
      outcome = run.figures ? scenario.headline(run.figures) : "FAILED: #{run.failure.lines.first.chomp}"
      format("%s  round %d/%d  %-11s %-12s %-12s %6s  %s%s", @estimate, run.round + 1, count_of(scenario), scenario.class.key, cell.test,
        cell.entrant, cell.size, outcome, (run.figures && !run.whole?) ? "  INCOMPLETE" : "")
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
