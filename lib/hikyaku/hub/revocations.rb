# frozen_string_literal: true

module Hikyaku
  class Hub
    # Subjects whose older tokens are refused, and since when. Bounded: the oldest are dropped first. Tokens should live
    # shorter than it takes to revoke so many.
    class Revocations
      # @param limit [Integer] how many subjects are remembered
      def initialize(limit: 100_000)
        @limit = limit
        @revoked = {}
      end

      # @param subject [String]
      # @param at [Float] seconds since 1970
      # @return [void]
      def add(subject, at)
        @revoked.delete(subject)
        @revoked.shift while @revoked.size >= @limit
        @revoked[subject] = at
      end

      # A time in whole seconds may lie anywhere in its second: such a token is refused in the second of the revocation, too.
      # Hikyaku's own tokens say when they were issued in fractions of a second, so that a user can sign in again at once.
      #
      # @param subject [String, nil]
      # @param issued_at [Float, nil] seconds since 1970; a token that does not say when it was issued counts as old
      # @return [Boolean]
      def cover?(subject, issued_at)
        revoked_at = @revoked[subject] or return false
        issued_at.nil? || issued_at <= ((issued_at == issued_at.floor) ? revoked_at.floor : revoked_at)
      end
    end
  end
end
