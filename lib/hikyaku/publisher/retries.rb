# frozen_string_literal: true

require "time"

module Hikyaku
  class Publisher
    # How often and when one request is tried again: a bounded number of times, with growing pauses of random length,
    # and not any more once its caller has waited too long.
    #
    # @api private
    class Retries
      # @param limit [Integer] further attempts
      # @param within [Numeric] seconds after the first attempt in which another may begin
      # @param first_pause [Numeric] seconds; doubled each time
      # @param random [#rand]
      # @param clock [#call] seconds, monotonic
      # @param sleep [#call]
      def initialize(limit:, within:, first_pause: 0.1, random: Random,
        clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }, sleep: Kernel.method(:sleep))
        @left = limit
        @pause = first_pause
        @random = random
        @clock = clock
        @sleep = sleep
        @deadline = clock.call + within
      end

      # Waits before another attempt, if there may be one.
      #
      # @param at_least [Numeric, nil] seconds that the hub asked for
      # @return [Boolean] whether there may be one
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
      #
      # @param value [String, nil] seconds or a date
      # @param now [Time]
      # @return [Float, nil] seconds
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
