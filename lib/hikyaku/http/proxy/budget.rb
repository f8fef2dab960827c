# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  module HTTP
    class Proxy
      # How much reading pages may cost: so many seconds of a processor and so many bytes at once, and what comes back of them with time. Any thread may spend.
      class Budget
        def initialize(seconds:, bytes:, period: nil, clock: Support::Clock::MONOTONIC)
          @most = [seconds, bytes].map(&:to_f)
          @left = @most.dup
          @period = period
          @clock = clock
          @at = clock.call
          @lock = Mutex.new
        end

        def left? = @lock.synchronize { renew.all?(&:positive?) }

        # It is spent already, so that it may be more than there was.
        def spend(seconds, bytes)
          @lock.synchronize { @left = renew.zip([seconds, bytes]).map { |left, spent| left - spent } }
        end

        private

        def renew
          return @left unless @period
          from, @at = @at, @clock.call
          @left = @left.zip(@most).map { |left, most| [left + most * (@at - from) / @period, most].min }
        end
      end
    end
  end
end
