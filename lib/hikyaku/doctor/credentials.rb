# frozen_string_literal: true

require "json"
require_relative "../error"
require_relative "advice"
require_relative "connection"

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

    # Why a token is refused. The hub does not say, on purpose; what it accepts in its place does.
    class Diagnosis
      # Tokens that are tried.
      MOST = 30
      OTHER = {publisher: :subscriber, subscriber: :publisher}.freeze
      # By what differs in the token that is accepted.
      DIFFERING = {issuer: :issuer, audience: :identifier}.freeze
      private_constant :MOST, :OTHER, :DIFFERING

      def initialize(visit, role, &attempt)
        @visit = visit
        @role = role
        @attempt = attempt
      end

      def of(answer)
        challenge = Challenge.new(answer)
        case answer.status
        when 401 then unauthorized(answer, challenge)
        when 403 then forbidden(challenge)
        when 400 then ["the request is refused (400): #{Words.quote(answer.detail || answer.body)}", :request]
        when 404, 405, 501 then ["the request does not get to the hub: #{answer.status}", :paths]
        when 429 then ["too many connections come from here (429)", :connections]
        else ["#{answer.status} is answered#{": #{Words.quote(answer.detail)}" if answer.detail}", Advice.defect_of(answer.status)]
        end
      end

      private

      def unauthorized(answer, challenge)
        return ["something in front of the hub asks for a password (#{challenge.scheme.capitalize})", :authorization] if challenge.scheme && !challenge.bearer?
        return ["the hub saw no token: the header Authorization does not get to it", :authorization] if challenge.bearer? && challenge.error.nil?
        refused
      end

      def forbidden(challenge)
        return ["something in front of the hub refuses (403)", :forbidden] unless challenge.bearer?
        ["the token is good, but does not grant #{(@role == :publisher) ? "publishing to" : "subscribing to"} #{@visit.topic}: give --topic TOPIC, one that it grants", :grant]
      end

      # What differs in the first token that is accepted is what is wrong.
      def refused
        return given if @visit.credentials.given?(@role)
        variations.first(MOST).each do |differing|
          token = @visit.credentials.token(@role, @visit.topic, audience: @visit.audience, **differing)
          return explain(differing) if accepted?(@attempt.call(token))
        end
        ["the token is refused: the #{@role} key is not the hub's (#{tried} were tried)", key]
      end

      def key = :"#{@role}_key"

      def accepted?(answer) = answer.status == 200 || answer.status == 403

      # One thing first, then two and three.
      def variations
        keys = [nil, (OTHER.fetch(@role) if @visit.credentials.signer(OTHER.fetch(@role)))].uniq
        all = keys.product([nil, *audiences], [nil, *issuers]).map do |key, audience, issuer|
          {signed_by: key, audience: audience, issuer: issuer}.compact
        end
        all.reject(&:empty?).sort_by.with_index { |differing, index| [differing.size, index] }
      end

      def audiences = ([@visit.resource, @visit.place.to_s, @visit.place.origin].compact.uniq - [@visit.audience])

      def issuers
        servers = Array(@visit.metadata && @visit.metadata["authorization_servers"]).grep(String).first(3)
        ([*servers, "hikyaku", @visit.place.origin, @visit.resource, @visit.credentials.signer(OTHER.fetch(@role))&.issuer].compact.uniq - [@visit.credentials.signer(@role).issuer])
      end

      def tried
        parts = {"issuers" => [@visit.credentials.signer(@role).issuer, *issuers], "audiences" => [@visit.audience, *audiences]}
          .map { |name, values| "the #{name} #{Words.list(values.map { |value| Words.quote(value) })}" }
        parts << "the #{OTHER.fetch(@role)} key" if @visit.credentials.signer(OTHER.fetch(@role))
        Words.list(parts)
      end

      def explain(differing)
        wrong = []
        wrong << "its key: the hub believes the one that is given as #{OTHER.fetch(@role)} key" if differing.key?(:signed_by)
        wrong << "its issuer: the hub trusts #{Words.quote(differing[:issuer])}, not #{@visit.credentials.signer(@role).issuer}" if differing.key?(:issuer)
        wrong << "its audience: the hub takes tokens for #{Words.quote(differing[:audience])}, not #{@visit.audience}" if differing.key?(:audience)
        ["the token is refused for #{Words.list(wrong)}", {signed_by: key, **DIFFERING}.select { |what, _| differing.key?(what) }.values]
      end

      # Of a token that was made elsewhere there is only what it says.
      def given
        return ["the token is refused: it is no JWT", :token] unless @visit.credentials.jwt?(@role)
        claims = @visit.credentials.claims(@role)
        reasons = {token: expired(claims["exp"]), identifier: audience(claims["aud"])}.compact
        return ["the token is refused: #{Words.list(reasons.values)}", [:token, *reasons.keys].uniq] if reasons.any?
        ["the token is refused, though it is in time#{" and for this hub" if @visit.resource}: its key or its issuer (#{Words.quote(claims["iss"].inspect)}) is not one that the hub trusts for #{@role}s", [:token, key]]
      end

      def expired(time)
        "it has expired #{Words.long(Time.now.to_i - time)} ago" if time.is_a?(Numeric) && time <= Time.now.to_i
      end

      def audience(aud)
        return if @visit.resource.nil? || Array(aud).include?(@visit.resource)
        named = Words.quote(Array(aud).join(" "))
        "#{named.empty? ? "it names no audience" : "it is for #{named}"}, and the hub calls itself #{Words.quote(@visit.resource)}"
      end
    end

    # The WWW-Authenticate field of a refusal (RFC 6750, section 3; RFC 9728, section 5.1).
    class Challenge
      PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/i
      private_constant :PARAMETER

      attr_reader :scheme

      def initialize(answer)
        field = answer["www-authenticate"].to_s
        @scheme = field[/\A\s*([a-z0-9-]+)/i, 1]&.downcase
        @parameters = field.scan(PARAMETER).to_h { |name, quoted, bare| [name.downcase, quoted || bare] }
      end

      def bearer? = @scheme == "bearer"

      def error = @parameters["error"]

      def metadata = @parameters["resource_metadata"]
    end
  end
end
