# frozen_string_literal: true

require_relative "../../error"
require_relative "../local_names"
require_relative "details"
require_relative "legacy_claim"

module Hikyaku
  class Web
    class Authorization
      # What tokens are judged by: whom the hub trusts, who it is itself, and its limits.
      class Rules
        # @return [String]
        attr_reader :resource_identifier
        # @return [Array<String>] one of which aud must hold: the resource identifier; on this machine by any of its names
        attr_reader :audiences
        # @return [Integer]
        attr_reader :max_token_bytes
        # @return [Details]
        attr_reader :details
        # @return [LegacyClaim]
        attr_reader :legacy_claim
        # @return [Array<TrustedIssuer>]
        attr_reader :issuers

        # @param issuers [Array<TrustedIssuer>]
        # @param plain [TrustedIssuer, nil] the one whose keys judge 0.x tokens that name no issuer
        # @param resource_identifier [String]
        # @param hub_url [String]
        # @param legacy [Boolean]
        # @param limits [Hash{Symbol => Integer}]
        # @raise [ConfigError]
        def initialize(issuers:, plain:, resource_identifier:, hub_url:, legacy:, limits:)
          @issuers = issuers.freeze
          @by_id = {}
          issuers.each { |issuer| add(issuer, legacy) }
          @by_id.freeze
          @plain = plain
          @resource_identifier = resource_identifier
          @audiences = LocalNames.of(resource_identifier).freeze
          @legacy = legacy
          @max_token_bytes = limits.fetch(:max_token_bytes)
          @details = Details.new(base: hub_url, max_details: limits.fetch(:max_token_details),
            max_topics: limits.fetch(:max_token_topics), max_pattern_bytes: limits.fetch(:max_pattern_bytes))
          @legacy_claim = LegacyClaim.new(@details)
          freeze
        end

        # @return [Boolean] whether 0.x tokens are accepted
        def legacy? = @legacy

        # The one issuer whose keys may have signed a token.
        #
        # 0.x never looked at iss: a token without it, or whose issuer the hub does not know, is tried against the one
        # plain issuer. A token of another issuer that the hub knows is not.
        #
        # @param iss [String, nil] as the token says
        # @param legacy [Boolean] whether it is a 0.x token
        # @return [TrustedIssuer, nil]
        def issuer(iss, legacy:)
          return @by_id[iss] unless legacy
          (iss && @by_id[iss]) || @plain
        end

        private

        def add(issuer, legacy)
          if issuer.id.nil? || issuer.id.empty?
            raise ConfigError, "issuer: keys are configured without their issuer; tokens name it in iss" unless legacy
          elsif @by_id.key?(issuer.id)
            raise ConfigError, "issuers: #{issuer.id.inspect} is configured twice"
          else
            @by_id[issuer.id] = issuer
          end
        end
      end
    end
  end
end
