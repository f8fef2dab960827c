# frozen_string_literal: true

require "json"

module Hikyaku
  class Hub
    # How a subscription is described: in subscription events and in the subscription API.
    #
    # Mercure draft-08, section "Active Subscriptions"; for legacy matchers, the same section of the 0.x specification.
    class SubscriptionDocument
      ESCAPED = (0..255).map { |byte| format("%%%02X", byte).freeze }.freeze
      private_constant :ESCAPED

      # @param hub_path [String] the path of the hub's URL
      def initialize(hub_path)
        @root = "#{hub_path}/subscriptions"
      end

      # @return [String] path of the collection of all subscriptions
      attr_reader :root

      # @param subscription [Subscription]
      # @return [String] the topic of its events and its address in the API
      def topic(subscription)
        "#{collection(subscription.matcher)}/#{escape(subscription.subscriber.id)}"
      end

      # @param matcher [Matcher]
      # @return [String] path of the collection of one matcher's subscriptions
      def collection(matcher)
        return "#{@root}/#{escape(matcher.pattern)}" if legacy?(matcher)
        "#{@root}/#{matcher.type}/#{escape(matcher.pattern)}"
      end

      # @param subscription [Subscription]
      # @param active [Boolean]
      # @return [Hash{Symbol => Object}]
      def document(subscription, active: true)
        matcher = subscription.matcher
        document = {id: topic(subscription), type: "subscription", match: matcher.pattern, match_type: matcher.type,
                    subscriber: subscription.subscriber.id, active: active}
        document = legacy(document) if legacy?(matcher)
        document[:payload] = subscription.payload if subscription.payload
        document
      end

      # Events of legacy subscriptions carry no type: 0.x clients listen for messages.
      #
      # @param subscription [Subscription]
      # @return [String, nil]
      def event_type(subscription) = legacy?(subscription.matcher) ? nil : Update::RESERVED_TYPE

      private

      def legacy?(matcher) = matcher.type == "uri_template"

      def legacy(document)
        {"@context": "https://mercure.rocks/", id: document[:id], type: "Subscription", topic: document[:match],
         subscriber: document[:subscriber], active: document[:active]}
      end

      # RFC 6570, section 3.2.2: the whole string, encoded once.
      def escape(string) = string.b.gsub(/[^A-Za-z0-9\-._~]+/n) { |run| run.unpack("C*").map { |byte| ESCAPED[byte] }.join }.force_encoding(Encoding::UTF_8)
    end
  end
end
