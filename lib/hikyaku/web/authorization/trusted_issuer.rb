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
          def good? = issuer.holds?(role, key)

          def inspect = "#<#{self.class} #{role} #{issuer.inspect}>"
        end

        # No key could be had yet: the issuer's key set was never reached.
        class KeysUnreachable < StandardError
        end

        # So that a token without a kid costs a bounded number of signature checks.
        MAX_TRIED = 8

        class << self
          # A key of its own goes before the issuer's JWK Set, which serves the roles that have none.
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

        attr_reader :id

        def initialize(id, keys)
          @id = id&.dup&.freeze
          @keys = keys.freeze
          freeze
        end

        def role?(role) = !@keys[role].nil?

        def refreshable = @keys.values.compact.select(&:refreshable?).uniq

        def holds?(role, key) = @keys[role]&.held&.include?(key) || false

        # The keys that a token may have been signed with, the best guess first. The kid is a hint: it chooses among
        # the keys that have one, and makes the hub look for a key that it does not know yet. Keys without a kid may
        # have signed any token.
        def candidates(role, kid, now)
          source = @keys.fetch(role)
          keys = source.keys(now)
          keys = source.keys_after_refresh(now) if keys && kid && keys.none? { |key| key.kid == kid }
          raise KeysUnreachable unless keys
          return keys unless kid
          named, others = keys.partition { |key| key.kid == kid }
          named + others.select { |key| key.kid.nil? }
        end

        def inspect = "#<#{self.class} #{@id.inspect}>"
      end
    end
  end
end
