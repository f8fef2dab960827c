# frozen_string_literal: true

require "json"
require_relative "../../support/clock"
require_relative "../../error"

module Hikyaku
  class Publisher
    # Where the access token of a request comes from: a fixed string, or something callable that is asked again when
    # the token it gave is about to expire, or was refused.
    class TokenSource
      # RFC 6750 section 2.1: what can stand behind "Bearer".
      TOKEN = /\A[A-Za-z0-9\-._~+\/]+=*\z/
      # A token is renewed when this share of its life is left, so that it does not expire on its way.
      RENEWAL_SHARE = 0.2
      MAX_RENEWAL_SECONDS = 60
      private_constant :TOKEN, :RENEWAL_SHARE, :MAX_RENEWAL_SECONDS

      def initialize(source, clock: Support::Clock::WALL)
        @renewable = source.respond_to?(:call)
        @source = @renewable ? source : nil
        @clock = clock
        @mutex = Mutex.new
        @token = @renewable ? nil : checked(source)
        @renew_at = nil
      end

      def any? = @renewable || !@token.nil?

      def token
        return @token unless @renewable
        @mutex.synchronize do
          renew if @token.nil? || (@renew_at && @clock.call >= @renew_at)
          @token
        end
      end

      # Forgets a token that the hub refused. Threads that were refused together fetch one new token, not one each.
      def refused(refused)
        return false unless @renewable
        @mutex.synchronize { @token = nil if @token == refused }
        true
      end

      def inspect = "#<#{self.class.name} #{@renewable ? "renewable" : "fixed"}>"

      private

      def renew
        @token = checked(@source.call)
        @renew_at = @token && renewal_time(@token)
      end

      def checked(token)
        return if token.nil?
        return token if token.is_a?(String) && TOKEN.match?(token)
        raise ConfigError, "the token is not one that an Authorization header can carry (empty, spaces, line breaks?)"
      end

      # Tokens that are no JWTs, or that do not expire, are kept until one is refused.
      def renewal_time(token)
        expires_at = expiry(token) or return
        left = expires_at - @clock.call
        expires_at - [left * RENEWAL_SHARE, MAX_RENEWAL_SECONDS].min
      end

      def expiry(token)
        claims = JSON.parse(token.split(".").fetch(1).tr("-_", "+/").unpack1("m"))
        claims["exp"] if claims.is_a?(Hash) && claims["exp"].is_a?(Numeric)
      rescue JSON::ParserError, IndexError, ArgumentError, EncodingError
        nil
      end
    end
  end
end
