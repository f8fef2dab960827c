# frozen_string_literal: true

require_relative "matcher"
require_relative "update"

module Hikyaku
  class Hub
    # Describes subscriptions, for subscription events and the subscription API.
    #
    # Mercure draft-08, section "Active Subscriptions"; for legacy matchers, the same section of the 0.x specification.
    class SubscriptionDocument
      ESCAPED = (0..255).map { |byte| format("%%%02X", byte).freeze }.freeze
      private_constant :ESCAPED

      def initialize(hub_path)
        @root = "#{hub_path}/subscriptions"
      end

      attr_reader :root

      def topic(subscription)
        "#{collection(subscription.matcher)}/#{escape(subscription.subscriber.id)}"
      end

      def collection(matcher)
        return "#{@root}/#{escape(matcher.pattern)}" if legacy?(matcher)
        "#{@root}/#{matcher.type}/#{escape(matcher.pattern)}"
      end

      def document(subscription, active: true)
        matcher = subscription.matcher
        document = {id: topic(subscription), type: "subscription", match: matcher.pattern, match_type: matcher.type,
                    subscriber: subscription.subscriber.id, active: active}
        document = legacy(document) if legacy?(matcher)
        document[:payload] = subscription.payload if subscription.payload
        document
      end

      # Events of legacy subscriptions carry no type: 0.x clients listen for messages.
      def event_type(subscription) = legacy?(subscription.matcher) ? nil : Update::RESERVED_TYPE

      private

      def legacy?(matcher) = matcher.type == Matcher::LEGACY_TYPE

      def legacy(document)
        {"@context": "https://mercure.rocks/", id: document[:id], type: "Subscription", topic: document[:match],
         subscriber: document[:subscriber], active: document[:active]}
      end

      # RFC 6570, section 3.2.2: the whole string, encoded once.
      def escape(string) = string.b.gsub(/[^A-Za-z0-9\-._~]+/n) { |run| run.unpack("C*").map { |byte| ESCAPED[byte] }.join }.force_encoding(Encoding::UTF_8)
    end
  end
end
