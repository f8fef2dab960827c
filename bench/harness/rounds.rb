# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require_relative "results"

module Bench
  # Measures scenarios, round after round, and reports the progress.
  class Rounds
    UNKNOWN_SECONDS = 5.0 # of a step, before any is measured

    attr_reader :count

    # @param count [Integer] of rounds
    # @param journal [Journal, nil] runs of an interrupted measurement, which are not repeated; it records the new ones
    # @yieldparam line [String] the progress
    def initialize(scenarios, count, journal: nil, &tell)
      @count = count
      @journal = journal
      @tell = tell
      @steps = scenarios.flat_map { |scenario| Array.new(count_of(scenario)) { |round| steps(scenario, round) }.flatten(1) }
      @left = @steps.map { |scenario, cell, _| [scenario, cell] }.tally
      @seconds = Hash.new { |seconds, step| seconds[step] = [] } # that each step took
      @runs = scenarios.to_h { |scenario| [scenario, []] }
      @lock = Mutex.new
    end

    # The number of runs.
    def size = @steps.size

    def interrupted? = @runs.values.sum(&:size) < size

    # Measures until the end, or an interrupt, and gives each scenario its results.
    def call
      remaining = @steps.reject { |scenario, cell, round| @journal&.find(scenario, cell, round)&.tap { |run| note(scenario, run) } }
      remaining.chunk_while { |one, other| one.first.equal?(other.first) }.each { |steps| take_all(steps.first.first, steps) }
    rescue Interrupt
      @tell.call("interrupted")
    ensure
      @runs.each { |scenario, runs| scenario.results = Results.new(runs) }
    end

    private

    def count_of(scenario) = [@count, scenario.class.at_most_rounds].compact.min

    # Each round begins a group with another cell: no entrant always runs first.
    def steps(scenario, round) = scenario.groups.flat_map { |group| group.rotate(round) }.map { |cell| [scenario, cell, round] }

    # Several places are measured at once, the steps of one place in their order.
    def take_all(scenario, steps)
      places = (scenario.class.at_once == 1) ? [steps] : steps.group_by { |_, cell, _| scenario.place(cell) }.values
      return steps.each { |step| take(*step) } if places.one? || scenario.class.at_once == 1
      threads = []
      [scenario.class.at_once, places.size].min.times { threads << Thread.new { take_places(places) } }
      threads.each(&:join)
    ensure
      threads&.each(&:kill)&.each(&:join) # each stops the servers that it has started
    end

    def take_places(places)
      while (steps = @lock.synchronize { places.shift })
        steps.each { |step| take(*step) }
      end
    end

    def take(scenario, cell, round)
      started = now
      load = MachineLoad.new if scenario.class.at_once == 1 # else the other load is another run
      run = Run.new(cell: cell, round: round)
      begin
        run.figures = scenario.measure_in(round, cell)
      rescue => error
        run.failure = error.respond_to?(:reason) ? error.reason : "#{error.class}: #{error.message}".strip
      end
      run.seconds = now - started
      run.others = load&.share
      @lock.synchronize do
        @journal&.add(scenario, run)
        note(scenario, run)
        @tell.call(line(scenario, run))
      end
    end

    def note(scenario, run)
      @runs[scenario] << run
      @left[[scenario, run.cell]] -= 1
      @seconds[[scenario, run.cell]] << run.seconds
    end

    # A step takes as long as before; else as long as the others of its scenario; else as all others.
    def seconds_left
      of_scenario = @seconds.group_by { |(scenario, _), _| scenario }.transform_values { |pairs| mean(pairs.flat_map(&:last)) }
      overall = mean(@seconds.values.flatten) || UNKNOWN_SECONDS
      @left.sum do |(scenario, cell), count|
        count * (mean(@seconds.fetch([scenario, cell], [])) || of_scenario[scenario] || overall) / scenario.class.at_once
      end
    end

    def progress
      done = size - @left.values.sum
      left = seconds_left
      format("%3d/%d %3d %%, about %s left", done, size, done * 100 / [size, 1].max, (left < 90) ? "#{left.round} s" : "#{(left / 60).round} min")
    end

    def line(scenario, run)
      cell = run.cell
      outcome = run.figures ? scenario.headline(run.figures) : "FAILED: #{run.failure.lines.first.chomp}"
      format("%s  round %d/%d  %-11s %-12s %-12s %6s  %s%s", progress, run.round + 1, count_of(scenario), scenario.class.key, cell.test,
        cell.entrant, cell.size, outcome, (run.figures && !run.whole?) ? "  INCOMPLETE" : "")
    end

    def mean(values) = values.empty? ? nil : values.sum / values.size

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # The share of a core that processes outside the benchmark use, from now on.
  class MachineLoad
    TICKS = 100.0 # a second, in /proc/stat
    IDLE = [3, 4].freeze # idle, iowait

    def initialize = @before = look

    # @return [Float, nil] nil where /proc/stat cannot be read
    def share
      time, machine, own = look.zip(@before).map { |now, before| now && before && now - before }
      [(machine - own) / time, 0].max if machine
    end

    private

    # Seconds: the clock, all cores busy, this process and its ended children.
    def look
      ticks = File.open("/proc/stat", &:gets).split.drop(1).first(8).map(&:to_i)
      busy = ticks.each_with_index.sum { |count, index| IDLE.include?(index) ? 0 : count } / TICKS
      times = Process.times
      [Process.clock_gettime(Process::CLOCK_MONOTONIC), busy, times.utime + times.stime + times.cutime + times.cstime]
    rescue SystemCallError
      [0, nil, nil]
    end
  end

  # The runs of a measurement, so that an interrupted one can be continued by the same command at the same commit. Failed and
  # incomplete runs are repeated: the interrupt may have been the reason.
  class Journal
    attr_reader :path, :machine

    # @param identity [Hash{String => Object}] "name", the command, the commit
    # @param restart [Boolean] ignore what is there
    def initialize(folder, identity, restart: false)
      @identity = JSON.parse(JSON.generate(identity))
      @path = File.join(folder, "#{@identity.fetch("name")}-#{Digest::SHA256.hexdigest(JSON.generate(@identity))[0, 12]}.jsonl")
      @runs = {}
      read if !restart && File.exist?(@path)
    end

    def size = @runs.size

    # @param machine [Hash{String => String}] which a continued measurement keeps as they were
    def start(machine)
      return append("") if @machine # the last line may be incomplete
      @machine = machine
      FileUtils.mkdir_p(File.dirname(@path))
      File.write(@path, "#{JSON.generate("identity" => @identity, "machine" => machine)}\n")
    end

    def find(scenario, cell, round) = @runs[[scenario.class.key, cell, round]]

    def add(scenario, run)
      append(JSON.generate({"scenario" => scenario.class.key, **run.to_h})) if run.whole?
    end

    def finish = FileUtils.rm_f(@path)

    private

    def append(line) = File.write(@path, "#{line}\n", mode: "a")

    def read
      head, *lines = File.readlines(@path).filter_map do |line|
        JSON.parse(line)
      rescue JSON::ParserError
        nil # an incomplete line
      end
      return unless head && head["identity"] == @identity
      @machine = head["machine"]
      lines.each { |line| Run.of(line).then { |run| @runs[[line.fetch("scenario"), run.cell, run.round]] = run } }
    end
  end
end
