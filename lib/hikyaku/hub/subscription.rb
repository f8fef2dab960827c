# frozen_string_literal: true

module Hikyaku
  class Hub
    # One matcher of one subscriber: the link between a subscriber and a feed.
    class Subscription
      attr_reader :subscriber, :feed
      attr_accessor :index
      # The stream receives what the matcher selects after `from`, and was sent it from `since` to its cursor. Set only in streams
      # that were changed; in others both are Subscriber#began_at.
      attr_accessor :from
      attr_accessor :since

      def initialize(subscriber, feed)
        @subscriber = subscriber
        @feed = feed
        @index = nil
      end

      def matcher = @feed.matcher

      def payload = @subscriber.grant.payload_of(matcher)
    end
  end
end
