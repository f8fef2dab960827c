# frozen_string_literal: true

module Bench
  # How much of a core is used, from now on, by whatever does not belong to the benchmark: figures that were taken beside
  # something else say little.
  class Disturbance
    TICKS = 100.0 # a second, in /proc/stat
    IDLE = [3, 4].freeze # idle, iowait

    def initialize
      @started = now
      @machine = machine
      @own = own
    end

    # @return [Float, nil] the share of a core, of processes that have ended and been waited for
    def share
      return unless @machine
      [(machine - @machine - (own - @own)) / (now - @started), 0].max
    end

    private

    # Seconds that all cores were busy.
    def machine
      ticks = File.open("/proc/stat", &:gets).split.drop(1).first(8).map(&:to_i)
      ticks.each_with_index.sum { |count, index| IDLE.include?(index) ? 0 : count } / TICKS
    rescue SystemCallError
      nil
    end

    # Seconds of this process and of its children.
    def own = Process.times.then { |times| times.utime + times.stime + times.cutime + times.cstime }

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
