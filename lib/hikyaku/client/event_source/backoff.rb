# frozen_string_literal: true

module Hikyaku
  class EventSource
    # How long to wait before connecting again: the server's reconnection time after a stream that had been open,
    # doubled with each failure after that up to a limit, and a random share on top, so that clients that lost the same
    # server do not come back together.
    class Backoff
      # A server that says 0 is not to be asked without a pause.
      FLOOR = 0.1
      # A server that says "in a year" is asked earlier.
      CEILING = 3600
      JITTER = 0.25
      private_constant :FLOOR, :CEILING, :JITTER

      def initialize(retry_seconds:, max_seconds:, random: Random)
        @max = max_seconds
        @random = random
        @failures = 0
        self.retry_seconds = retry_seconds
      end

      def retry_seconds=(seconds)
        @base = seconds.clamp(FLOOR, CEILING)
      end

      # A stream was opened: the failures before do not count any more.
      def reset
        @failures = 0
      end

      def next_pause(at_least: nil)
        # 2 ** 40 is more than any limit; a Float would overflow on a night without a network.
        grown = @base * 2**[@failures, 40].min
        @failures += 1
        pause = [[grown, @max].min, @base, (at_least || 0).clamp(0, CEILING)].max
        pause * (1 + JITTER * @random.rand)
      end
    end
  end
end
