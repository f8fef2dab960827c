# frozen_string_literal: true

require_relative "../event"
require_relative "../timers"

module Hikyaku
  class Hub
    class RubyEngine
      # Heartbeats, and the ends of streams whose grant expires or whose longest lifetime is over. The twin of hk_hub_timing.
      class Deadlines
        # Seconds by which a stream ends before its token does.
        EXPIRY_MARGIN = 0.25
        # Seconds over which heartbeats, and ends, are collected.
        BEAT_SLOT = 0.25
        DEADLINE_SLOT = 0.05
        private_constant :EXPIRY_MARGIN, :BEAT_SLOT, :DEADLINE_SLOT

        def initialize(queue, heartbeat:, max_lifetime:, random:)
          @queue = queue
          @heartbeat = heartbeat if heartbeat&.positive?
          @max_lifetime = max_lifetime if max_lifetime&.positive?
          @random = random
          @beats = Timers.new(granularity: BEAT_SLOT)
          @deadlines = Timers.new(granularity: DEADLINE_SLOT)
        end

        def start(subscriber, now, expires_in)
          subscriber.beat_slot = @beats.add(now + @heartbeat + BEAT_SLOT, subscriber) if @heartbeat
          subscriber.lifetime_at = now + @max_lifetime * (1 - @random.rand(0.1)) if @max_lifetime
          set(subscriber, now, expires_in)
        end

        # Ends the stream when its grant expires, or its longest lifetime is over.
        def set(subscriber, now, expires_in)
          @deadlines.cancel(subscriber.deadline_slot, subscriber)
          deadline = [expires_in && now + expires_in - EXPIRY_MARGIN, subscriber.lifetime_at].compact.min
          subscriber.deadline_slot = deadline && @deadlines.add(deadline, subscriber)
        end

        def cancel(subscriber)
          @beats.cancel(subscriber.beat_slot, subscriber)
          @deadlines.cancel(subscriber.deadline_slot, subscriber)
        end

        def tick(now)
          @deadlines.expire(now) { |subscriber| finish(subscriber) }
          @beats.expire(now) { |subscriber| beat(subscriber, now) }
        end

        def next_at = [@deadlines.next_at, @beats.next_at].compact.min

        private

        def finish(subscriber)
          lifetime = subscriber.lifetime_at
          @queue.close(subscriber, (lifetime && @deadlines.slot_of(lifetime) <= subscriber.deadline_slot) ? :lifetime : :expired)
          subscriber.deadline_slot = nil
        end

        def beat(subscriber, now)
          silent_at = subscriber.active_at + @heartbeat
          if silent_at <= now
            @queue.say(subscriber, Event::HEARTBEAT) unless subscriber.blocked || subscriber.control
            silent_at = now + @heartbeat
          end
          subscriber.beat_slot = @beats.add(silent_at + BEAT_SLOT, subscriber)
        end
      end
      private_constant :Deadlines
    end
  end
end
