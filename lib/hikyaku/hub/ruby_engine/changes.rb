# frozen_string_literal: true

require "securerandom"
require_relative "../gap"
require_relative "../replay_filter"

module Hikyaku
  class Hub
    class RubyEngine
      # Gives streams another grant while they last: matchers come and go, and those that stay are not affected. The twin of
      # hk_hub_change.
      class Changes
        CAPABILITY_BYTES = 16
        private_constant :CAPABILITY_BYTES

        def initialize(log, feeds, queue, announcer, deadlines)
          @log = log
          @feeds = feeds
          @queue = queue
          @announcer = announcer
          @deadlines = deadlines
          @capabilities = {}
        end

        def find(capability) = @capabilities[capability]

        # Makes a subscriber changeable.
        def register(subscriber, last_event_id)
          subscriber.capability = SecureRandom.urlsafe_base64(CAPABILITY_BYTES).freeze
          subscriber.catching_up = true unless last_event_id.to_s.empty?
          @capabilities[subscriber.capability] = subscriber
        end

        def forget(subscriber)
          @capabilities.delete(subscriber.capability) if subscriber.capability
        end

        def clear = @capabilities.clear

        def change(subscriber, grant, now:, expires_in:, last_event_id:)
          return if subscriber.closed || subscriber.closing
          present = subscriber.subscriptions.to_h { |subscription| [subscription.matcher, subscription] }
          added = grant.matchers - present.keys
          removed = present.values_at(*(present.keys - grant.matchers))
          @announcer.check_backlog!
          @feeds.charge(subscriber, added)
          from, answer, gap = start_of(subscriber, grant, added, last_event_id)
          begin
            note_sent(subscriber, grant, from, answer, adds: added.any?)
          rescue TooManyRewinds
            @feeds.refund(subscriber, added)
            raise
          end
          @announcer.settle(subscriber)
          ended = @announcer.events_for(removed, active: false)
          begun = replace_subscriptions(subscriber, grant, present, removed, from)
          subscriber.say(gap) if gap
          subscriber.catching_up = true unless last_event_id.to_s.empty?
          @deadlines.set(subscriber, now, expires_in)
          @queue << subscriber
          @announcer.announce_events(ended + @announcer.events_for(begun, active: true), now)
          answer
        end

        private

        # The position after which the added matchers begin, the answer to the client, and a gap event if something may be missing.
        def start_of(subscriber, grant, added, last_event_id)
          return [@log.head, @log.cursor(grant)] if added.empty? || last_event_id.to_s.empty?
          position, answer = @log.resolve(last_event_id, grant)
          return [position, @log.cursor(grant)] unless answer == "earliest"
          return [position, answer] if last_event_id == "earliest"
          goes_on = [position, subscriber.position].min
          [position, answer, Gap.event(id: @log.id_of(goes_on), after: last_event_id, reason: "unknown", matchers: added)]
        end

        # Notes what the stream was sent with its grant so far, and moves it back if there is something to catch up. What it was sent
        # under other private topics than it has from now on is not known any more.
        def note_sent(subscriber, grant, from, answer, adds:)
          here = subscriber.position
          begin_filter(subscriber) if adds && subscriber.replay_filter.nil?
          rewind(subscriber, here, from, answer) if from < here
          return if subscriber.grant.reads == grant.reads
          if subscriber.replay_filter
            subscriber.subscriptions.each { |subscription| subscription.since = here if subscription.since < here }
          elsif subscriber.began_at < here
            subscriber.began_at = here
            subscriber.last_event_id = nil
          end
        end

        def begin_filter(subscriber)
          subscriber.replay_filter = ReplayFilter.new
          subscriber.subscriptions.each { |subscription| subscription.from = subscription.since = subscriber.began_at }
        end

        def rewind(subscriber, here, from, answer)
          subscriber.replay_filter.add(here, subscriber.grant, subscriber.subscriptions)
          subscriber.subscriptions.each { |subscription| subscription.from = here if subscription.from < here }
          subscriber.rewind(from)
          subscriber.began_at = from
          subscriber.last_event_id = answer
        end

        # Returns the subscriptions that begin.
        def replace_subscriptions(subscriber, grant, present, removed, from)
          begun = []
          subscriptions = grant.matchers.map do |matcher|
            present[matcher] || @feeds.link(subscriber, matcher).tap do |subscription|
              subscription.from = subscription.since = from
              begun << subscription
            end
          end
          removed.each { |subscription| @feeds.unlink(subscription) }
          subscriber.name(grant.matchers) if subscriber.naming && grant.matchers != present.keys
          subscriber.grant = grant
          subscriber.replay_filter&.settle(subscriptions)
          subscriber.subscriptions = subscriptions
          begun
        end
      end
      private_constant :Changes
    end
  end
end
