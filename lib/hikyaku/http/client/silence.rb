# frozen_string_literal: true

require_relative "transport"

module Hikyaku
  module HTTP
    class Client
      # Since when it is the other side of a connection that says nothing, and not the line.
      #
      # What is to come on others may stand before it in the queue of a slow line: until that has come, or nothing comes on any connection, the line is
      # at work. And what was asked may not have arrived: the kernel knows until when it was not acknowledged (RFC 9293, section 3.8).
      class Silence
        # A packet, and its first repetition (RFC 6298, section 5.5: after twice the time), may be lost: in timeouts of the kernel.
        REPETITIONS = 3
        # Where something is not acknowledged, it is looked at again after so many seconds.
        AGAIN = 0.25
        private_constant :REPETITIONS, :AGAIN

        # @param line [Line]
        def initialize(line)
          @line = line
          @excused_until = -Float::INFINITY
          broken
        end

        # Something came, or was asked on a connection that was idle.
        #
        # @return [void]
        def broken = @before = @passed_at = nil

        # To be called in each turn while something is due.
        #
        # @param own [Float] bytes that are to come on this connection
        # @param now [Float] seconds of the monotonic clock
        # @return [void]
        def look(own, now)
          @before ||= @line.brought + [@line.due - own, 0].max
          @passed_at ||= now if @line.brought >= @before || @line.due <= own
        end

        # @param moved_at [Float] seconds of the monotonic clock, when something last came here
        # @return [Float] the same, since when it could have come again
        def since(moved_at) = [moved_at, @passed_at || @line.moved_at, @excused_until].max

        # By what the kernel knows of it, where it tells: see {Transport}.
        #
        # @param io [#to_io]
        # @param since [Float] seconds of the monotonic clock
        # @param seconds [Float] for how long nothing has come since then, when it is late
        # @param now [Float] seconds of the monotonic clock
        # @return [Boolean] whether it is not late yet; {#since} has changed then
        def excused?(io, since, seconds, now)
          transport = Transport.of(io) or return false
          late_at = transport.unacknowledged ? now + AGAIN : [since, now - transport.acknowledged_before].max + [seconds, REPETITIONS * transport.timeout].max
          return false if now >= late_at
          @excused_until = late_at - seconds
          true
        end
      end
    end
  end
end
