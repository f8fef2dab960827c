# frozen_string_literal: true

require "optparse"

# The rounds of a benchmark of a part of the code: everything is measured in turn, and each round begins with another.
module Measure
  CLOCKS = {cpu: Process::CLOCK_PROCESS_CPUTIME_ID, thread: Process::CLOCK_THREAD_CPUTIME_ID, time: Process::CLOCK_MONOTONIC}.freeze

  class << self
    # Reads --rounds and --seconds.
    def options(rounds:, seconds:)
      name = File.basename(caller_locations(1, 1).first.path, ".rb")
      OptionParser.new { |parser|
        parser.banner = "usage: bin/bench #{name} [options]"
        parser.on("--rounds N", Integer, "how often everything is measured (#{rounds})") { |n| rounds = n }
        parser.on("--seconds S", Float, "for how long each time (#{seconds})") { |s| seconds = s }
      }.parse!(ARGV)
      [rounds, seconds]
    end

    # Microseconds of a call, by the clocks.
    def microseconds(seconds, clocks, call)
      times = 0
      before = now = read(clocks)
      until now.last - before.last >= seconds
        50.times { call.call }
        times += 50
        now = read(clocks)
      end
      now.zip(before).map { |after, earlier| (after - earlier) / times * 1e6 }
    end

    # @param work [Hash{String => Proc}]
    # @param clocks [Array<Symbol>] the last one ends a measurement
    # @return [Hash{String => Array<Array<Float>>}] of each a list of values, one a round, for each clock
    def rounds(work, rounds, seconds, clocks = [:cpu])
      work.each_value { |call| microseconds(seconds / 5, clocks, call) }
      samples = work.transform_values { [] }
      rounds.times { |round| work.to_a.rotate(round).each { |name, call| samples[name] << microseconds(seconds, clocks, call) } }
      samples.transform_values(&:transpose)
    end

    # Prints the median, the least and the greatest of each; the block adds columns.
    def print(samples, unit: "µs of CPU", columns: [])
      puts unit.ljust(36) + ["median", "least", "greatest", *columns].map { |word| word.rjust(10) }.join
      samples.each do |name, (values, *others)|
        sorted = values.sort
        more = block_given? ? Array(yield(name, others)) : []
        puts name.ljust(36) + [sorted[sorted.size / 2], sorted.first, sorted.last, *more].map { |value| format("%10.2f", value) }.join
      end
    end

    private

    def read(clocks) = clocks.map { |clock| Process.clock_gettime(CLOCKS.fetch(clock)) }
  end
end
