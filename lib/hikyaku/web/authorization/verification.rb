# frozen_string_literal: true

require "jwt"
require_relative "../../error"
require_relative "../access"
require_relative "algorithms"
require_relative "strict_json"
require_relative "trusted_issuer"

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

        attr_reader :header
        attr_reader :claims
        attr_reader :legacy
        attr_reader :details

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
    end
  end
end
