# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # How fast bytes come while they come: what the line carries, and not what a server dares to send on it.
      #
      # A connection that is new brings a burst, and then nothing for the rest of a round trip (RFC 5681, section 3.1). Over the whole round trip that is
      # a small part of what the line carries, far away a tiny one. So pauses do not count, nor what came at their end: it was under way meanwhile.
      class RateSampler
        # Shorter stretches say more about the machine than about the line, seconds.
        SHORTEST = 0.02
        # So much of a round trip without a byte is a pause; on a short way, so many seconds.
        PAUSE = 0.25
        SHORTEST_PAUSE = 0.02
        # The first figure is not waited for longer than so many bytes take: what a new connection brings at once.
        FIRST = 14_600
        private_constant :SHORTEST, :PAUSE, :SHORTEST_PAUSE, :FIRST

        def initialize = @bytes = @busy = 0

        # Bytes came.
        def received(bytes, now, round_trip:, first: false)
          count(bytes, now, [round_trip * PAUSE, SHORTEST_PAUSE].max)
          return if @busy < SHORTEST
          enough = first && @bytes >= FIRST
          return unless enough || now - @began >= round_trip
          rate = @bytes / @busy
          @began = now
          @bytes = @busy = 0
          rate
        end

        # Nothing is under way any more: what comes next does so after a pause, however short.
        def idle = @last = nil

        private

        def count(bytes, now, pause)
          if @last.nil? || now - @last > pause
            @resumed = now
          elsif now > @resumed
            @bytes += bytes
            @busy += now - @last
          end
          @began ||= now
          @last = now
        end
      end
    end
  end
end
