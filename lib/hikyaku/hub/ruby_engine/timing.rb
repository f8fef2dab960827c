# frozen_string_literal: true

require_relative "../event"
require_relative "../timers"

module Hikyaku
  class Hub
    class RubyEngine
      # Heartbeats and ends: what happens because time passes.
      module Timing
        # Seconds by which a stream ends before its token does, so that it never ends after it.
        EXPIRY_MARGIN = 0.25
        # Seconds in which heartbeats are gathered.
        BEAT_SLOT = 0.25
        # Seconds in which ends are gathered.
        DEADLINE_SLOT = 0.05
        private_constant :EXPIRY_MARGIN, :BEAT_SLOT, :DEADLINE_SLOT

        def tick(now:)
          forget_the_old if @storage
          @deadlines.expire(now) do |subscriber|
            lifetime = subscriber.lifetime_at
            close(subscriber, (lifetime && @deadlines.slot_of(lifetime) <= subscriber.deadline_slot) ? :lifetime : :expired)
            subscriber.deadline_slot = nil
          end
          @beats.expire(now) do |subscriber|
            silent_at = subscriber.active_at + @heartbeat
            if silent_at <= now
              control(subscriber, Event::HEARTBEAT) unless subscriber.blocked || subscriber.control
              silent_at = now + @heartbeat
            end
            subscriber.beat_slot = @beats.add(silent_at + BEAT_SLOT, subscriber)
          end
        end

        def next_tick = [@deadlines.next_at, @beats.next_at].compact.min

        private

        def start_timing(heartbeat, max_lifetime)
          @heartbeat = heartbeat if heartbeat&.positive?
          @max_lifetime = max_lifetime if max_lifetime&.positive?
          @beats = Timers.new(granularity: BEAT_SLOT)
          @deadlines = Timers.new(granularity: DEADLINE_SLOT)
        end

        def time(subscriber, now, expires_in)
          subscriber.beat_slot = @beats.add(now + @heartbeat + BEAT_SLOT, subscriber) if @heartbeat
          subscriber.lifetime_at = now + @max_lifetime * (1 - @random.rand(0.1)) if @max_lifetime
          set_deadline(subscriber, now, expires_in)
        end

        # When its grant ends, or its longest lifetime.
        def set_deadline(subscriber, now, expires_in)
          @deadlines.cancel(subscriber.deadline_slot, subscriber)
          deadline = [expires_in && now + expires_in - EXPIRY_MARGIN, subscriber.lifetime_at].compact.min
          subscriber.deadline_slot = deadline && @deadlines.add(deadline, subscriber)
        end

        def cancel_timing(subscriber)
          @beats.cancel(subscriber.beat_slot, subscriber)
          @deadlines.cancel(subscriber.deadline_slot, subscriber)
        end
      end

      private_constant :Timing
    end
  end
end
