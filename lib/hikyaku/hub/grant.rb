# frozen_string_literal: true

module Hikyaku
  class Hub
    # An authorisation decision as a value: what one subscriber listens to and may read, or what one publisher may publish,
    # until when, and who it is. A grant is made once for given request values and shared by every subscriber with the same ones; a subscriber
    # holds the decision, not the request.
    class Grant
      # @return [Array<Matcher>] one for each subscription, without duplicates
      attr_reader :matchers
      # @return [Array<Matcher>] the topics whose private updates may be read
      attr_reader :reads
      # @return [Array<Matcher>] the topics on which updates may be published
      attr_reader :publishes
      # @return [Float, nil] seconds since 1970 at which the stream must end
      attr_reader :expires_at
      # @return [String, nil] who: the token's subject
      attr_reader :subject
      # @return [String, nil] the token's issuer
      attr_reader :issuer
      # @return [Float, nil] seconds since 1970 when the token was issued
      attr_reader :issued_at
      # @return [Array<Hash, nil>] what the token says of each subscription, in the order of the matchers
      attr_reader :payloads

      # @return [#good?, nil] what the decision rests on: a stream ends when it is not good any more; nil: on nothing that may change
      attr_reader :basis

      # @param matchers [Array<Matcher>]
      # @param reads [Array<Matcher>]
      # @param publishes [Array<Matcher>]
      def initialize(matchers: [], reads: [], publishes: [], expires_at: nil, subject: nil, issuer: nil, issued_at: nil, payloads: [], basis: nil)
        @matchers = matchers.uniq.freeze
        @reads = reads.frozen? ? reads : reads.dup.freeze
        @publishes = publishes.frozen? ? publishes : publishes.dup.freeze
        @expires_at = expires_at
        @subject = subject
        @issuer = issuer
        @issued_at = issued_at
        @basis = basis
        @payloads = payloads.freeze
        freeze
      end

      # @param matcher [Matcher] one of the grant's
      # @return [Hash, nil] what the token says of its subscription
      def payload_of(matcher) = (place = @matchers.index(matcher)) && @payloads[place]

      # @return [Boolean] what it rests on is good, or nothing
      def good? = @basis.nil? || @basis.good?

      # Mercure draft-08, section "Subscribers": one granted topic suffices, whichever topic was matched.
      #
      # @param record [Record]
      # @return [Boolean]
      def admits?(record)
        return true unless record.private?
        return false if @reads.empty?
        record.topics.any? { |topic| @reads.any? { |matcher| matcher.match?(topic) } }
      end
    end
  end
end
