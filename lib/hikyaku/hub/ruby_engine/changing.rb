# frozen_string_literal: true

require "securerandom"
require_relative "../gap"
require_relative "../past"

module Hikyaku
  class Hub
    class RubyEngine
      # Streams that get another grant while they last: matchers come and go, and nothing happens to those that stay.
      module Changing
        # Of a capability.
        RANDOM_BYTES = 16
        private_constant :RANDOM_BYTES

        def capability(subscriber) = subscriber.closed ? nil : subscriber.capability

        def find(capability) = @capabilities[capability]

        def change(subscriber, grant, now:, expires_in: nil, last_event_id: nil)
          return if subscriber.closed || subscriber.closing
          present = subscriber.subscriptions.to_h { |subscription| [subscription.matcher, subscription] }
          added = grant.matchers - present.keys
          removed = present.values_at(*(present.keys - grant.matchers))
          refuse_more_to_tell
          charge(subscriber, added)
          from, answer, gap = beginning(subscriber, grant, added, last_event_id)
          begin
            remember(subscriber, grant, from, answer, begins: added.any?)
          rescue TooManyRewinds
            refund(subscriber, added)
            raise
          end
          settle_untold(subscriber)
          ended = announcements(removed, active: false)
          begun = rearrange(subscriber, grant, present, removed, from)
          control(subscriber, gap) if gap
          subscriber.catching_up = true unless last_event_id.to_s.empty?
          set_deadline(subscriber, now, expires_in)
          ready!(subscriber)
          tell_of_change(ended + announcements(begun, active: true), now)
          answer
        end

        private

        def make_changeable(subscriber, last_event_id)
          subscriber.capability = SecureRandom.urlsafe_base64(RANDOM_BYTES).freeze
          subscriber.catching_up = true unless last_event_id.to_s.empty?
          @capabilities[subscriber.capability] = subscriber
        end

        # Behind which position those begin that are added, and what is said of that.
        def beginning(subscriber, grant, added, last_event_id)
          return [@log.head, cursor(grant)] if added.empty? || last_event_id.to_s.empty?
          position, answer = resolve(last_event_id, grant)
          return [position, cursor(grant)] unless answer == "earliest"
          return [position, answer] if last_event_id == "earliest"
          goes_on = [position, subscriber.position].min
          [position, answer, Gap.event(id: @ids_of_positions.seal(goes_on), after: last_event_id, reason: "unknown", matchers: added)]
        end

        # Where it stands with what it has, before that becomes something else; and it goes back if there is something to catch
        # up. What it was sent with other private topics than from now on is not known any more.
        def remember(subscriber, grant, from, answer, begins:)
          here = subscriber.position
          begin_past(subscriber) if begins && subscriber.past.nil?
          go_back(subscriber, here, from, answer) if from < here
          return if subscriber.grant.reads == grant.reads
          if subscriber.past
            subscriber.subscriptions.each { |subscription| subscription.since = here if subscription.since < here }
          elsif subscriber.began_at < here
            subscriber.began_at = here
            subscriber.last_event_id = nil
          end
        end

        def begin_past(subscriber)
          subscriber.past = Past.new
          subscriber.subscriptions.each { |subscription| subscription.from = subscription.since = subscriber.began_at }
        end

        def go_back(subscriber, here, from, answer)
          subscriber.leave_epoch
          subscriber.past.add(here, subscriber.grant, subscriber.subscriptions)
          subscriber.subscriptions.each { |subscription| subscription.from = here if subscription.from < here }
          subscriber.go_back_to(from)
          subscriber.began_at = from
          subscriber.last_event_id = answer
        end

        def rearrange(subscriber, grant, present, removed, from)
          begun = []
          subscriptions = grant.matchers.map do |matcher|
            present[matcher] || link(subscriber, matcher).tap do |subscription|
              subscription.from = subscription.since = from
              begun << subscription
            end
          end
          removed.each { |subscription| unlink(subscription) }
          subscriber.name(grant.matchers) if subscriber.naming && grant.matchers != present.keys
          subscriber.grant = grant
          subscriber.past&.settle(subscriptions)
          subscriber.subscriptions = subscriptions
          join_group(subscriber) if subscriber.form&.gzip?
          begun
        end
      end

      private_constant :Changing
    end
  end
end
