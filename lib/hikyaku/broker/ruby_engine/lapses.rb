# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # Receivers that let a lease end: they hang, or are slow, and are passed over until their client is heard.
      class Lapses
        def initialize(parts)
          @parts = parts
        end

        # One thread of a client may serve all its subscriptions to a queue, so they are passed over together.
        def begin_for(delivery)
          session = delivery.subscription.session
          queue = delivery.message.queue
          session.subscriptions.each_value do |subscription|
            next unless subscription.queue.equal?(queue)
            session.lapsed += 1 unless subscription.lapsed
            subscription.lapsed = [subscription.lapsed || 0, delivery.id].max
            queue.rotation.delete(subscription)
            queue.skipped.delete(subscription)
            queue.recheck = true
          end
        end

        # A client has spoken of its deliveries from a queue, or (nil) of one that it has no longer.
        def end_for(session, queue = nil)
          return if session.lapsed.zero?
          session.subscriptions.each_value do |subscription|
            resume(subscription) if subscription.lapsed && (queue.nil? || subscription.queue.equal?(queue))
          end
        end

        # A range speaks of all its deliveries, of those that are not out any more as well.
        def end_for_range(session, deliveries, range)
          return if session.lapsed.zero?
          deliveries.each { |delivery| end_for(session, delivery.message.queue) }
          session.subscriptions.each_value { |subscription| resume(subscription) if subscription.lapsed && range.cover?(subscription.lapsed) }
        end

        def clear(subscription)
          return unless subscription.lapsed
          subscription.lapsed = nil
          subscription.session.lapsed -= 1
        end

        private

        def resume(subscription)
          clear(subscription)
          @parts.deliveries.unpark(subscription)
          @parts.deliveries.may_receive(subscription)
          subscription.queue.recheck = true
          @parts.deliveries.dispatch(subscription.queue)
        end
      end
    end
  end
end
