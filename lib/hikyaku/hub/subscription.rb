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
      # What a stream that was changed also knows of each; not set in others, where both are Subscriber#began_at.
      # @return [Integer] what is behind this position is for the stream
      attr_accessor :from
      # @return [Integer] what is behind this position, and not behind the cursor, was sent
      attr_accessor :since

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
