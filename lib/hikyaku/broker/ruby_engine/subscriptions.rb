# frozen_string_literal: true

require_relative "../permission"
require_relative "../wire/code"
require_relative "../wire/type"
require_relative "subscription"

module Hikyaku
  module Broker
    class RubyEngine
      # SUBSCRIBE, UNSUBSCRIBE and CREDIT (docs/protocol.md, section 7).
      class Subscriptions
        def initialize(parts)
          @parts = parts
          @output = parts.output
        end

        def subscribe(session, frame)
          number = frame.subscription
          return @output.invalid(session, frame.id, "a subscription has a number from 1 to 65,535") if number.zero?
          return @output.invalid(session, frame.id, "there is a subscription #{number} already") if session.subscriptions.key?(number)
          return @output.invalid(session, frame.id, "a queue is of kind 0 or 1, not #{frame.kind}") if frame.kind > 1
          name = (frame.kind == 1) ? own_name(session, frame) : frame.name
          return unless name
          if session.subscriptions.size >= @parts.limits.max_subscriptions
            return @output.refuse(session, frame.id, Wire::Code::LIMIT, "this client has #{@parts.limits.max_subscriptions} subscriptions, as many as it may")
          end
          queue = @parts.intake.queue_for(session, frame.id, name, frame.kind, Permission::RECEIVE) or return
          @parts.queues.register(queue) unless queue.registered
          subscription = Subscription.new(number, session, queue, frame.credit, frame.credit_bytes, @parts.limits.lease_of(frame.lease))
          session.subscriptions[number] = subscription
          queue.receivers[subscription] = true
          @parts.acks.add(session, Wire::Type::SUBSCRIBE, frame.id, 0)
          @parts.deliveries.unpark(subscription)
          offer(session, subscription)
        end

        def unsubscribe(session, frame)
          subscription = session.subscriptions.delete(frame.subscription) or return refuse_unknown(session, frame)
          remove(subscription)
          @parts.acks.add(session, Wire::Type::UNSUBSCRIBE, frame.id, 0)
          @parts.deliveries.dispatch(subscription.queue)
        end

        def credit(session, frame)
          subscription = session.subscriptions[frame.subscription] or return refuse_unknown(session, frame)
          paused = subscription.credit.zero?
          subscription.credit = frame.credit
          subscription.credit_bytes = frame.credit_bytes
          @parts.acks.add(session, Wire::Type::CREDIT, frame.id, 0)
          @parts.deliveries.unpark(subscription) if paused
          subscription.queue.recheck = true
          offer(session, subscription)
        end

        # Lets a client finish what it has, and gives it nothing more. `forgets`: its identity is not needed any more.
        def drain(session, forgets: false)
          session.draining = true
          session.forgets ||= forgets
          session.subscriptions.each_value do |subscription|
            subscription.queue.rotation.delete(subscription)
            subscription.queue.recheck = true
            @parts.deliveries.dispatch(subscription.queue)
          end
        end

        # Takes a subscription out of its queue.
        def remove(subscription)
          subscription.ended = true
          @parts.lapses.clear(subscription)
          queue = subscription.queue
          queue.receivers.delete(subscription)
          queue.rotation.delete(subscription)
          queue.skipped.delete(subscription)
          queue.recheck = true
          @parts.queues.check_idle(queue)
        end

        private

        def offer(session, subscription)
          @parts.deliveries.may_receive(subscription)
          @parts.lapses.end_for(session, subscription.queue)
          @parts.deliveries.dispatch(subscription.queue)
        end

        def own_name(session, frame)
          return @output.invalid(session, frame.id, "only a client that has an identity has a queue of its own") if session.identity.empty?
          return session.identity if frame.name.empty? || frame.name == session.identity
          @output.refuse(session, frame.id, Wire::Code::FORBIDDEN, "the queue of a client is for that client alone")
        end

        def refuse_unknown(session, frame)
          @output.refuse(session, frame.id, Wire::Code::NO_SUCH_SUBSCRIPTION, "there is no subscription #{frame.subscription}")
        end
      end
    end
  end
end
