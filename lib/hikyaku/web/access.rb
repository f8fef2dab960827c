# frozen_string_literal: true

module Hikyaku
  class Web
    # What a valid token permits: who, until when, which topics. A value: frozen, and shared by all requests with the
    # same token.
    class Access
      # What parsed payloads take, over the token that they stood in.
      COPIES = 3
      private_constant :COPIES

      attr_reader :issuer
      attr_reader :subject
      attr_reader :token_id
      attr_reader :issued_at
      attr_reader :expires_at
      attr_reader :subscribe_matchers
      attr_reader :publish_matchers

      attr_reader :bytes
      attr_reader :basis

      def initialize(details:, issuer: nil, subject: nil, token_id: nil, issued_at: nil, expires_at: nil, not_before: nil,
        legacy: false, payload: nil, basis: nil, token_bytes: 0)
        @issuer = issuer
        @basis = basis
        @subject = subject
        @token_id = token_id
        @issued_at = issued_at
        @expires_at = expires_at
        @from = not_before || -Float::INFINITY
        @until = expires_at || Float::INFINITY
        @legacy = legacy
        @payload = payload
        @subscribe_details = details.select(&:subscribe).freeze
        @subscribe_matchers = @subscribe_details.flat_map(&:matchers).freeze
        @publish_matchers = details.select(&:publish).flat_map(&:matchers).freeze
        @bytes = COPIES * token_bytes + details.sum { |detail| detail.matchers.sum(&:bytes) }
        freeze
      end

      def legacy? = @legacy

      # Whether the token is valid at this time, nothing else having changed.
      def current?(now) = now < @until && now >= @from

      # Mercure draft-08, section "Publishers": every topic must be granted.
      def publish?(topics)
        topics.all? { |topic| @publish_matchers.any? { |matcher| matcher.match?(topic) } }
      end

      # Mercure draft-08, section "Subscribers", for one of the topics of an update.
      def subscribe?(topic)
        @subscribe_matchers.any? { |matcher| matcher.match?(topic) }
      end

      # What the token says about a subscription. The first detail that matches decides, even when it has no payload
      # (Mercure draft-08, section "Payloads"; Mercure 0.x, section "Payload").
      def payload(matcher_string)
        detail = @subscribe_details.find { |one| one.matchers.any? { |matcher| matcher.match?(matcher_string) } }
        payload = detail&.payload
        (payload.nil? && @legacy) ? @payload : payload
      end

      def inspect
        "#<#{self.class} #{"0.x " if @legacy}issuer #{@issuer.inspect}, subject #{@subject.inspect}, " \
          "publish #{@publish_matchers.map(&:pattern)}, subscribe #{@subscribe_matchers.map(&:pattern)}>"
      end
    end
  end
end
