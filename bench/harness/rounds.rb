# frozen_string_literal: true

require_relative "disturbance"
require_relative "estimate"
require_relative "results"

module Bench
  # Measures scenarios, round after round, and says how far it is.
  class Rounds
    # @param scenarios [Array<Scenario>]
    # @param count [Integer] of rounds
    # @param journal [Journal, nil] what was measured before, which is not measured again; it is told what is measured now
    # @yieldparam line [String] what came out, and how much is left
    def initialize(scenarios, count, journal: nil, &tell)
      @count = count
      @journal = journal
      @tell = tell
      @steps = scenarios.flat_map { |scenario| Array.new(count_of(scenario)) { |round| steps(scenario, round) }.flatten(1) }
      @scenarios = scenarios
      @estimate = Estimate.new(@steps.map { |scenario, cell, _| [scenario.class.key, cell] },
        at_once: scenarios.to_h { |scenario| [scenario.class.key, scenario.class.at_once] })
      @runs = scenarios.to_h { |scenario| [scenario, []] }
      @lock = Mutex.new
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
      left.chunk_while { |one, other| one.first.equal?(other.first) }.each { |steps| take_all(steps.first.first, steps) }
      results
    rescue Interrupt
      @tell.call("interrupted")
      results
    end

    private

    def count_of(scenario) = [@count, scenario.class.at_most_rounds].compact.min

    def steps(scenario, round) = scenario.groups.flat_map { |group| group.rotate(round) }.map { |cell| [scenario, cell, round] }

    def results = @runs.transform_values { |runs| Results.new(runs) }

    # @return [Array] steps that no earlier measurement has taken
    def left
      @steps.reject do |scenario, cell, round|
        run = @journal&.find(scenario, cell, round)
        note(scenario, run) if run
        run
      end
    end

    def take_all(scenario, steps)
      return steps.each { |step| take(*step) } if scenario.class.at_once == 1
      places = steps.group_by { |_, cell, _| scenario.place(cell) }.values
      threads = []
      [scenario.class.at_once, places.size].min.times { threads << Thread.new { take_places(places) } }
      threads.each(&:join)
    ensure
      threads&.each(&:kill)&.each(&:join) # each stops what it has started
    end

    # The steps of one place in their order, then those of the next that nobody has taken up.
    def take_places(places)
      while (steps = @lock.synchronize { places.shift })
        steps.each { |step| take(*step) }
      end
    end

    def take(scenario, cell, round)
      started = now
      disturbance = Disturbance.new if scenario.class.at_once == 1 # else what is beside it is another run
      run = Run.new(cell: cell, round: round)
      begin
        run.figures = scenario.measure_in(round, cell)
      rescue => error
        run.failure = error.respond_to?(:reason) ? error.reason : "#{error.class}: #{error.message}".strip
      end
      run.seconds = now - started
      run.others = disturbance&.share
      @lock.synchronize do
        @journal&.add(scenario, run)
        note(scenario, run)
        @tell.call(line(scenario, run))
      end
    end

    def note(scenario, run)
      @runs[scenario] << run
      @estimate.done([scenario.class.key, run.cell], run.seconds)
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
