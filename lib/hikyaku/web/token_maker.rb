# frozen_string_literal: true

require "json"
require "jwt"
require "jwt/eddsa"
require_relative "../support/clock"
require_relative "../error"
require_relative "../support/signing_key"
require_relative "authorization/keys"

module Hikyaku
  class Web
    # Makes access tokens that a hub of the same configuration accepts: for the command line, the developer page, and
    # applications that are their own issuer.
    #
    # Mercure draft-08, sections "Authorization" and "Authorization Details"; RFC 9068 section 2.2; RFC 9396.
    class TokenMaker
      DETAIL_TYPE = "https://mercure.rocks/authorization-detail"
      private_constant :DETAIL_TYPE

      # The maker for one of a configuration's issuers.
      #
      # @param config [Config]
      # @param role [Symbol, nil] :publisher, :subscriber, or nil for a token that serves as both
      # @param issuer [String, nil] which of several; the configuration's own unless told
      # @param audience [String] the hub's resource identifier
      # @return [TokenMaker]
      # @raise [ConfigError] no such issuer, or it has no key that can sign for the role
      def self.for(config, role: nil, issuer: nil, audience: config.resource_identifier)
        found = pick(config, issuer)
        roles = role ? [role] : %i[publisher subscriber]
        signings = roles.map { |one| found.signing(one) }.uniq
        if signings.size > 1
          raise ConfigError, "publishers and subscribers of issuer #{found.issuer} have different keys: make a token for each role"
        end
        algorithm, key = signings.first
        raise ConfigError, "issuer #{found.issuer} has no #{roles.first}_key to sign with" unless key
        new(issuer: found.issuer, key: key, alg: algorithm, audience: audience)
      end

      # For the developer page: makes a token with the key that its grants need.
      #
      # @param config [Config]
      # @return [Proc, nil] takes what `call` takes; nil when no key of the configuration can sign
      def self.mint(config)
        able = %i[publisher subscriber].any? do |role|
          self.for(config, role: role)
        rescue ConfigError
          false
        end
        return unless able
        lambda do |publish: [], subscribe: [], **options|
          self.for(config, role: role_of(publish, subscribe)).call(publish: publish, subscribe: subscribe, **options)
        end
      end

      # @param publish [Array]
      # @param subscribe [Array]
      # @return [Symbol, nil] whose key must sign such grants; nil: both roles must have the same
      def self.role_of(publish, subscribe)
        return :publisher if subscribe.empty?
        :subscriber if publish.empty?
      end

      def self.pick(config, issuer)
        all = config.issuer_list
        name = issuer || config.issuer
        all.find { |one| one.issuer == name } || (all.first if issuer.nil? && all.size == 1) ||
          raise(ConfigError, all.empty? ? "there is no key to sign with: give publisher_key or subscriber_key" : "which issuer? give one of #{all.map(&:issuer).join(", ")}")
      end
      private_class_method :pick

      # @return [String] the algorithm that tokens are signed with
      attr_reader :alg

      # @param issuer [String] `iss`
      # @param key [String] a secret, the PEM text of a private key, or `file:PATH` of one
      # @param audience [String] `aud`
      # @param alg [String, nil] by the kind of key unless told
      # @param clock [#call] seconds since 1970
      # @raise [ConfigError] the key cannot be read or cannot sign; never holds the key
      def initialize(issuer:, key:, audience:, alg: nil, clock: Support::Clock::WALL)
        @issuer = issuer
        @audience = audience
        @clock = clock
        kind, @key = SigningKey.read(key)
        @alg = Authorization::Algorithms.for_kind(kind, alg && [alg]).first ||
          raise(ConfigError, "#{alg} cannot be used with #{Authorization::Algorithms::NAME.fetch(kind)}")
        freeze
      end

      # @param publish [Array<String, Hash>] topics that may be published to: a topic, `*`, or {"match" =>, "match_type" =>}
      # @param subscribe [Array<String, Hash>] topics whose private updates may be received
      # @param payload [Hash, nil] shown to others beside the subscriber's subscriptions
      # @param broker [Hash{Symbol => Array<String>}, nil] what the bearer may do with queues of the broker: patterns by :send,
      #   :receive and :manage (docs/protocol.md, section 11)
      # @param expires_in [Numeric] seconds
      # @param legacy [Boolean] a token of Mercure 0.x, with the claim `mercure`
      # @param subject [String, nil] `sub`; a random one unless told
      # @param client_id [String, nil] the issuer unless told
      # @param key_id [String, nil] `kid`
      # @param issued_at [Float, nil] `iat`, seconds since 1970: when it was asked who may have it, if that is not now
      # @return [String] the token
      def call(publish: [], subscribe: [], payload: nil, broker: nil, expires_in: 3600, legacy: false, subject: nil, client_id: nil, key_id: nil, issued_at: nil)
        # A revocation tells tokens of the same second apart by the fraction (RFC 7519 section 2, NumericDate).
        now = @clock.call.floor(6)
        times = {iat: issued_at&.floor(6) || now, exp: now + expires_in.to_i}
        claims =
          if legacy
            {sub: subject, **times, mercure: legacy_grants(publish, subscribe, payload)}.compact
          else
            {
              iss: @issuer, aud: @audience, sub: subject || random_urn, client_id: client_id || @issuer, **times, jti: random_urn,
              authorization_details: details(publish, subscribe, payload), hikyaku: broker
            }.compact
          end
        JWT.encode(claims, @key, @alg, {typ: legacy ? "JWT" : "at+jwt", kid: key_id}.compact)
      end

      # @return [String] without the key
      def inspect = "#<#{self.class.name} #{@issuer} #{@alg}>"

      private

      def details(publish, subscribe, payload)
        [detail("publish", publish), detail("subscribe", subscribe, payload)].compact
      end

      def detail(action, topics, payload = nil)
        return if topics.empty?
        {type: DETAIL_TYPE, actions: [action], topics: topics.map { |topic| matcher(topic) }, payload: payload}.compact
      end

      def matcher(topic)
        return {match: topic} if topic.is_a?(String)
        match, type = topic.transform_keys(&:to_s).values_at("match", "match_type")
        {match: match, match_type: (type unless type == "exact")}.compact
      end

      def legacy_grants(publish, subscribe, payload)
        {publish: publish, subscribe: subscribe}.transform_values { |topics| topics.map { |topic| matcher(topic)[:match] } }
          .reject { |_, topics| topics.empty? }.merge({payload: payload}.compact)
      end

      # RFC 9562, version 4.
      def random_urn
        bytes = Random.urandom(16).bytes
        bytes[6] = (bytes[6] & 0x0f) | 0x40
        bytes[8] = (bytes[8] & 0x3f) | 0x80
        format("urn:uuid:%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", *bytes)
      end
    end
  end
end
