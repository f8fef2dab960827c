# frozen_string_literal: true

require "securerandom"
require_relative "../../error"
require_relative "signer"

module Hikyaku
  class Web
    class Ui
      # Makes tokens with the hub's own keys, where these can sign: secrets and private keys.
      #
      # Mercure draft-08, sections "Token Validation" and "Authorization Details".
      class Mint
        DETAIL_TYPE = "https://mercure.rocks/authorization-detail"
        CLIENT = "hikyaku-page"
        private_constant :DETAIL_TYPE, :CLIENT

        # @param config [Hikyaku::Config]
        # @return [Mint, nil] nil where no key can sign
        def self.for(config)
          mint = new(issuers: config.issuer_list, resource_identifier: config.resource_identifier)
          mint unless mint.roles.empty?
        end

        # @param issuers [Array<Hikyaku::Config::Issuer>]
        # @param resource_identifier [String] the tokens' aud
        # @param clock [#call] seconds since 1970
        def initialize(issuers:, resource_identifier:, clock: -> { Time.now.to_i })
          @resource_identifier = resource_identifier
          @clock = clock
          @signers = {publisher: signer(issuers, :publisher), subscriber: signer(issuers, :subscriber)}.compact
        end

        # @return [Array<Symbol>] for whom it can sign: :publisher, :subscriber
        def roles = @signers.keys

        # @return [Boolean] whether one token can serve both roles
        def together? = @signers.size == 2 && @signers[:publisher] == @signers[:subscriber]

        # @param publish [Array<Hash>] {"match", "match_type"}
        # @param subscribe [Array<Hash>] {"match", "match_type"}
        # @param payload [Hash, nil] told to those who may see the subscriptions
        # @param expires_in [Integer] seconds
        # @param legacy [Boolean] in the form of Mercure 0.x
        # @return [String] the signed token
        # @raise [ConfigError] no key of the hub can sign such a token
        def call(publish: [], subscribe: [], payload: nil, expires_in: 3600, legacy: false)
          signer = signer_of(publish, subscribe)
          now = @clock.call
          claims = legacy ? legacy_claims(publish, subscribe, payload) : claims(publish, subscribe, payload, signer, now)
          signer.sign(claims.merge(iat: now, exp: now + expires_in), type: legacy ? "JWT" : "at+jwt")
        end

        # @return [String] without keys
        def inspect = "#<#{self.class.name} #{roles.join(", ")}>"

        private

        def signer_of(publish, subscribe)
          wanted = []
          wanted << :publisher unless publish.empty?
          wanted << :subscriber unless subscribe.empty?
          missing = (wanted - roles).first
          raise ConfigError, "The hub's #{missing} key cannot sign tokens: only secrets and private keys can." if missing
          raise ConfigError, "Publishers and subscribers of this hub have different keys: make a token for each." if wanted.size == 2 && !together?

          @signers.fetch(wanted.first || roles.first)
        end

        def claims(publish, subscribe, payload, signer, now)
          {
            iss: signer.issuer, aud: @resource_identifier, sub: "#{CLIENT}-#{SecureRandom.alphanumeric(8)}", client_id: CLIENT,
            jti: SecureRandom.uuid, authorization_details: details(publish, subscribe, payload)
          }
        end

        def details(publish, subscribe, payload)
          list = []
          list << {type: DETAIL_TYPE, actions: ["publish"], topics: publish} unless publish.empty?
          list << {type: DETAIL_TYPE, actions: ["subscribe"], topics: subscribe, payload: payload}.compact unless subscribe.empty?
          list
        end

        def legacy_claims(publish, subscribe, payload)
          topics = ->(matchers) { matchers.map { |matcher| matcher.fetch("match") } }
          {mercure: {publish: topics[publish], subscribe: topics[subscribe], payload: payload}.compact}
        end

        def signer(issuers, role)
          issuers.each do |issuer|
            signer = Signer.of(issuer.issuer, *issuer.signing(role))
            return signer if signer
          end
          nil
        end
      end
      private_constant :Mint
    end
  end
end
