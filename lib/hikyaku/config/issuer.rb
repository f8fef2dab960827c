# frozen_string_literal: true

require_relative "types"

module Hikyaku
  class Config
    # One issuer whose tokens the hub accepts, with the keys that belong to it and to no other.
    #
    # Mercure draft-08, section "Token Validation".
    class Issuer
      NAMES = %i[issuer alg publisher_alg subscriber_alg publisher_key subscriber_key jwks].freeze
      SECRETS = %i[publisher_key subscriber_key].freeze
      ALGORITHM = Types.choice(*Types::SIGNATURES, placeholder: "ALG")
      # RFC 7519 calls it StringOrURI.
      IDENTIFIER = Types.text("ISS")
      TYPES = {
        issuer: IDENTIFIER, alg: ALGORITHM, publisher_alg: ALGORITHM, subscriber_alg: ALGORITHM,
        publisher_key: Types.key, subscriber_key: Types.key, jwks: Types.key_set
      }.freeze
      private_constant :TYPES

      # @return [String] the `iss` of its tokens
      attr_reader :issuer
      # @return [String, nil] the algorithm that was asked for; nil: what the kind of key says
      attr_reader :alg
      # @return [String, nil] verifies publishers: a secret, a PEM text, a JWK Set, `file:PATH` or a URL
      attr_reader :publisher_key
      # @return [String, nil] verifies subscribers, likewise
      attr_reader :subscriber_key
      # @return [String, nil] `file:PATH` or a URL of its JWK Set, for both roles
      attr_reader :jwks

      # @param key [String]
      # @return [String] what may be shown of a key: where it is kept, else nothing
      def self.show_key(key) = key.match?(%r{\A(?:file:|https?://)}i) ? key : Types::HIDDEN

      # @param value [Hash, Issuer] as the file has it
      # @return [Issuer]
      # @raise [Type::Invalid] names the key
      def self.cast(value)
        return value if value.is_a?(Issuer)
        raise Type::Invalid, "expected a mapping with the keys #{NAMES.join(", ")}" unless value.is_a?(Hash)

        new(**value.to_h { |key, member| [name!(key), cast_member(key, member)] }.compact)
      end

      def self.name!(key)
        NAMES.find { |name| name.to_s == key.to_s } ||
          raise(Type::Invalid, "expected the keys #{NAMES.join(", ")}, not #{key}")
      end
      private_class_method :name!

      def self.cast_member(key, member)
        TYPES.fetch(key.to_sym).cast(member) unless member.nil?
      rescue Type::Invalid => error
        raise Type::Invalid, "#{key}: #{error.message}"
      end
      private_class_method :cast_member

      def initialize(issuer: nil, alg: nil, publisher_alg: nil, subscriber_alg: nil, publisher_key: nil, subscriber_key: nil, jwks: nil)
        raise Type::Invalid, "expected the key issuer" unless issuer
        raise Type::Invalid, "#{issuer}: expected publisher_key, subscriber_key or jwks" unless publisher_key || subscriber_key || jwks

        @issuer = issuer
        @alg = alg
        @publisher_alg = publisher_alg
        @subscriber_alg = subscriber_alg
        @publisher_key = publisher_key
        @subscriber_key = subscriber_key
        @jwks = jwks
        freeze
      end

      # @return [String, nil] the algorithm of publishers' tokens
      def publisher_alg = @publisher_alg || alg

      # @return [String, nil] the algorithm of subscribers' tokens
      def subscriber_alg = @subscriber_alg || alg

      # @param role [Symbol] :publisher or :subscriber
      # @return [Array(String, String)] the algorithm and the key, each may be nil
      def signing(role)
        (role == :publisher) ? [publisher_alg, publisher_key] : [subscriber_alg, subscriber_key]
      end

      # @return [Hash{Symbol => String}] with the keys: not to be shown
      def to_h
        {
          issuer: issuer, alg: alg, publisher_alg: @publisher_alg, subscriber_alg: @subscriber_alg,
          publisher_key: publisher_key, subscriber_key: subscriber_key, jwks: jwks
        }.compact
      end

      # @return [Boolean]
      def ==(other) = other.is_a?(Issuer) && to_h == other.to_h

      # @return [String] without the keys
      def inspect
        shown = to_h.map { |name, value| "#{name}=#{(SECRETS.include?(name) ? self.class.show_key(value) : value).inspect}" }
        "#<#{self.class.name} #{shown.join(" ")}>"
      end
      alias_method :to_s, :inspect

      # @return [void]
      def pretty_print(printer) = printer.text(inspect)
    end
  end
end
