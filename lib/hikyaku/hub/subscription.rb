# frozen_string_literal: true

module Hikyaku
  class Hub
    # One matcher of one subscriber: the link between a subscriber and a feed.
    class Subscription
      # @return [Subscriber]
      attr_reader :subscriber
      # @return [Feed]
      attr_reader :feed
      # @return [Integer] where it stands in the feed's list; the feed keeps it true
      attr_accessor :index

      def initialize(subscriber, feed)
        @subscriber = subscriber
        @feed = feed
        @index = nil
      end

      # @return [Matcher]
      def matcher = @feed.matcher

      # @return [Hash, nil] what the token says of it (Mercure draft-08, section "Payloads")
      def payload = @subscriber.grant.payload_of(matcher)
    end
  end
end
