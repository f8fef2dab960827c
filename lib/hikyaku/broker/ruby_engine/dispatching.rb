# frozen_string_literal: true

require_relative "../../log/journal/errors"
require_relative "../wire/type"
require_relative "delivery"

module Hikyaku
  module Broker
    class RubyEngine
      # Who gets what waits: receivers of a queue in turn, suspects alone.
      module Dispatching
        PUSH_BYTES = 48
        PUSH_FORM = "VCCvQ<Q<Q<VvvvCCvva*"
        AGAIN = 1
        SUSPECT = 2
        # Seconds until a message is read again for which there was no descriptor.
        PAUSE = 0.1
        private_constant :PUSH_BYTES, :PUSH_FORM, :AGAIN, :SUSPECT, :PAUSE

        private

        # Hands out what can be handed out now. O(messages that are handed out).
        def dispatch(queue)
          return if @draining || @closed || queue.settled?
          rejoin(queue)
          serve_suspects(queue)
          serve(queue)
          serve(queue) while park(queue)
        end

        def serve(queue)
          while (message = queue.first) && (subscription = receiver_of(queue, message))
            content = content_of(message)
            if content
              queue.shift(message)
              hand(subscription, message, content)
            end
            queue.rotation[subscription] = true if subscription.free?
            return unless content
            rejoin(queue)
          end
        end

        # @return [String, nil] nil: there is no descriptor to read it with, and it is tried again
        def content_of(message)
          message.content || @ledger.content(message)
        rescue Log::Journal::Unread
          @unread.add(@now + PAUSE, message.queue)
          nil
        end

        # Who was passed over for a message's size alone may take the next one.
        def rejoin(queue)
          return if queue.aside.empty? || (queue.first && queue.first.id == queue.aside_for && !queue.first_suspect)
          queue.rotation.merge!(queue.aside)
          queue.aside.clear
        end

        # The message whose turn it is lets others go before, when nobody is left who may receive and takes one of its size: they would
        # wait for as long as nobody comes. Who takes it, but has no credit now, is waited for.
        def park(queue)
          return unless queue.look && queue.rotation.empty? && queue.aside.any?
          queue.look = false
          message = queue.first
          return if message.nil? || queue.receivers.each_key.any? { |each| lasting?(each) && fits?(each, message) }
          queue.park(message)
          rejoin(queue)
          true
        end

        # Somebody may receive (again): what lets others go before, and fits, waits before what is new.
        def unpark(subscription)
          subscription.queue.unpark { |message| fits?(subscription, message) } if subscription.credit > 0
        end

        # Taken out of the rotation: it comes back behind the others. Whoever cannot have the message comes back when that has changed.
        def receiver_of(queue, message)
          while (subscription, = queue.rotation.shift)
            next unless subscription.free?
            return subscription if subscription.affords?(message.size) && fits?(subscription, message)
            pass_over(subscription, message)
          end
        end

        def pass_over(subscription, message)
          queue = subscription.queue
          queue.aside[subscription] = true
          queue.aside_for = message.id
          queue.look = true unless fits?(subscription, message)
        end

        def fits?(subscription, message) = push_bytes(message.size) <= subscription.session.max_frame

        # @param bytes [Integer] of properties and payload
        def push_bytes(bytes) = PUSH_BYTES + bytes

        # A subscription may have something (again).
        def may_receive(subscription)
          queue = subscription.queue
          return if queue.reserved.equal?(subscription)
          queue.aside.delete(subscription)
          queue.rotation[subscription] = true if subscription.free?
        end

        # A suspect is delivered to a receiver that has nothing else. While one waits, a receiver is kept free for it: it gets nothing
        # until it has finished what it has.
        def serve_suspects(queue)
          while (message = queue.first_suspect)
            subscription = keep_free(queue, message) or return
            return unless subscription.out.zero? && subscription.free?
            content = content_of(message) or return
            queue.shift_suspect
            queue.reserved = nil
            subscription.alone = true
            hand(subscription, message, content)
          end
          release_reserved(queue) if queue.reserved
        end

        def keep_free(queue, message)
          queue.reserved = nil if queue.reserved && !(lasting?(queue.reserved) && fits?(queue.reserved, message))
          return queue.reserved if queue.reserved
          able = queue.rotation.each_key.select { |each| each.free? && fits?(each, message) }
          chosen = able.find { |each| each.out.zero? } || able.first or return
          queue.rotation.delete(chosen)
          queue.reserved = chosen
        end

        def lasting?(subscription) = !subscription.ended && !subscription.lapsed && subscription.credit > 0 && !subscription.session.drains

        def release_reserved(queue)
          subscription = queue.reserved
          queue.reserved = nil
          may_receive(subscription)
        end

        def hand(subscription, message, content)
          session = subscription.session
          id = session.next_delivery
          session.next_delivery = id + 1
          delivery = Delivery.new(id, message, subscription)
          session.deliveries[id] = message.delivery = delivery
          message.state = :out
          lend(delivery, subscription.lease)
          subscription.handed(message.size)
          queue = message.queue
          queue.out += 1
          session.outbox.push([push_bytes(message.size), Wire::Type::PUSH, flags_of(message), subscription.number, id, message.id, message.sent_at,
            subscription.lease, message.attempt, message.failures, message.crashes, message.priority, 0, message.properties_size, 0, content].pack(PUSH_FORM))
          @delivered += 1
          speak(session)
          return unless message.again?
          @redelivered += 1
          queue.redelivered += 1
        end

        def flags_of(message)
          return 0 unless message.again?
          message.suspect? ? AGAIN | SUSPECT : AGAIN
        end

        def lend(delivery, lease)
          delivery.deadline = @now + lease / 1000.0
          delivery.slot = @leases.add(delivery.deadline, delivery)
        end
      end
    end
  end
end
