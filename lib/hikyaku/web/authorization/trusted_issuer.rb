# frozen_string_literal: true

require_relative "algorithms"

module Hikyaku
  class Web
    class Authorization
      # One issuer that the hub trusts, with its keys for each role. Keys of different issuers are never looked at
      # together (Mercure draft-08, section "Token Validation").
      class TrustedIssuer
        # What a decision rests on: that this issuer's key signed a token.
        #
        # @!attribute [r] issuer
        #   @return [TrustedIssuer]
        # @!attribute [r] role
        #   @return [Symbol] :publisher or :subscriber
        # @!attribute [r] key
        #   @return [Key]
        Basis = Struct.new(:issuer, :role, :key) do
          # @return [Boolean] whether the key is still trusted
          def good? = issuer.holds?(role, key)

          # @return [String] without the key
          def inspect = "#<#{self.class} #{role} #{issuer.inspect}>"
        end

        # No key could be had yet: the issuer's key set was never reached.
        class KeysUnreachable < StandardError
        end

        # So that a token without a kid costs a bounded number of signature checks.
        MAX_TRIED = 8

        class << self
          # A key of its own goes before the issuer's JWK Set, which serves the roles that have none.
          #
          # @param setting [#issuer, #alg, #publisher_alg, #subscriber_alg, #publisher_key, #subscriber_key, #jwks]
          # @param source [KeySource]
          # @return [TrustedIssuer]
          # @raise [ConfigError]
          def load(setting, source)
            where = setting.issuer ? " of issuer #{setting.issuer.inspect}" : ""
            shared = {}
            keys = %i[publisher subscriber].to_h do |role|
              name = "#{role}_alg"
              own = setting.public_send(name)
              algorithms = own ? Algorithms.parse("#{name}#{where}", own) : Algorithms.parse("alg#{where}", setting.alg)
              key = setting.public_send("#{role}_key")
              next [role, source.load("#{role}_key#{where}", key, algorithms)] if key
              [role, shared[algorithms] ||= source.load("jwks#{where}", setting.jwks, algorithms, secrets: false)]
            end
            new(setting.issuer, keys)
          end
        end

        # @return [String, nil] the value of iss; nil: none configured (0.x deployments)
        attr_reader :id

        # @param id [String, nil]
        # @param keys [Hash{Symbol => StaticKeys, FileKeys, RemoteKeys, nil}] by role
        def initialize(id, keys)
          @id = id&.dup&.freeze
          @keys = keys.freeze
          freeze
        end

        # @param role [Symbol] :publisher or :subscriber
        # @return [Boolean]
        def role?(role) = !@keys[role].nil?

        # @return [Array<RemoteKeys, FileKeys>] keys that may change
        def refreshable = @keys.values.compact.select(&:refreshable?).uniq

        # @param role [Symbol]
        # @param key [Key]
        # @return [Boolean] whether it is still one of this issuer's keys for the role
        def holds?(role, key) = @keys[role]&.held&.include?(key) || false

        # The keys that a token may have been signed with, the best guess first. The kid is a hint: it chooses among
        # the keys that have one, and makes the hub look for a key that it does not know yet. Keys without a kid may
        # have signed any token.
        #
        # @param role [Symbol]
        # @param kid [String, nil]
        # @param now [Float]
        # @return [Array<Key>]
        # @raise [KeysUnreachable]
        def candidates(role, kid, now)
          source = @keys.fetch(role)
          keys = source.keys(now)
          keys = source.keys_after_refresh(now) if keys && kid && keys.none? { |key| key.kid == kid }
          raise KeysUnreachable unless keys
          return keys unless kid
          named, others = keys.partition { |key| key.kid == kid }
          named + others.select { |key| key.kid.nil? }
        end

        # @return [String]
        def inspect = "#<#{self.class} #{@id.inspect}>"
      end
    end
  end
end
