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
      module Announcing
        MAX_TOPIC_BYTES = 65_536
        private_constant :MAX_TOPIC_BYTES

        private

        def announce(subscriptions, now, active:) = tell(announcements(subscriptions, active: active), now)

        # What there is to say of subscriptions, as it is now.
        def announcements(subscriptions, active:)
          return [] if @documents.nil? || @shut_down
          subscriptions.map do |subscription|
            topic = @topics[@documents.topic(subscription)]
            data = JSON.generate(@documents.document(subscription, active: active))
            update = Update.new(topics: topic.value, data: data, private: true, max_topic_bytes: MAX_TOPIC_BYTES)
            [update, topic, @documents.event_type(subscription)]
          end
        end

        def tell(announcements, now)
          announcements.each { |update, topic, type| publish(update, topics: [topic], now: now, type: type) }
        end
      end

      private_constant :Announcing
    end
  end
end
