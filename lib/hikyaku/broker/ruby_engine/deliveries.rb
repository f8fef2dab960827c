# frozen_string_literal: true

require_relative "../../log/journal/errors"
require_relative "../wire/type"
require_relative "delivery"
require_relative "timer_wheel"

module Hikyaku
  module Broker
    class RubyEngine
      # Gives waiting messages to receivers: those of a queue take turns, a suspect goes to a receiver that has nothing else.
      class Deliveries
        PUSH_BYTES = 48
        PUSH_FORMAT = "VCCvQ<Q<Q<VvvvCCvva*"
        REDELIVERED = 1
        SUSPECT = 2
        # Seconds until a message is read again for which there was no descriptor.
        REREAD_AFTER = 0.1
        private_constant :PUSH_BYTES, :PUSH_FORMAT, :REDELIVERED, :SUSPECT, :REREAD_AFTER

        attr_reader :count, :redelivered

        def initialize(parts)
          @parts = parts
          @clock = parts.clock
          @output = parts.output
          @leases = TimerWheel.new
          @unread = TimerWheel.new
          @count = @redelivered = 0
        end

        # Delivers what can be delivered now. O(messages that are delivered).
        def dispatch(queue)
          return if @parts.draining || @parts.closed || queue.settled?
          rejoin(queue)
          serve_suspects(queue)
          serve(queue)
          serve(queue) while park(queue)
        end

        # Deliveries in a row are mostly of one queue; to dispatch a queue twice does no harm.
        def dispatch_queues_of(deliveries)
          before = nil
          deliveries.each do |delivery|
            queue = delivery.message.queue
            dispatch(queue) unless queue.equal?(before)
            before = queue
          end
        end

        # A parked message that fits goes before new ones: somebody may receive (again).
        def unpark(subscription)
          subscription.queue.unpark { |message| fits?(subscription, message) } if subscription.credit > 0
        end

        def may_receive(subscription)
          queue = subscription.queue
          return if queue.reserved.equal?(subscription)
          queue.skipped.delete(subscription)
          queue.rotation[subscription] = true if subscription.free?
        end

        # A session takes deliveries again.
        def resume(session)
          session.paused = false
          session.subscriptions.each_value { |subscription| may_receive(subscription) }
          session.subscriptions.each_value.map(&:queue).uniq.each { |queue| dispatch(queue) }
        end

        def fits?(subscription, message) = push_bytes(message.size) <= subscription.session.max_frame

        # Bytes of the PUSH of a message whose properties and payload have so many.
        def push_bytes(bytes) = PUSH_BYTES + bytes

        # `lease` is in milliseconds.
        def start_lease(delivery, lease)
          delivery.deadline = @clock.now + lease / 1000.0
          delivery.lease_timer = @leases.add(delivery.deadline, delivery)
        end

        def renew_lease(delivery, lease)
          @leases.cancel(delivery.lease_timer, delivery)
          start_lease(delivery, lease)
        end

        # Ends a delivery: its receiver has credit for another one.
        def retire(delivery)
          message = delivery.message
          delivery.subscription.session.deliveries.delete(delivery.id)
          @leases.cancel(delivery.lease_timer, delivery)
          message.delivery = nil
          message.queue.out -= 1
          delivery.subscription.returned(message.size)
          may_receive(delivery.subscription)
        end

        def expire_leases(most)
          @leases.expire(@clock.now, most: most) { |delivery| @parts.settlement.end_lease(delivery) }
        end

        def retry_unread = @unread.expire(@clock.now) { |queue| dispatch(queue) }

        def next_timer = [@leases.next_at, @unread.next_at].compact.min

        private

        def serve(queue)
          while (message = queue.first) && (subscription = receiver_of(queue, message))
            content = content_of(message)
            if content
              queue.shift(message)
              push(subscription, message, content)
            end
            queue.rotation[subscription] = true if subscription.free?
            return unless content
            rejoin(queue)
          end
        end

        # Returns nil where there is no descriptor to read the message with: it is tried again.
        def content_of(message)
          message.content || @parts.store.content(message)
        rescue Log::Journal::Unread
          @unread.add(@clock.now + REREAD_AFTER, message.queue)
          nil
        end

        # Receivers that were skipped for the size of one message may take the next one.
        def rejoin(queue)
          return if queue.skipped.empty? || (queue.first && queue.first.id == queue.skipped_for && !queue.first_suspect)
          queue.rotation.merge!(queue.skipped)
          queue.skipped.clear
        end

        # Sets the first message aside when no receiver that is left takes one of its size: the others would wait for ever. A receiver
        # that takes it, but has no credit now, is waited for.
        def park(queue)
          return unless queue.recheck && queue.rotation.empty? && queue.skipped.any?
          queue.recheck = false
          message = queue.first
          return if message.nil? || queue.receivers.each_key.any? { |each| lasting?(each) && fits?(each, message) }
          queue.park(message)
          rejoin(queue)
          true
        end

        # Takes the receiver out of the rotation: it comes back behind the others.
        def receiver_of(queue, message)
          while (subscription, = queue.rotation.shift)
            next unless subscription.free?
            return subscription if subscription.affords?(message.size) && fits?(subscription, message)
            skip(subscription, message)
          end
        end

        def skip(subscription, message)
          queue = subscription.queue
          queue.skipped[subscription] = true
          queue.skipped_for = message.id
          queue.recheck = true unless fits?(subscription, message)
        end

        # While a suspect waits, one receiver is reserved for it: that one gets nothing until it has finished what it has.
        def serve_suspects(queue)
          while (message = queue.first_suspect)
            subscription = reserve(queue, message) or return
            return unless subscription.out.zero? && subscription.free?
            content = content_of(message) or return
            queue.shift_suspect
            queue.reserved = nil
            subscription.exclusive = true
            push(subscription, message, content)
          end
          release_reserved(queue) if queue.reserved
        end

        def reserve(queue, message)
          queue.reserved = nil if queue.reserved && !(lasting?(queue.reserved) && fits?(queue.reserved, message))
          return queue.reserved if queue.reserved
          able = queue.rotation.each_key.select { |each| each.free? && fits?(each, message) }
          chosen = able.find { |each| each.out.zero? } || able.first or return
          queue.rotation.delete(chosen)
          queue.reserved = chosen
        end

        def lasting?(subscription) = !subscription.ended && !subscription.lapsed && subscription.credit > 0 && !subscription.session.draining

        def release_reserved(queue)
          subscription = queue.reserved
          queue.reserved = nil
          may_receive(subscription)
        end

        def push(subscription, message, content)
          session = subscription.session
          id = session.next_delivery
          session.next_delivery = id + 1
          delivery = Delivery.new(id, message, subscription)
          session.deliveries[id] = message.delivery = delivery
          message.state = :out
          start_lease(delivery, subscription.lease)
          subscription.pushed(message.size)
          queue = message.queue
          queue.out += 1
          session.buffer.push([push_bytes(message.size), Wire::Type::PUSH, flags_of(message), subscription.number, id, message.id, message.sent_at,
            subscription.lease, message.attempt, message.failures, message.crashes, message.priority, 0, message.properties_size, 0, content].pack(PUSH_FORMAT))
          @count += 1
          @output << session
          return unless message.redelivered?
          @redelivered += 1
          queue.redelivered += 1
        end

        def flags_of(message)
          return 0 unless message.redelivered?
          message.suspect? ? REDELIVERED | SUSPECT : REDELIVERED
        end
      end
    end
  end
end
