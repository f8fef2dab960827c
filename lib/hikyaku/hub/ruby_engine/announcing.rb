# frozen_string_literal: true

require "json"
require_relative "../subscription_document"
require_relative "../update"

module Hikyaku
  class Hub
    class RubyEngine
      # Subscription events: private updates about who listens to what, in the hub's own namespace.
      #
      # Mercure draft-08, section "Subscription Events".
      # What takes long to match is said later, in order and in pieces: see `speak`.
      module Announcing
        MAX_TOPIC_BYTES = 65_536
        # So much may wait to be said before streams are not changed any more.
        MOST_UNTOLD = 4_096
        # What there is to say, as subscriptions of a subscriber, or made already. survey: of the first that is said.
        Untold = Struct.new(:subscriber, :rest, :active, :at, :survey)
        private_constant :MAX_TOPIC_BYTES, :MOST_UNTOLD, :Untold

        private

        # @untold is in order; @coming has those of it that are nobody's business if the subscriber goes before they are said.
        # So there never waits more than two words for each who may be there, however often somebody comes and goes.
        def start_announcing
          @untold = {}.compare_by_identity
          @coming = {}.compare_by_identity
          @allowance = TopicSurvey::PIECE
        end

        def announces? = @documents && !@shut_down

        def announce(subscriber, now, active:)
          return unless announces?
          coming = @coming.delete(subscriber)
          return @untold.delete(coming) if coming && !active
          untold = Untold.new(subscriber, subscriber.subscriptions.dup, active, now)
          @coming[subscriber] = untold if active
          tell(untold)
        end

        # What there is to say of subscriptions, as it is now.
        def announcements(subscriptions, active:)
          announces? ? subscriptions.map { |subscription| announcement(subscription, active) } : []
        end

        def announcement(subscription, active)
          topic = @topics[@documents.topic(subscription)]
          data = JSON.generate(@documents.document(subscription, active: active))
          update = Update.new(topics: topic.value, data: data, private: true, max_topic_bytes: MAX_TOPIC_BYTES)
          [update, topic, @documents.event_type(subscription)]
        end

        # What waits to be said of a subscriber that changes is said of what it was.
        def settle_untold(subscriber)
          [@coming.delete(subscriber), @untold.first&.first].each do |untold|
            next unless untold&.subscriber.equal?(subscriber)
            untold.rest.map! { |one| one.is_a?(Subscription) ? announcement(one, untold.active) : one }
          end
        end

        def refuse_more_to_tell
          raise PatternsTooCostly, PatternBudget.refusal(:hub) if @untold.size >= MOST_UNTOLD
        end

        def tell_of_change(announcements, now) = tell(Untold.new(nil, announcements, nil, now))

        # Whatever waits comes before.
        def tell(untold)
          waits = !@untold.empty?
          @untold[untold] = true
          speak unless waits
        end

        def speak_again
          @allowance = TopicSurvey::PIECE
          speak
        end

        # Says what there is to say, as long as the allowance of this turn lasts.
        def speak
          while @allowance > 0 && (untold, = @untold.first)
            @coming.delete(untold.subscriber)
            say_next(untold)
            @untold.delete(untold) if untold.rest.empty?
          end
        end

        def say_next(untold)
          return if untold.rest.empty?
          first = untold.rest.first
          unless untold.survey
            untold.rest[0] = first = announcement(first, untold.active) if first.is_a?(Subscription)
            untold.survey = TopicSurvey.new(@index, first[1])
            @allowance -= first[1].value.bytesize
          end
          @allowance = untold.survey.step(@allowance)
          return unless untold.survey.complete?
          update, topic, type = untold.rest.shift
          publish(update, topics: [topic], now: untold.at, type: type, surveys: [untold.survey])
          untold.survey = nil
        end
      end

      private_constant :Announcing
    end
  end
end
