# frozen_string_literal: true

module Hikyaku
  class Web
    # What a valid token permits: who, until when, which topics. A value: frozen, and shared by all requests with the
    # same token.
    class Access
      # What parsed payloads take, over the token that they stood in.
      COPIES = 3
      private_constant :COPIES

      # @return [String, nil] the iss of the token; nil only for a 0.x token without one
      attr_reader :issuer
      # @return [String, nil] the sub of the token
      attr_reader :subject
      # @return [String, nil] the jti of the token
      attr_reader :token_id
      # @return [Float, nil] seconds since 1970 at which the token was issued; when it was seen first, if its issuer's clock is ahead
      attr_reader :issued_at
      # @return [Float, nil] seconds since 1970 from which on the token is void; nil only for a 0.x token without exp
      attr_reader :expires_at
      # @return [Array<Hub::Matcher>] what it lets its bearer read, in the token's order
      attr_reader :subscribe_matchers
      # @return [Array<Hub::Matcher>] what it lets its bearer publish, in the token's order
      attr_reader :publish_matchers

      # @return [Integer] bytes that it takes, estimated
      attr_reader :bytes
      # @return [#good?, nil] what it rests on: says whether the key that signed the token is still trusted
      attr_reader :basis

      # @param details [Array<Authorization::Detail>]
      # @param not_before [Float, nil] seconds since 1970 until which the token is not valid yet
      # @param payload [Object, nil] of a 0.x token: the payload of every subscription
      # @param token_bytes [Integer] length of the token, of which the payloads are a part
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

      # @return [Boolean] whether it comes from a token of Mercure 0.x
      def legacy? = @legacy

      # Whether the token is valid at this time, nothing else having changed.
      #
      # @param now [Float] seconds since 1970
      # @return [Boolean]
      def current?(now) = now < @until && now >= @from

      # Mercure draft-08, section "Publishers": every topic must be granted.
      #
      # @param topics [Array<Hub::Topic>]
      # @return [Boolean]
      def publish?(topics)
        topics.all? { |topic| @publish_matchers.any? { |matcher| matcher.match?(topic) } }
      end

      # Mercure draft-08, section "Subscribers", for one of the topics of an update.
      #
      # @param topic [Hub::Topic]
      # @return [Boolean]
      def subscribe?(topic)
        @subscribe_matchers.any? { |matcher| matcher.match?(topic) }
      end

      # What the token says about a subscription. The first detail that matches decides, even when it has no payload
      # (Mercure draft-08, section "Payloads"; Mercure 0.x, section "Payload").
      #
      # @param matcher_string [Hub::Topic] the subscription's own matcher, treated as if it were a topic
      # @return [Hash, nil] the payload, not to be changed; of a 0.x token it may be any JSON value
      def payload(matcher_string)
        detail = @subscribe_details.find { |one| one.matchers.any? { |matcher| matcher.match?(matcher_string) } }
        payload = detail&.payload
        (payload.nil? && @legacy) ? @payload : payload
      end

      # @return [String] without the payloads
      def inspect
        "#<#{self.class} #{"0.x " if @legacy}issuer #{@issuer.inspect}, subject #{@subject.inspect}, " \
          "publish #{@publish_matchers.map(&:pattern)}, subscribe #{@subscribe_matchers.map(&:pattern)}>"
      end
    end
  end
end
