# frozen_string_literal: true

require "json"
require_relative "../error"

module Hikyaku
  class Doctor
    # What there is to act as a publisher and as a subscriber: tokens, or keys with which tokens are made.
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
        def inspect = "#<#{self.class.name} #{issuer} #{alg}>"
        alias_method :to_s, :inspect
      end

      attr_reader :unusable

      def initialize(signers: {}, tokens: [], audience: nil, subject: "urn:hikyaku:doctor", lifetime: 0)
        raise ConfigError, "a token is not one that an Authorization header can carry (empty, spaces, line breaks?)" unless tokens.all?(TOKEN)
        @tokens = ROLES.to_h { |role| [role, tokens.find { |token| serves?(token, role) }] }.compact
        @audience = audience
        @subject = subject
        @lifetime = lifetime + MARGIN
        @unusable = {}
        @signers = signers.select { |role, signer| signs?(role, signer) }
      end

      def any? = ROLES.any? { |role| role?(role) }

      def role?(role) = @tokens.key?(role) || @signers.key?(role)

      def given?(role) = @tokens.key?(role)

      def signer(role) = given?(role) ? nil : @signers[role]

      def audience(other = nil) = @audience || other

      def token(role, topic, audience:, issuer: nil, signed_by: role)
        return @tokens[role] if given?(role)
        signer = @signers.fetch(signed_by)
        maker(signer, issuer || signer.issuer, audience)
          .call(ACTIONS.fetch(role).to_sym => [topic], :subject => @subject, :expires_in => @lifetime)
      end

      def trial(key, issuer:, audience:)
        maker(Signer.new(key: key), issuer, audience).call(subscribe: ["urn:hikyaku:doctor"], subject: @subject, expires_in: MARGIN)
      end

      def jwt?(role) = !claims_of(@tokens.fetch(role)).nil?

      def claims(role) = claims_of(@tokens.fetch(role)) || {}

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
