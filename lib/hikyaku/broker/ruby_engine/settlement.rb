# frozen_string_literal: true

require_relative "../level"
require_relative "../wire/code"
require_relative "../wire/type"
require_relative "messages"
require_relative "text"

module Hikyaku
  module Broker
    class RubyEngine
      # How deliveries end: FREE, NACK, a lease that ended, a connection that broke; and TOUCH, which puts the end off (docs/protocol.md,
      # section 8).
      class Settlement
        MAX_REASON_BYTES = 1024
        # By the kind of a NACK.
        CAUSES = %i[release failure dead].freeze
        private_constant :MAX_REASON_BYTES, :CAUSES

        # Counters of deliveries that ended without their message being done with, and of requests for one that was not out.
        attr_reader :failures, :crashed, :released, :stale

        def initialize(parts)
          @parts = parts
          @failures = @crashed = @released = @stale = 0
        end

        def free(session, frame)
          level = frame.level.zero? ? @parts.levels.written : frame.level - 1
          if level > @parts.levels.highest
            return @parts.output.refuse(session, frame.id, Wire::Code::LEVEL, "this broker has no storage: there is level memory alone")
          end
          if frame.first == frame.last
            delivery = session.deliveries[frame.first] or return refuse_stale(session, frame.id, frame.first)
            finish(delivery)
            @parts.lapses.end_for(session, delivery.message.queue)
            @parts.acks.add(session, Wire::Type::FREE, frame.id, level, count: 1)
            @parts.deliveries.dispatch(delivery.message.queue)
          else
            found = out_in_range(session, frame) or return
            found.each { |each| finish(each) }
            @parts.acks.add(session, Wire::Type::FREE, frame.id, level, count: found.size)
            @parts.lapses.end_for_range(session, found, frame.first..frame.last)
            @parts.deliveries.dispatch_queues_of(found)
          end
        end

        def touch(session, frame)
          found =
            if frame.first == frame.last
              [session.deliveries[frame.first] || (return refuse_stale(session, frame.id, frame.first))]
            else
              out_in_range(session, frame) or return
            end
          lease = 0
          found.each do |delivery|
            lease = frame.lease.zero? ? delivery.subscription.lease : @parts.limits.lease_of(frame.lease)
            @parts.deliveries.renew_lease(delivery, lease)
          end
          @parts.acks.add(session, Wire::Type::TOUCH, frame.id, 0, count: found.size, value: lease)
        end

        def nack(session, frame)
          return @parts.output.invalid(session, frame.id, "NACK is of kind 0, 1 or 2, not #{frame.kind}") if frame.kind > 2
          unless frame.reason.bytesize <= MAX_REASON_BYTES && Text.utf8?(frame.reason)
            return @parts.output.invalid(session, frame.id, "the words of a NACK are 1,024 bytes of UTF-8 at most")
          end
          delivery = session.deliveries[frame.delivery] or return refuse_stale(session, frame.id, frame.delivery)
          requeue(delivery, CAUSES[frame.kind], delay: frame.delay, reason: frame.reason)
          @parts.acks.add(session, Wire::Type::NACK, frame.id, @parts.levels.written)
          @parts.lapses.end_for(session, delivery.message.queue)
          @parts.deliveries.dispatch(delivery.message.queue)
        end

        # The client acknowledges a PUSH: it works on the message from now on.
        def start(session, frame)
          return unless session.numbers?(frame.id)
          delivery = session.deliveries[frame.id]
          @parts.lapses.end_for(session, delivery&.message&.queue)
          return unless delivery
          session.reports_starts = true
          delivery.started = true
        end

        # The receiver has its message no longer, and cannot say any more what it wants with it.
        def end_lease(delivery)
          @parts.lapses.begin_for(delivery)
          requeue(delivery, :crash)
          @parts.deliveries.dispatch(delivery.message.queue)
        end

        # Returns all that is out at a session. A client that vanished has crashed with what it worked on: what it acknowledged, or the
        # oldest delivery of each subscription where it never acknowledges.
        def return_all(session, vanished: true)
          return if session.deliveries.empty?
          crashed = (vanished && !session.draining) ? started(session) : {}
          session.deliveries.values.each { |delivery| requeue(delivery, crashed.key?(delivery) ? :crash : :return) }
        end

        private

        def finish(delivery)
          @parts.deliveries.retire(delivery)
          @parts.messages.free(delivery.message)
        end

        # Ends a delivery whose message is not done with. `cause` is :crash, :failure, :release, :dead or :return, `delay` milliseconds.
        def requeue(delivery, cause, delay: 0, reason: "")
          message = delivery.message
          @parts.deliveries.retire(delivery)
          message.count_return(cause)
          count(message.queue, cause)
          death = death_of(message, cause)
          if death
            @parts.messages.bury(message, death, reason)
          elsif message.expires > 0 && message.expiry_timer.nil?
            return @parts.messages.expire(message)
          else
            @parts.messages.enqueue(message, delay)
          end
          @parts.store&.changed(message, delay: (message.state == :delayed) ? delay : 0)
        end

        def death_of(message, cause)
          case cause
          when :dead then Messages::REJECTED
          when :failure then Messages::FAILURES if message.failures >= @parts.limits.max_failures
          when :crash then Messages::CRASHES if message.crashes >= @parts.limits.max_crashes
          end
        end

        def count(queue, cause)
          case cause
          when :crash
            @crashed += 1
            queue.crashed += 1
          when :failure, :dead
            @failures += 1
            queue.failed += 1
          when :release then @released += 1
          end
        end

        # The deliveries of a range that are out. O(those, or the width of the range, or all that are out).
        def out_in_range(session, frame)
          first = frame.first
          last = frame.last
          return @parts.output.invalid(session, frame.id, "a range goes from the lower number to the higher") if first > last
          deliveries = session.deliveries
          return (first..last).filter_map { |id| deliveries[id] } if last - first < deliveries.size
          found = []
          deliveries.each do |id, delivery|
            break if id > last
            found << delivery if id >= first
          end
          found
        end

        def started(session)
          deliveries = session.deliveries.each_value
          found = session.reports_starts ? deliveries.select(&:started) : deliveries.uniq(&:subscription)
          found.to_h { |delivery| [delivery, true] }
        end

        def refuse_stale(session, id, delivery)
          @stale += 1
          @parts.output.refuse(session, id, Wire::Code::STALE, "the lease of this delivery has ended, or there was none", delivery: delivery)
          @parts.lapses.end_for(session)
        end
      end
    end
  end
end
