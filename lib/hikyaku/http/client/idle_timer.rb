# frozen_string_literal: true

require_relative "transport"

module Hikyaku
  module HTTP
    class Client
      # Since when it is the other side of a connection that says nothing, and not the line.
      #
      # What is to come on others may stand before it in the queue of a slow line: until that has come, or nothing comes on any connection, the line is
      # at work. And what was asked may not have arrived: the kernel knows until when it was not acknowledged (RFC 9293, section 3.8).
      class IdleTimer
        # A packet, and its first repetition (RFC 6298, section 5.5: after twice the time), may be lost: in timeouts of the kernel.
        REPETITIONS = 3
        # Where something is not acknowledged, it is looked at again after so many seconds.
        AGAIN = 0.25
        private_constant :REPETITIONS, :AGAIN

        def initialize(line)
          @line = line
          @excused_until = -Float::INFINITY
          broken
        end

        # Something came, or was asked on a connection that was idle.
        def broken = @before = @passed_at = nil

        # To be called in each turn while something is due.
        def look(own, now)
          @before ||= @line.brought + [@line.due - own, 0].max
          @passed_at ||= now if @line.brought >= @before || @line.due <= own
        end

        def since(moved_at) = [moved_at, @passed_at || @line.moved_at, @excused_until].max

        # By what the kernel knows of it, where it tells: see {Transport}.
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
