# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # How fast answers are asked for on a long way over connections that have brought much.
      #
      # On a new connection a server sends little at first, and more with each round trip (RFC 5681, section 3.1). On one that has brought much it
      # sends all at once what was asked for at once, faster than the line takes it: the queue before the line overflows, and what is lost comes one round
      # trip later, or several. So no more is asked for in a time than the line carries in it, and somewhat more, so that it never
      # stands idle because of a rate that was taken too low.
      #
      # It is a bucket of answers' bytes, which fills at FACTOR times the line's rate and holds BURST.
      class TokenBucket
        FACTOR = 1.1
        # What a queue takes at least: so many seconds of the line's rate, or so many bytes.
        BURST = 0.05 # seconds
        LEAST_BURST = 65_536 # bytes
        # Less is not worth a write, seconds.
        STEP = 0.01
        private_constant :FACTOR, :BURST, :LEAST_BURST, :STEP

        attr_reader :again_at

        def initialize(link)
          @link = link
          @budget = @again_at = nil
          @seen_at = 0.0
        end

        def budget(now, brought)
          rate = @link.rate
          return @budget = Float::INFINITY if rate.nil? || @link.near? || brought < LEAST_BURST
          burst = [BURST * rate, LEAST_BURST].max
          @budget = [(@budget || burst) + FACTOR * rate * (now - @seen_at), burst].min
        ensure
          @seen_at = now
        end

        def spend(bytes, more:)
          @budget -= bytes
          @again_at = (@seen_at + STEP if more && @budget.finite?)
        end
      end
    end
  end
end
