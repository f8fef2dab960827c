# frozen_string_literal: true

module Hikyaku
  module Support
    # The kernel's clocks. Included, `now` is the time that waits and deadlines are made of.
    module Clock
      # Seconds that only go forward, and seconds since 1970.
      MONOTONIC = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      WALL = -> { Process.clock_gettime(Process::CLOCK_REALTIME) }

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
