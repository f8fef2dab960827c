# frozen_string_literal: true

require_relative "../level"
require_relative "../permission"
require_relative "../wire/code"
require_relative "../wire/type"
require_relative "subscription"

module Hikyaku
  module Broker
    class RubyEngine
      # What receivers say: SUBSCRIBE, UNSUBSCRIBE, CREDIT, FREE, NACK, TOUCH (docs/protocol.md, sections 7 and 8).
      module Receiving
        WORDS = 1024
        CAUSES = %i[release failure dead].freeze
        private_constant :WORDS, :CAUSES

        private

        def subscribe(session, frame)
          number = frame.subscription
          return invalid(session, frame.id, "a subscription has a number from 1 to 65,535") if number.zero?
          return invalid(session, frame.id, "there is a subscription #{number} already") if session.subscriptions.key?(number)
          return invalid(session, frame.id, "a queue is of kind 0 or 1, not #{frame.kind}") if frame.kind > 1
          name = (frame.kind == 1) ? own_name(session, frame) : frame.name
          return unless name
          if session.subscriptions.size >= @limits.max_subscriptions
            return deny(session, frame.id, Wire::Code::LIMIT, "this client has #{@limits.max_subscriptions} subscriptions, as many as it may")
          end
          queue = place_for(session, frame.id, name, frame.kind, Permission::RECEIVE) or return
          make(queue) unless queue.made
          subscription = Subscription.new(number, session, queue, frame.credit, frame.credit_bytes, lease_of(frame.lease))
          session.subscriptions[number] = subscription
          queue.receivers[subscription] = true
          answer(session, Wire::Type::SUBSCRIBE, frame.id, 0)
          unpark(subscription)
          may_receive(subscription)
          heard(session, queue)
          dispatch(queue)
        end

        def own_name(session, frame)
          return invalid(session, frame.id, "only a client that has an identity has a queue of its own") if session.identity.empty?
          return session.identity if frame.name.empty? || frame.name == session.identity
          deny(session, frame.id, Wire::Code::FORBIDDEN, "the queue of a client is for that client alone")
        end

        def lease_of(milliseconds) = milliseconds.zero? ? @limits.lease : [milliseconds, @limits.lease_most].min

        def unsubscribe(session, frame)
          subscription = session.subscriptions.delete(frame.subscription) or return no_subscription(session, frame)
          leave(subscription)
          answer(session, Wire::Type::UNSUBSCRIBE, frame.id, 0)
          dispatch(subscription.queue)
        end

        # Nothing more is delivered on it.
        def leave(subscription)
          subscription.ended = true
          end_lapse(subscription)
          queue = subscription.queue
          queue.receivers.delete(subscription)
          queue.rotation.delete(subscription)
          queue.aside.delete(subscription)
          queue.look = true
          rest(queue)
        end

        def credit(session, frame)
          subscription = session.subscriptions[frame.subscription] or return no_subscription(session, frame)
          paused = subscription.credit.zero?
          subscription.credit = frame.credit
          subscription.credit_bytes = frame.credit_bytes
          answer(session, Wire::Type::CREDIT, frame.id, 0)
          unpark(subscription) if paused
          subscription.queue.look = true
          may_receive(subscription)
          heard(session, subscription.queue)
          dispatch(subscription.queue)
        end

        def no_subscription(session, frame)
          deny(session, frame.id, Wire::Code::NO_SUCH_SUBSCRIPTION, "there is no subscription #{frame.subscription}")
        end

        def free(session, frame)
          level = frame.level.zero? ? [Level::WRITTEN, @highest_level].min : frame.level - 1
          return deny(session, frame.id, Wire::Code::LEVEL, "this broker has no storage: there is level memory alone") if level > @highest_level
          if frame.first == frame.last
            delivery = session.deliveries[frame.first] or return stale(session, frame.id, frame.first)
            finish(delivery)
            heard(session, delivery.message.queue)
            answer(session, Wire::Type::FREE, frame.id, level, count: 1)
            dispatch(delivery.message.queue)
          else
            found = among(session, frame) or return
            found.each { |each| finish(each) }
            answer(session, Wire::Type::FREE, frame.id, level, count: found.size)
            heard_of(session, found, frame.first..frame.last)
            dispatch_all(found)
          end
        end

        # Those of a range that are out. O(those, or the width of the range, or what is out).
        def among(session, frame)
          first = frame.first
          last = frame.last
          return invalid(session, frame.id, "a range goes from the lower number to the higher") if first > last
          deliveries = session.deliveries
          return (first..last).filter_map { |id| deliveries[id] } if last - first < deliveries.size
          found = []
          deliveries.each do |id, delivery|
            break if id > last
            found << delivery if id >= first
          end
          found
        end

        def touch(session, frame)
          found =
            if frame.first == frame.last
              [session.deliveries[frame.first] || (return stale(session, frame.id, frame.first))]
            else
              among(session, frame) or return
            end
          lease = 0
          found.each do |delivery|
            @leases.cancel(delivery.slot, delivery)
            lend(delivery, lease = frame.lease.zero? ? delivery.subscription.lease : lease_of(frame.lease))
          end
          answer(session, Wire::Type::TOUCH, frame.id, 0, count: found.size, value: lease)
        end

        def nack(session, frame)
          return invalid(session, frame.id, "NACK is of kind 0, 1 or 2, not #{frame.kind}") if frame.kind > 2
          return invalid(session, frame.id, "the words of a NACK are 1,024 bytes of UTF-8 at most") if frame.words.bytesize > WORDS || !utf8?(frame.words)
          delivery = session.deliveries[frame.delivery] or return stale(session, frame.id, frame.delivery)
          come_back(delivery, CAUSES[frame.kind], delay: frame.delay, words: frame.words)
          answer(session, Wire::Type::NACK, frame.id, [Level::WRITTEN, @highest_level].min)
          heard(session, delivery.message.queue)
          dispatch(delivery.message.queue)
        end

        # It says which it has in hand.
        def receipt(session, frame)
          return unless session.numbers?(frame.id)
          delivery = session.deliveries[frame.id]
          heard(session, delivery&.message&.queue)
          return unless delivery
          session.acknowledges = true
          delivery.held = true
        end

        # Its receiver hangs, or is slow. A connection's subscriptions to one queue may be served by the same thread.
        def pass_over_until_heard(delivery)
          session = delivery.subscription.session
          queue = delivery.message.queue
          session.subscriptions.each_value do |subscription|
            next unless subscription.queue.equal?(queue)
            session.lapsed += 1 unless subscription.lapsed
            subscription.lapsed = [subscription.lapsed || 0, delivery.id].max
            queue.rotation.delete(subscription)
            queue.aside.delete(subscription)
            queue.look = true
          end
        end

        # A client has spoken of its deliveries from a queue, or (nil) of one that it has no longer: its receivers are alive.
        def heard(session, queue = nil)
          return if session.lapsed.zero?
          session.subscriptions.each_value do |subscription|
            hear(subscription) if subscription.lapsed && (queue.nil? || subscription.queue.equal?(queue))
          end
        end

        # A range passes over what is not out any more, and speaks of it all the same.
        def heard_of(session, deliveries, range)
          return if session.lapsed.zero?
          deliveries.each { |delivery| heard(session, delivery.message.queue) }
          session.subscriptions.each_value { |subscription| hear(subscription) if subscription.lapsed && range.cover?(subscription.lapsed) }
        end

        def hear(subscription)
          end_lapse(subscription)
          unpark(subscription)
          may_receive(subscription)
          subscription.queue.look = true
          dispatch(subscription.queue)
        end

        def end_lapse(subscription)
          return unless subscription.lapsed
          subscription.lapsed = nil
          subscription.session.lapsed -= 1
        end

        def stale(session, id, delivery)
          @stale += 1
          deny(session, id, Wire::Code::STALE, "the lease of this delivery has ended, or there was none", delivery: delivery)
          heard(session)
        end

        # All that is out at a session comes back. Who has vanished has crashed with what it had in hand; that is what it
        # said ACK for, or the oldest on each subscription when it never says ACK.
        def return_all(session, vanished: true)
          return if session.deliveries.empty?
          crashed = (vanished && !session.drains) ? in_hand(session) : {}
          session.deliveries.values.each { |delivery| come_back(delivery, crashed.key?(delivery) ? :crash : :return) }
        end

        def in_hand(session)
          deliveries = session.deliveries.each_value
          found = session.acknowledges ? deliveries.select(&:held) : deliveries.uniq(&:subscription)
          found.to_h { |delivery| [delivery, true] }
        end

        # Those in a row are of one queue, mostly; to look at a queue twice does no harm.
        def dispatch_all(deliveries)
          before = nil
          deliveries.each do |delivery|
            queue = delivery.message.queue
            dispatch(queue) unless queue.equal?(before)
            before = queue
          end
        end
      end
    end
  end
end
