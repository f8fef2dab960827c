# frozen_string_literal: true

require_relative "../response"
require_relative "header_fields"

module Hikyaku
  module HTTP
    class Cache
      # What the cache has for a request: a value.
      class Lookup
        # @return [CachedResponse, nil] the response that may be used: at once if the lookup is fresh, after validation if it is stale
        attr_reader :stored
        # @return [Array<Array(String, String)>] header fields for the request that validates; empty unless the lookup is stale
        attr_reader :validators
        # @return [CachedResponse, nil] the response that may be used if the server fails or is unreachable: stale-if-error, RFC 5861, section 4
        attr_reader :fallback

        # @api private
        def initialize(kind, stored: nil, validators: [].freeze, fallback: nil)
          @kind = kind
          @stored = stored
          @validators = validators
          @fallback = fallback
          freeze
        end

        # @return [Boolean] whether the response may be used without validation
        def fresh? = @kind == :fresh

        # @return [Boolean] whether the response may be used once the server has validated it
        def stale? = @kind == :stale

        # @return [Boolean] whether the cache has no response
        def miss? = @kind == :miss

        # @return [Boolean] whether the request has only-if-cached, and the cache has no response: the answer is 504, RFC 9111, section 5.2.1.7
        def unsatisfiable? = @kind == :unsatisfiable

        # @return [String]
        def inspect = "#<#{self.class} #{@kind}#{" #{@stored.url}" if @stored}>"
      end

      # A stored response, as it is for one request at one time: a value.
      class CachedResponse
        MAX_AGE = Directives::FOREVER
        EMPTY = "".b.freeze
        SET_COOKIE = "set-cookie"
        private_constant :MAX_AGE, :EMPTY, :SET_COOKIE

        # @return [Entry]
        # @api private
        attr_reader :entry
        # @return [CacheRequest]
        # @api private
        attr_reader :request
        # @return [Array<Entry>] the entries that the server validates
        # @api private
        attr_reader :candidates

        # @api private
        def initialize(entry, request:, now:, candidates: [entry], validated: false)
          @entry = entry
          @request = request
          @now = now
          @candidates = candidates
          @validated = validated
          freeze
        end

        # @return [String] without fragment
        def url = @entry.url

        # @return [Integer]
        def status = @entry.status

        # @return [Array<Array(String, String)>] names in lower case, and values, binary, as they are stored: without Age
        def headers = @entry.headers

        # @return [String] binary and frozen; empty for a HEAD request
        def body = @request.head? ? EMPTY : @entry.body

        # @return [String, nil] the entity tag
        def etag = @entry.etag

        # @param now [Float] seconds of the wall clock
        # @return [Float] seconds since the server generated or validated the response: RFC 9111, section 4.2.3
        def age(now) = @entry.freshness.age(now)

        # The response for the caller, with its Age at the time of the lookup. Without validation it lacks the fields that no-cache="…" names
        # (RFC 9111, section 5.2.2.4), and Set-Cookie: the server may have changed or deleted that cookie since.
        #
        # @return [Response]
        def response
          Response.new(status: status, headers: visible_headers, body: body, url: url, from: @validated ? :validated : :cache)
        end

        # @return [String] without what may be secret
        def inspect = "#<#{self.class} #{status} #{url} #{@entry.body.bytesize} bytes>"

        private

        def visible_headers
          hidden = @validated ? [] : [SET_COOKIE, *@entry.directives.fields("no-cache")]
          pairs = hidden.empty? ? headers : headers.reject { |field| hidden.include?(field.first) }
          [*pairs, ["age", age(@now).floor.clamp(0, MAX_AGE).to_s.freeze].freeze].freeze
        end
      end
    end
  end
end
