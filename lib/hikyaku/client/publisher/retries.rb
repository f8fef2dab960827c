# frozen_string_literal: true

require "time"
require_relative "../../support/clock"

module Hikyaku
  class Publisher
    # How often and when one request is tried again: a bounded number of times, with growing pauses of random length,
    # and not any more once its caller has waited too long.
    class Retries
      def initialize(limit:, within:, first_pause: 0.1, random: Random,
        clock: Support::Clock::MONOTONIC, sleep: Kernel.method(:sleep))
        @left = limit
        @pause = first_pause
        @random = random
        @clock = clock
        @sleep = sleep
        @deadline = clock.call + within
      end

      # Waits before another attempt, if there may be one.
      def again?(at_least: nil)
        pause = [at_least || 0, @pause * (0.5 + @random.rand / 2)].max
        return false if @left < 1 || @clock.call + pause > @deadline
        @left -= 1
        @pause *= 2
        @sleep.call(pause)
        true
      end

      # Reads a `Retry-After` field.
      #
      # RFC 9110 section 10.2.3.
      def self.seconds(value, now: Time.now)
        return if value.nil?
        return value.to_f if value.match?(/\A\d{1,9}\z/)
        [Time.httpdate(value) - now, 0.0].max
      rescue ArgumentError
        nil
      end
    end
  end
end
