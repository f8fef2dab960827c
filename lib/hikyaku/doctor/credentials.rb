# frozen_string_literal: true

require "json"
require_relative "../error"

module Hikyaku
  class Doctor
    # What there is to act as a publisher and as a subscriber: tokens, or keys with which tokens are made.
    #
    # @api private
    class Credentials
      ROLES = %i[publisher subscriber].freeze
      ACTIONS = {publisher: "publish", subscriber: "subscribe"}.freeze
      # Seconds that a token lives beyond what is done with it.
      MARGIN = 300
      # RFC 6750, section 2.1.
      TOKEN = %r{\A[A-Za-z0-9\-._~+/]+=*\z}
      private_constant :ACTIONS, :MARGIN, :TOKEN

      # A key that signs for an issuer.
      Signer = Struct.new(:issuer, :key, :alg, keyword_init: true) do
        # @return [String] without the key
        def inspect = "#<#{self.class.name} #{issuer} #{alg}>"
        alias_method :to_s, :inspect
      end

      # @return [Hash{Symbol => String}] why the key of a role signs nothing
      attr_reader :unusable

      # @param signers [Hash{Symbol => Signer}] by role
      # @param tokens [Array<String>]
      # @param audience [String, nil] `aud`; what the hub says of itself unless given
      # @param subject [String]
      # @param lifetime [Numeric] seconds for which a token is needed
      # @raise [ConfigError] a token is none
      def initialize(signers: {}, tokens: [], audience: nil, subject: "urn:hikyaku:doctor", lifetime: 0)
        raise ConfigError, "a token is not one that an Authorization header can carry (empty, spaces, line breaks?)" unless tokens.all?(TOKEN)
        @tokens = ROLES.to_h { |role| [role, tokens.find { |token| serves?(token, role) }] }.compact
        @audience = audience
        @subject = subject
        @lifetime = lifetime + MARGIN
        @unusable = {}
        @signers = signers.select { |role, signer| signs?(role, signer) }
      end

      # @return [Boolean]
      def any? = ROLES.any? { |role| role?(role) }

      # @param role [Symbol]
      # @return [Boolean] whether there is a token for it, or a key
      def role?(role) = @tokens.key?(role) || @signers.key?(role)

      # @param role [Symbol]
      # @return [Boolean] whether its token was made elsewhere
      def given?(role) = @tokens.key?(role)

      # @param role [Symbol]
      # @return [Signer, nil] nil when its token was made elsewhere
      def signer(role) = given?(role) ? nil : @signers[role]

      # @param other [String, nil] what the hub calls itself
      # @return [String, nil] the audience of tokens that are made here
      def audience(other = nil) = @audience || other

      # @param role [Symbol]
      # @param topic [String]
      # @param audience [String]
      # @param issuer [String, nil] in place of the signer's
      # @param signed_by [Symbol] whose key signs
      # @return [String]
      def token(role, topic, audience:, issuer: nil, signed_by: role)
        return @tokens[role] if given?(role)
        signer = @signers.fetch(signed_by)
        maker(signer, issuer || signer.issuer, audience)
          .call(ACTIONS.fetch(role).to_sym => [topic], :subject => @subject, :expires_in => @lifetime)
      end

      # @param key [String] a secret
      # @param issuer [String]
      # @param audience [String]
      # @return [String] a subscriber's token that is signed with it
      def trial(key, issuer:, audience:)
        maker(Signer.new(key: key), issuer, audience).call(subscribe: ["urn:hikyaku:doctor"], subject: @subject, expires_in: MARGIN)
      end

      # @param role [Symbol]
      # @return [Boolean] whether the token, made elsewhere, is one whose claims can be read
      def jwt?(role) = !claims_of(@tokens.fetch(role)).nil?

      # @param role [Symbol]
      # @return [Hash] the claims of a token that was made elsewhere: not verified
      def claims(role) = claims_of(@tokens.fetch(role)) || {}

      # @return [String] without keys and tokens
      def inspect = "#<#{self.class.name} #{ROLES.select { |role| role?(role) }.join(" ")}>"

      private

      def maker(signer, issuer, audience)
        require_relative "../web/token_maker"
        Web::TokenMaker.new(issuer: issuer, key: signer.key, alg: signer.alg, audience: audience)
      end

      # Keys that only verify are a hub's, and no mistake.
      def signs?(role, signer)
        maker(signer, signer.issuer, "urn:hikyaku:doctor")
        true
      rescue ConfigError => error
        @unusable[role] = error.message
        false
      end

      # A token that cannot be read may be good for anything.
      def serves?(token, role)
        claims = claims_of(token) or return true
        details = Array(claims["authorization_details"]).grep(Hash)
        return claims["mercure"].key?(ACTIONS.fetch(role)) if claims["mercure"].is_a?(Hash) && details.empty?
        details.any? { |detail| Array(detail["actions"]).include?(ACTIONS.fetch(role)) }
      end

      def claims_of(token)
        claims = JSON.parse(token.split(".").fetch(1).tr("-_", "+/").unpack1("m"))
        claims if claims.is_a?(Hash)
      rescue JSON::ParserError, IndexError, ArgumentError, EncodingError
        nil
      end
    end
  end
end
