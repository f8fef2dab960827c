# frozen_string_literal: true

require "jwt"
require_relative "../../error"
require_relative "keys"
require_relative "../origins"
require_relative "details"

module Hikyaku
  class Web
    class Authorization
      # A token cannot be judged because the issuer's key set was never reached. Not the client's fault: it may be told
      # 503 and to try again; told as any invalid token it is refused all the same.
      class KeysUnavailable < InvalidToken
      end

      # The checks that make a token valid, in order, each on its own (Mercure draft-08, section "Token Validation";
      # RFC 9068 section 4; RFC 8725). Used once for one token and one role.
      #
      # Each check answers a sentence about what it found, and raises InvalidToken with a sentence about what is wrong.
      # No sentence holds anything of the token.
      class Verification
        # In order, each with what it cannot do without.
        CHECKS = {
          check_size: [], check_form: %i[@sized], check_header: %i[@segments], check_type: %i[@header],
          check_algorithm: %i[@header], check_extensions: %i[@header], check_claims: %i[@segments],
          check_issuer: %i[@claims], check_signature: %i[@header @trusted], check_lifetime: %i[@claims],
          check_audience: %i[@claims], check_identity: %i[@claims], check_grants: %i[@claims]
        }.freeze

        # Seconds by which an issuer's clock may be ahead of the hub's.
        LEEWAY = 5
        SEGMENTS = /\A([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\z/
        TYPE = %r{\A(?:application/)?at\+jwt\z}i

        attr_reader :header, :claims, :legacy, :details

        def initialize(token, role:, rules:, now:)
          @token = token
          @role = role
          @rules = rules
          @now = now
        end

        def access
          CHECKS.each_key { |check| public_send(check) }
          to_access
        end

        # No token was issued later than it was seen, whatever the issuer's clock says: else one that is ahead, or rounds up, would
        # make a token newer than the revocation that is to end it.
        def to_access
          Access.new(issuer: @trusted.id, basis: TrustedIssuer::Basis.new(@trusted, @role, @key).freeze, subject: @subject, token_id: @token_id, issued_at: @issued_at && [@issued_at, @now].min,
            expires_at: @expires_at, not_before: @not_before && @not_before - LEEWAY, legacy: @legacy, details: @details, payload: @payload,
            token_bytes: @token.bytesize)
        end

        def ready?(check)
          CHECKS.fetch(check).none? { |need| instance_variable_get(need).nil? }
        end

        # Before anything is parsed.
        def check_size
          limit = @rules.max_token_bytes
          refuse "the token has #{@token.bytesize} bytes, at most #{limit} are allowed" if @token.bytesize > limit
          @sized = true
          "The token is not longer than allowed."
        end

        # Compact serialization and nothing else; base64url without padding, line breaks or stray bits, so that one
        # token has one spelling.
        def check_form
          match = SEGMENTS.match(@token.b) or
            refuse "the token is not a JWS in compact serialization: three parts in base64url, none of them empty"
          @segments = match.captures.map { |part| decode(part) }
          "It is a JWS in compact serialization."
        end

        # RFC 7515 section 4.
        def check_header
          @header ||= StrictJson.object(@segments[0]) or
            refuse "the header is not a JSON object with each member once"
          "Its header is a JSON object."
        end

        # RFC 9068 section 4, RFC 7515 section 4.1.9.
        def check_type
          typ = @header["typ"]
          @legacy = false
          return "It is an access token (typ at+jwt)." if typ.is_a?(String) && TYPE.match?(typ)
          refuse "the header's typ is not at+jwt" unless @rules.legacy?
          @legacy = true
          "Its typ is not at+jwt: it is judged by the rules of Mercure 0.x."
        end

        # RFC 8725 section 3.1. Whether the key goes with it is checked with the key.
        def check_algorithm
          alg = @header["alg"]
          refuse "the header's alg is none: the token is not signed" if alg.is_a?(String) && alg.casecmp?("none")
          refuse "the header's alg is not an algorithm that the hub knows" unless Algorithms.known?(alg)
          kid = @header["kid"]
          refuse "the header's kid is not a string" unless kid.nil? || kid.is_a?(String)
          "Its algorithm is one that the hub knows."
        end

        # RFC 7515 section 4.1.11, RFC 7797 section 7. Keys that a token brings (jwk, jku, x5u, x5c) are not looked at.
        def check_extensions
          refuse "the header has the member crit, and the hub understands no extension" if @header.key?("crit")
          refuse "the header's b64 is not true" if @header.key?("b64") && @header["b64"] != true
          "It asks for no extension."
        end

        # RFC 7519 section 4.
        def check_claims
          @claims ||= StrictJson.object(@segments[1]) or
            refuse "the claims are not a JSON object with each member once"
          "Its claims are a JSON object."
        end

        # The claim is not verified yet: it only chooses among the issuers that are trusted.
        def check_issuer
          iss = @claims["iss"]
          nameless = @legacy && iss.nil?
          refuse "the claim iss is not a string" unless nameless || iss.is_a?(String)
          @trusted = @rules.issuer(iss, legacy: @legacy) or refuse(
            @legacy ? "no issuer is configured whose keys could be tried" : "the claim iss is none of the configured issuers"
          )
          return "Its issuer is trusted." if @trusted.role?(@role)
          @trusted = nil
          refuse "the issuer has no #{@role} key"
        end

        # Mercure draft-08, section "Token Validation": only this issuer's keys, only for this role.
        def check_signature
          alg = @header["alg"]
          keys = @trusted.candidates(@role, @header["kid"], @now)
          refuse "the issuer has no #{@role} key with the header's kid" if keys.empty?
          keys = keys.select { |key| key.algorithms.include?(alg) }
          refuse "the header's alg is not on the allowlist of the issuer's #{@role} keys" if keys.empty?
          encoded = JWT::EncodedToken.new(@token)
          @key = keys.first(TrustedIssuer::MAX_TRIED).find { |key| key.signed?(encoded, alg) }
          return "Its signature is the issuer's." if @key
          refuse "the signature is not by one of the issuer's #{@role} keys"
        rescue TrustedIssuer::KeysUnreachable
          raise KeysUnavailable, "the issuer's key set has not been reached yet"
        end

        # RFC 7519 sections 4.1.4 and 4.1.5.
        def check_lifetime
          @expires_at = time("exp", required: !@legacy)
          @not_before = time("nbf")
          refuse "the token has expired" if @expires_at && @now >= @expires_at
          refuse "the token is not valid yet (nbf)" if @not_before && @now < @not_before - LEEWAY
          @issued_at = issued_at
          if @issued_at && @now < @issued_at - LEEWAY
            refuse "the token's iat lies #{(@issued_at - @now).ceil} seconds in the future: the issuer's clock is ahead, or the hub's behind"
          end
          @expires_at ? "It is within its lifetime." : "It has no expiry, as 0.x allows."
        end

        # RFC 7519 section 4.1.3.
        def check_audience
          return "0.x asks for no audience." if @legacy
          aud = @claims["aud"]
          aud = [aud] if aud.is_a?(String)
          refuse "the claim aud is neither a string nor an array of strings" unless aud.is_a?(Array) && aud.all?(String)
          return "It is meant for this hub." if aud.intersect?(@rules.audiences)
          refuse "the claim aud does not hold this hub's resource identifier, #{@rules.resource_identifier}"
        end

        # The other claims of RFC 9068 are the issuer's duty; those that are there must be what they should be. 0.x
        # tokens are often written by hand: what they get wrong here is left out.
        def check_identity
          @subject = text("sub")
          @token_id = text("jti")
          text("client_id")
          "Its other claims are well-formed."
        end

        # Mercure draft-08, section "Authorization Details"; Mercure 0.x, sections "Publishers" and "Subscribers".
        def check_grants
          if @legacy
            reading = @rules.legacy_claim.parse(@claims)
            @details = reading.details
            @payload = reading.payload
          else
            @details = @rules.details.parse(@claims)
          end
          "What it grants can be read."
        end

        private

        def refuse(reason) = raise(InvalidToken, reason)

        def decode(segment)
          segment.tr("-_", "+/").ljust(segment.bytesize + (-segment.bytesize % 4), "=").unpack1("m0")
        rescue ArgumentError
          refuse "a part of the token is not base64url"
        end

        def text(name)
          value = @claims[name]
          return value if value.nil? || value.is_a?(String)
          return (value.to_s if value.is_a?(Integer)) if @legacy
          refuse "the claim #{name} is not a string"
        end

        # 0.x tokens may say anything there.
        def issued_at = @legacy ? @claims["iat"].then { |iat| iat.to_f if iat.is_a?(Numeric) } : time("iat")

        def time(name, required: false)
          value = @claims[name]
          refuse "the token has no #{name}" if required && value.nil?
          return if value.nil?
          seconds = value.to_f if value.is_a?(Numeric)
          seconds&.finite? ? seconds : refuse("the claim #{name} is not a number of seconds")
        end

        private_constant :LEEWAY, :SEGMENTS, :TYPE
      end

      # What a valid token permits: who, until when, which topics. A value: frozen, and shared by all requests with the
      # same token.
      class Access
        # What parsed payloads take, over the token that they stood in.
        COPIES = 3
        private_constant :COPIES

        attr_reader :issuer, :subject, :token_id, :issued_at, :expires_at, :subscribe_matchers,
          :publish_matchers, :bytes, :basis

        def initialize(details:, issuer: nil, subject: nil, token_id: nil, issued_at: nil, expires_at: nil, not_before: nil,
          legacy: false, payload: nil, basis: nil, token_bytes: 0)
          @issuer = issuer
          @basis = basis
          @subject = subject
          @token_id = token_id
          @issued_at = issued_at
          @expires_at = expires_at
          @from = not_before || -Float::INFINITY
          @until = expires_at || Float::INFINITY
          @legacy = legacy
          @payload = payload
          @subscribe_details = details.select(&:subscribe).freeze
          @subscribe_matchers = @subscribe_details.flat_map(&:matchers).freeze
          @publish_matchers = details.select(&:publish).flat_map(&:matchers).freeze
          @bytes = COPIES * token_bytes + details.sum { |detail| detail.matchers.sum(&:bytes) }
          freeze
        end

        def legacy? = @legacy

        # Whether the token is valid at this time, nothing else having changed.
        def current?(now) = now < @until && now >= @from

        # Mercure draft-08, section "Publishers": every topic must be granted.
        def publish?(topics)
          topics.all? { |topic| @publish_matchers.any? { |matcher| matcher.match?(topic) } }
        end

        # Mercure draft-08, section "Subscribers", for one of the topics of an update.
        def subscribe?(topic)
          @subscribe_matchers.any? { |matcher| matcher.match?(topic) }
        end

        # What the token says about a subscription. The first detail that matches decides, even when it has no payload
        # (Mercure draft-08, section "Payloads"; Mercure 0.x, section "Payload").
        def payload(matcher_string)
          detail = @subscribe_details.find { |one| one.matchers.any? { |matcher| matcher.match?(matcher_string) } }
          payload = detail&.payload
          (payload.nil? && @legacy) ? @payload : payload
        end

        def inspect
          "#<#{self.class} #{"0.x " if @legacy}issuer #{@issuer.inspect}, subject #{@subject.inspect}, " \
            "publish #{@publish_matchers.map(&:pattern)}, subscribe #{@subscribe_matchers.map(&:pattern)}>"
        end
      end

      # What tokens are judged by: whom the hub trusts, who it is itself, and its limits.
      class Rules
        attr_reader :resource_identifier, :audiences, :max_token_bytes, :details, :legacy_claim, :issuers

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

      # What the hub thinks of a token, for people: every check in order, not only the first that fails.
      module Explanation
        NAMES = Verification::CHECKS.keys.to_h { |check| [check, check.to_s.delete_prefix("check_")] }.freeze

        class << self
          def of(verification, role)
            checks = Verification::CHECKS.keys.map { |check| outcome(verification, check) }
            {
              valid: checks.all? { |check| check[:ok] }, role: role, legacy: verification.legacy || false,
              checks: checks, header: verification.header, claims: verification.claims,
              permits: permits(verification.details || [])
            }
          end

          private

          def outcome(verification, check)
            name = NAMES.fetch(check)
            return {check: name, ok: nil, message: "Not checked: an earlier check failed."} unless verification.ready?(check)
            {check: name, ok: true, message: verification.public_send(check)}
          rescue InvalidToken => error
            {check: name, ok: false, message: sentence(error)}
          end

          # The person asking has the token: here the cause may be told, which holds a pattern.
          def sentence(error)
            message = error.cause.is_a?(Hikyaku::Error) ? "#{error.message}: #{error.cause.message}" : error.message
            message = "#{message[0].upcase}#{message[1..]}"
            message.end_with?(".") ? message : "#{message}."
          end

          def permits(details)
            {
              publish: details.select(&:publish).flat_map { |detail| detail.matchers.map { |one| pattern(one) } },
              subscribe: details.select(&:subscribe).flat_map do |detail|
                detail.matchers.map { |one| pattern(one).merge(detail.payload ? {payload: detail.payload} : {}) }
              end
            }
          end

          def pattern(matcher) = {type: matcher.type, pattern: matcher.pattern}
        end

        private_constant :NAMES
      end
    end
  end
end
