# frozen_string_literal: true

require "uri"
require_relative "../support/clock"
require_relative "../error"
require_relative "../support/generational_cache"
require_relative "authorization/verification"
require_relative "authorization/remote_keys"
require_relative "authorization/key_source"
require_relative "problem"

module Hikyaku
  class Web
    # Says what access tokens permit (Mercure draft-08, section "Authorization"). Thread-safe.
    #
    #     authorization = Authorization.new(issuers: config.issuer_list, resource_identifier: …, hub_url: …)
    #     token, source = Authorization.token_of(env, cookie_name: config.cookie_name, legacy: config.legacy)
    #     access = authorization.access(token, :publisher)
    #     access.publish?(topics)
    #
    # What a token permits is remembered for as long as it is valid and the issuers' key sets stay the same. The clock is checked every
    # time, refusals are never kept, and the whole token is the key.
    class Authorization
      # A token is presented in a way that cannot be understood: 400 with the challenge `invalid_request` (Mercure
      # draft-08, section "Error Responses").
      class InvalidRequest < Problem
        def initialize(detail) = super(400, detail, code: "invalid_request")
      end

      # Finds the token of a request (Mercure draft-08, section "Presenting the Access Token").
      #
      # The Authorization header goes before the cookie, which the browser sends whether it was meant or not. A header
      # that is no Bearer header with one token is refused rather than passed over, so that a mistake of the client
      # never turns into a request with other rights. In 0.x the query parameter `authorization` stands between the two.
      module Credentials
        # RFC 6750 section 2.1, RFC 9110 section 11.1 (the scheme in any case).
        # Spelled out, since a pattern that ignores case takes ten times as long over a token.
        BEARER = %r{\A[ \t]*[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]+=*)[ \t]*\z}
        # Of a token without padding, which no JWS has.
        TOKEN_CHARACTERS = "A-Za-z0-9._~+/-"
        COOKIE_NAME = "__Secure-mercure_access_token"
        LEGACY_COOKIE_NAME = "mercureAuthorization"
        QUERY_NAME = "authorization"

        class << self
          def find(env, cookie_name: COOKIE_NAME, legacy: false)
            if (header = env["HTTP_AUTHORIZATION"])
              return [bearer(header), :header]
            end
            if legacy == true && (token = query(env))
              return [token, :query]
            end
            token = cookie(env, cookie_name) || (cookie(env, LEGACY_COOKIE_NAME) if legacy)
            token ? [token, :cookie] : [nil, nil]
          end

          private

          # Servers join several headers of one name with a comma, which no token contains. What nearly everybody sends is
          # told without the pattern: this is asked for each publish.
          def bearer(header)
            if header.start_with?("Bearer ")
              token = header.byteslice(7, header.bytesize).force_encoding(Encoding::BINARY)
              return token if !token.empty? && token.count(TOKEN_CHARACTERS) == token.bytesize
            end
            header.b[BEARER, 1] or
              raise InvalidRequest, "the Authorization header is not the word Bearer and one token"
          end

          # Only where nothing is changed: a link must not publish.
          def query(env)
            return unless %w[GET HEAD].include?(env["REQUEST_METHOD"])
            tokens = env["QUERY_STRING"].to_s.b.split("&").filter_map do |pair|
              name, value = pair.split("=", 2)
              decoded(value || "") if name && decoded(name) == QUERY_NAME
            end
            raise InvalidRequest, "the query has the parameter authorization more than once" if tokens.size > 1
            tokens.first
          end

          def decoded(text)
            URI.decode_www_form_component(text, Encoding::BINARY)
          rescue ArgumentError
            text
          end

          # RFC 6265 section 4.2.2: the first of several is the one with the longest path.
          def cookie(env, name)
            cookies = env["HTTP_COOKIE"] or return
            cookies.b.split(";").each do |pair|
              key, value = pair.split("=", 2)
              return value.strip.gsub(/\A"|"\z/, "") if value && key.strip == name
            end
            nil
          end
        end

        private_constant :BEARER, :TOKEN_CHARACTERS, :QUERY_NAME
      end

      ROLES = %i[publisher subscriber].freeze
      DEFAULT_COOKIE_NAME = Credentials::COOKIE_NAME
      LEGACY_COOKIE_NAME = Credentials::LEGACY_COOKIE_NAME
      # Bytes where the name says so; the cache is that of one role.
      DEFAULT_LIMITS = {
        max_token_bytes: 16_384, max_token_details: 100, max_token_topics: 100, max_pattern_bytes: 4_096,
        max_token_cache_bytes: 8_388_608
      }.freeze
      # What a token and an {Access} cost in the cache beside their text, and a compiled matcher beside its text and for each byte of it.
      ENTRY_BYTES = 1_000
      MATCHER_BYTES = 1_500
      BYTES_PER_PATTERN_BYTE = 30
      private_constant :ENTRY_BYTES, :MATCHER_BYTES, :BYTES_PER_PATTERN_BYTE

      def self.token_of(env, cookie_name: DEFAULT_COOKIE_NAME, legacy: false)
        Credentials.find(env, cookie_name: cookie_name, legacy: legacy)
      end

      def initialize(issuers:, resource_identifier:, hub_url:, legacy: false, limits: {}, clock: Support::Clock::WALL,
        logger: nil, http: KeyFetch.new, weak_secrets: false)
        limits = DEFAULT_LIMITS.merge(limits.compact)
        @clock = clock
        @caches = ROLES.to_h { |role| [role, Support::GenerationalCache.new(limits.fetch(:max_token_cache_bytes), &method(:bytes))] }.freeze
        @on_change = -> {}
        source = KeySource.new(fetch: http, logger: logger, on_change: -> { forget }, weak: weak_secrets)
        trusted = issuers.map { |issuer| TrustedIssuer.load(issuer, source) }
        @rules = Rules.new(issuers: trusted, plain: plain(trusted), resource_identifier: resource_identifier || hub_url,
          hub_url: hub_url, legacy: legacy, limits: limits)
        @refreshable = trusted.flat_map(&:refreshable).freeze
      end

      # Calls a block whenever keys have changed, so that what was decided before is void.
      def on_change(&block)
        @on_change = block
      end

      # Reads key files again that have changed, and fetches key sets again that have become stale, in the background: for
      # whoever answers without verifying tokens.
      def refresh
        now = @clock.call
        @refreshable.each { |keys| keys.refresh_if_stale(now) }
      end

      # Reads all key files again, and fetches all key sets again, in the background.
      def reload
        now = @clock.call
        @refreshable.each { |keys| keys.reload(now) }
      end

      def refreshable? = @refreshable.any?

      # What a token permits.
      def access(token, role)
        now = @clock.call
        refresh unless @refreshable.empty?
        cache = @caches.fetch(role)
        access = cache[token]
        return access if access&.current?(now)
        # An expired token is verified as if for the first time, so that the error says why it is refused.
        cache.delete(token) if access
        version = cache.version
        cache.store(token, verification(token, role, now).access, version: version)
      end

      # What a valid token says, all of it: for who understands claims that are not Mercure's. Costs a full validation.
      def claims(token, role)
        now = @clock.call
        refresh unless @refreshable.empty?
        verification = verification(token, role, now)
        verification.access
        verification.claims
      end

      # What the hub thinks of a token, for people who look for the reason of a refusal. Any text will do. Costs a full
      # validation. Not for clients: they are told `invalid_token` and no more.
      def explain(token, role)
        Explanation.of(verification(token, role, @clock.call), role)
      end

      def publisher_configured? = @rules.issuers.any? { |issuer| issuer.role?(:publisher) }

      def subscriber_configured? = @rules.issuers.any? { |issuer| issuer.role?(:subscriber) }

      def inspect = "#<#{self.class} #{@rules.issuers.size} issuers, #{@rules.resource_identifier}>"

      private

      def bytes(token, access)
        matchers = access.publish_matchers + access.subscribe_matchers
        token.bytesize * 3 + ENTRY_BYTES + matchers.sum { |matcher| MATCHER_BYTES + matcher.pattern.bytesize * BYTES_PER_PATTERN_BYTE }
      end

      def verification(token, role, now) = Verification.new(token, role: role, rules: @rules, now: now)

      def forget
        @caches.each_value(&:clear)
        @on_change.call
      end

      # The issuer of the settings publisher_key and subscriber_key: the one without an identifier, or else the first,
      # where the configuration puts it.
      def plain(trusted) = trusted.find { |issuer| issuer.id.nil? } || trusted.first
    end
  end
end
