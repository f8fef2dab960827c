# frozen_string_literal: true

module Bench
  # How much is done, and how long the rest will take: as long as the same step took before; a step that was not taken yet
  # as long as the others of its scenario, or as all others.
  class Estimate
    UNKNOWN = 5.0 # seconds, before anything is known

    # @param steps [Array<Array(String, Object)>] all that are to be taken: scenario and what is measured
    # @param at_once [Hash{String => Integer}] by scenario how many steps are taken at the same time; else one
    def initialize(steps, at_once: {})
      @left = steps.tally
      @size = steps.size
      @at_once = at_once
      @taken = Hash.new { |seconds, step| seconds[step] = [] }
    end

    # @param step [Array(String, Object)]
    # @param seconds [Float] that it took
    def done(step, seconds)
      @left[step] -= 1
      @taken[step] << seconds
    end

    # @return [Float] seconds
    def left
      of_scenario = @taken.group_by { |step, _| step.first }.transform_values { |pairs| mean(pairs.flat_map(&:last)) }
      overall = mean(@taken.values.flatten) || UNKNOWN
      @left.sum do |step, count|
        next 0 if count.zero?
        count * (mean(@taken.fetch(step, [])) || of_scenario[step.first] || overall) / @at_once.fetch(step.first, 1)
      end
    end

    # @return [String] " 12/340   4 %, about 24 min left"
    def to_s
      done = @size - @left.values.sum
      format("%3d/%d %3d %%, about %s left", done, @size, done * 100 / [@size, 1].max, time(left))
    end

    private

    def mean(values) = values.empty? ? nil : values.sum / values.size

    def time(seconds) = (seconds < 90) ? "#{seconds.round} s" : "#{(seconds / 60).round} min"
  end
end
