# frozen_string_literal: true

module Hikyaku
  class Hub
    # An authorisation decision as a value: the subscriber's matchers and the private topics that it may read, or the topics that a
    # publisher may publish; the subject, and the expiry. Requests with the same values share one grant.
    class Grant
      attr_reader :matchers, :reads, :publishes, :expires_at, :subject, :issuer, :issued_at, :payloads

      attr_reader :basis

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

      def payload_of(matcher) = (place = @matchers.index(matcher)) && @payloads[place]

      def good? = @basis.nil? || @basis.good?

      # Mercure draft-08, section "Subscribers": one granted topic suffices, whichever topic was matched.
      def admits?(record)
        return true unless record.private?
        return false if @reads.empty?
        record.topics.any? { |topic| @reads.any? { |matcher| matcher.match?(topic) } }
      end
    end
  end
end
