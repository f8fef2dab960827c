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
        attr_reader :resource_identifier
        attr_reader :audiences
        attr_reader :max_token_bytes
        attr_reader :details
        attr_reader :legacy_claim
        attr_reader :issuers

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

        def legacy? = @legacy

        # The one issuer whose keys may have signed a token.
        #
        # 0.x never looked at iss: a token without it, or whose issuer the hub does not know, is tried against the one
        # plain issuer. A token of another issuer that the hub knows is not.
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
