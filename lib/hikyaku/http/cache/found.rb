# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # What the cache has for a request: a value.
      class Found
        # @return [Stored, nil] the response that may be used: at once where it is fresh, after validation where it is stale
        attr_reader :stored
        # @return [Array<Array(String, String)>] header fields for the request that validates; empty unless stale
        attr_reader :validators
        # @return [Stored, nil] what may be used where the server cannot be reached or fails: stale-if-error of RFC 5861, section 4
        attr_reader :fallback

        # @api private
        def initialize(kind, stored: nil, validators: [].freeze, fallback: nil)
          @kind = kind
          @stored = stored
          @validators = validators
          @fallback = fallback
          freeze
        end

        # @return [Boolean] whether it may be used without asking
        def fresh? = @kind == :fresh

        # @return [Boolean] whether it may be used when the server says that it is still right
        def stale? = @kind == :stale

        # @return [Boolean] whether there is nothing to use
        def miss? = @kind == :miss

        # @return [Boolean] whether only-if-cached was asked for, and nothing may be used: to be answered with 504, RFC 9111, section 5.2.1.7
        def unsatisfiable? = @kind == :unsatisfiable

        # @return [String]
        def inspect = "#<#{self.class} #{@kind}#{" #{@stored.url}" if @stored}>"
      end
    end
  end
end
