# frozen_string_literal: true

require "json"
require_relative "../subscription_document"
require_relative "../topic_survey"
require_relative "../update"

module Hikyaku
  class Hub
    class RubyEngine
      # Publishes subscription events: private updates about subscriptions, in the hub's own namespace. An event whose topic takes long
      # to match is published over several turns, and those behind it wait. The twin of hk_hub_announce.
      #
      # Mercure draft-08, section "Subscription Events".
      class Announcer
        MAX_TOPIC_BYTES = 65_536
        # Announcements that may wait before changes of streams are refused.
        MAX_PENDING = 4_096
        # `remaining`: subscriptions of a subscriber, or events already made. `survey`: of the first event.
        Announcement = Struct.new(:subscriber, :remaining, :active, :at, :survey)
        private_constant :MAX_TOPIC_BYTES, :MAX_PENDING, :Announcement

        # documents: nil to announce nothing. The block publishes an event.
        def initialize(topics, documents, feeds, &publish)
          @topics = topics
          @documents = documents
          @feeds = feeds
          @publish = publish
          # In order. At most two wait for each subscriber, however often it comes and goes: its arrival is dropped when it leaves
          # before the arrival is published.
          @pending = {}.compare_by_identity
          @arrivals = {}.compare_by_identity
          @allowance = TopicSurvey::STEPS_PER_TURN
        end

        def pending? = !@pending.empty?

        # Stops for good: nothing is announced any more.
        def stop
          @documents = nil
          @pending.clear
        end

        def announce(subscriber, now, active:)
          return unless @documents
          arrival = @arrivals.delete(subscriber)
          return @pending.delete(arrival) if arrival && !active
          announcement = Announcement.new(subscriber, subscriber.subscriptions.dup, active, now)
          @arrivals[subscriber] = announcement if active
          add(announcement)
        end

        # The events that describe subscriptions as they are now.
        def events_for(subscriptions, active:)
          @documents ? subscriptions.map { |subscription| event_for(subscription, active) } : []
        end

        def announce_events(events, now) = add(Announcement.new(nil, events, nil, now))

        # Makes the events that wait for a subscriber, before the subscriber changes.
        def settle(subscriber)
          [@arrivals.delete(subscriber), @pending.first&.first].each do |announcement|
            next unless announcement&.subscriber.equal?(subscriber)
            announcement.remaining.map! { |one| one.is_a?(Subscription) ? event_for(one, announcement.active) : one }
          end
        end

        def check_backlog!
          raise PatternsTooCostly, PatternBudget.refusal(:hub) if @pending.size >= MAX_PENDING
        end

        # Publishes what is pending, with the allowance of a new turn.
        def continue
          @allowance = TopicSurvey::STEPS_PER_TURN
          publish_pending
        end

        private

        def add(announcement)
          waits = pending?
          @pending[announcement] = true
          publish_pending unless waits
        end

        def event_for(subscription, active)
          topic = @topics[@documents.topic(subscription)]
          data = JSON.generate(@documents.document(subscription, active: active))
          update = Update.new(topics: topic.value, data: data, private: true, max_topic_bytes: MAX_TOPIC_BYTES)
          [update, topic, @documents.event_type(subscription)]
        end

        def publish_pending
          while @allowance > 0 && (announcement, = @pending.first)
            @arrivals.delete(announcement.subscriber)
            publish_next(announcement)
            @pending.delete(announcement) if announcement.remaining.empty?
          end
        end

        def publish_next(announcement)
          return if announcement.remaining.empty?
          first = announcement.remaining.first
          unless announcement.survey
            announcement.remaining[0] = first = event_for(first, announcement.active) if first.is_a?(Subscription)
            announcement.survey = TopicSurvey.new(@feeds.index, first[1])
            @allowance -= first[1].value.bytesize
          end
          @allowance = announcement.survey.step(@allowance)
          return unless announcement.survey.complete?
          update, topic, type = announcement.remaining.shift
          @publish.call(update, topics: [topic], now: announcement.at, type: type, surveys: [announcement.survey])
          announcement.survey = nil
        end
      end
      private_constant :Announcer
    end
  end
end
