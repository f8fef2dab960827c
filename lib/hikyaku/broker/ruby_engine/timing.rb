# frozen_string_literal: true

require_relative "../wire"
require_relative "../../log/journal/errors"

module Hikyaku
  module Broker
    class RubyEngine
      # What time brings: leases, delays, expiries, heartbeats, and what nobody has used for long. A slice at a time.
      module Timing
        SLICE = 1000
        COPIES = 100
        COPY_BYTES = 256 * 1024
        # Seconds after which a disk that was full is tried again.
        PATIENCE = 1.0
        private_constant :SLICE, :COPIES, :COPY_BYTES, :PATIENCE

        private

        def start_timing
          @leases = Timetable.new
          @dues = Timetable.new
          @expiries = Timetable.new
          @pulses = Timetable.new
          @permits = Timetable.new
          @idles = Timetable.new
          @unread = Timetable.new
          @timetables = [@leases, @dues, @expiries, @pulses, @permits, @idles, @unread]
        end

        def pass_time
          @leases.expire(@now, most: SLICE) { |delivery| end_lease(delivery) }
          @expiries.expire(@now, most: SLICE) { |message| run_out(message) }
          come_due_all
          @pulses.expire(@now, most: SLICE) { |session| feel_pulse(session) }
          @permits.expire(@now) { |session| end_with(session, Wire::Code::UNAUTHORIZED, "the token has expired") }
          @idles.expire(@now, most: SLICE) { |thing| let_idle_go(thing) }
          @unread.expire(@now) { |queue| dispatch(queue) }
        end

        # It has its message no longer, and cannot say any more what it wants with it.
        def end_lease(delivery)
          pass_over_until_heard(delivery)
          come_back(delivery, :crash)
          dispatch(delivery.message.queue)
        end

        def run_out(message)
          message.expiry_slot = nil
          expire(message) unless message.state == :out
        end

        def come_due_all
          queues = {}.compare_by_identity
          @dues.expire(@now, most: SLICE) do |message|
            come_due(message)
            queues[message.queue] = true
          end
          queues.each_key { |queue| dispatch(queue) }
        end

        def feel_pulse(session)
          session.pulse_slot = nil
          return end_with(session, Wire::Code::IDLE, "nothing was heard for two heartbeats") if @now - session.heard_at >= session.heartbeat * 2
          if @now - session.said_at >= session.heartbeat / 2 && session.outbox.empty?
            session.outbox << Wire.ping
            speak(session)
          end
          session.pulse_slot = @pulses.add(@now + session.heartbeat / 2, session)
        end

        def let_idle_go(thing)
          thing.idle_slot = nil
          if thing.is_a?(Producer)
            forget_producer(thing)
          elsif thing.idle?
            forget_queue(thing)
          end
        end

        # The oldest segment's messages are copied when most of what the journal holds is not needed.
        def evacuate
          segment = @ledger.straggling or return @evacuating = false
          @copied += @ledger.evacuate(segment, COPIES, COPY_BYTES)
          @evacuating = true
        rescue Log::Journal::Full, Log::Journal::Unread
          @evacuating = false
        end

        # Whoever makes room on the disk says so to nobody.
        def try_again
          return unless (at = retry_at) && at <= @now
          @ledger.retry
          @retry_at = nil
        end

        def retry_at = @retry_at = @ledger&.out_of_space? ? @retry_at || @now + PATIENCE : nil

        def earliest
          return @now if @evacuating || (@ledger&.straggling && !@ledger.out_of_space?)
          @timetables.inject(retry_at) do |soonest, timetable|
            at = timetable.next_at
            (soonest.nil? || (at && at < soonest)) ? at : soonest
          end
        end
      end
    end
  end
end
