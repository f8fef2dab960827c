# frozen_string_literal: true

require_relative "cache_request"
require_relative "header_fields"
require_relative "http_date"

module Hikyaku
  module HTTP
    class Cache
      # The age of a response and its lifetime: RFC 9111, section 4.2. A private cache ignores s-maxage.
      class Freshness
        # RFC 9110, section 15.1: a cache may store a response with such a status without an explicit lifetime.
        HEURISTIC = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].freeze
        DIGITS = /\A\d+\z/
        FRACTION = 0.1 # of the time since the last change
        MAX_HEURISTIC = 86_400 # seconds
        private_constant :DIGITS, :FRACTION, :MAX_HEURISTIC

        attr_reader :date, :lifetime

        def initialize(status:, headers:, directives:, requested_at:, received_at:, heuristic: false)
          @headers = headers
          @received_at = received_at
          @date = time("date") || received_at
          @initial_age = [received_at - @date, stated_age + [received_at - requested_at, 0].max].max
          @lifetime = directives.least("max-age") || expiry || (heuristic ? heuristic_lifetime(status, directives) : 0)
          @headers = nil
          freeze
        end

        # A clock that was set back makes no response younger.
        def age(now) = @initial_age + (now - @received_at).abs

        def remaining(now) = @lifetime - age(now)

        def initially_fresh? = @lifetime > @initial_age

        private

        def time(name) = HttpDate.parse(HeaderFields.single(@headers, name), now: @received_at)

        # Section 5.1: the first of several counts, and one that is no number is ignored.
        def stated_age
          text = HeaderFields.values(@headers, "age").first.to_s[/\A[^,]*/].strip
          text.match?(DIGITS) ? [text[0, 100].to_i, Directives::FOREVER].min : 0
        end

        # An invalid date, above all "0", is in the past: section 5.3.
        def expiry
          values = HeaderFields.values(@headers, "expires")
          return if values.empty?
          dates = values.map { |value| HttpDate.parse(value, now: @received_at) }
          dates.all? ? (dates.min - @date).clamp(0, Directives::FOREVER) : 0
        end

        # Section 4.2.2.
        def heuristic_lifetime(status, directives)
          return 0 unless HEURISTIC.include?(status) || directives.include?("public")
          changed = time("last-modified") or return 0
          ((@date - changed) * FRACTION).clamp(0, MAX_HEURISTIC)
        end
      end

      # A stored response: a value. A {CachedResponse} is what it is for one request at one time.
      class Entry
        # A weak or a strong entity tag: RFC 9110, section 8.8.3.
        TAG = %r{\A(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"\z}n
        MAX_TAG_BYTES = 512
        OVERHEAD_BYTES = 1000 # of the objects of one entry
        FIELD_BYTES = 120 # of the objects that hold one field
        # A 206 is incomplete, and a 304 has no content of its own.
        NEVER_STORED = [206, 304].freeze
        # The statuses whose caching requirements this cache implements: RFC 9111, section 5.2.2.3.
        UNDERSTOOD = [*Freshness::HEURISTIC, 302, 303, 307, 400, 401, 403, 500, 502, 503, 504].freeze
        private_constant :TAG, :MAX_TAG_BYTES, :OVERHEAD_BYTES, :FIELD_BYTES, :NEVER_STORED, :UNDERSTOOD

        attr_reader :url, :status, :headers, :body, :directives, :freshness, :vary, :etag, :last_modified, :received_at, :bytes

        def initialize(url:, status:, headers:, body:, requested_at:, received_at:, request: nil, vary: nil, heuristic: false)
          @url = -url
          @status = status
          @body = (body.frozen? && body.encoding == Encoding::BINARY) ? body : body.b.freeze
          @received_at = received_at
          @directives = Directives.parse(HeaderFields.values(headers, "cache-control"))
          stored = HeaderFields.end_to_end(headers)
          @heuristic = heuristic
          @freshness = Freshness.new(status: status, headers: stored, directives: @directives, requested_at: requested_at, received_at: received_at, heuristic: heuristic)
          @headers = complete(stored)
          @vary = request ? Vary.of(@headers, request) : vary
          @etag = checked_tag(HeaderFields.single(@headers, "etag"))
          @last_modified = checked_date(HeaderFields.single(@headers, "last-modified"))
          @bytes = size
          freeze
        end

        def updated(received, requested_at:, received_at:, request: nil)
          self.class.new(url: @url, status: @status, headers: HeaderFields.updated(@headers, received), body: @body,
            requested_at: requested_at, received_at: received_at, request: request, vary: @vary, heuristic: @heuristic)
        end

        def strong? = !@etag.nil? && @etag.start_with?('"')

        def validators? = @status.between?(200, 299) && !(@etag || @last_modified).nil?

        # Whether a private cache may store it (RFC 9111, section 3), and can ever use it.
        def storable?(request)
          return false if NEVER_STORED.include?(@status) || !@status.between?(200, 999) || @vary.nil?
          return false if request.no_store? || (request.conditional? && @status != 200)
          storing_allowed? && cacheable? && useful?
        end

        # Whether it answers the request without validation: RFC 9111, sections 4 and 5.2.1.
        def usable?(request, now)
          return false if request.no_cache? || @directives.unqualified?("no-cache")
          remaining = @freshness.remaining(now)
          return false if too_old?(request, remaining, now)
          min_fresh = request.directives.most("min-fresh")
          return false if min_fresh && remaining < min_fresh
          remaining.positive? || stale_accepted?(request, remaining)
        end

        # Whether it may stand in for a server that fails: RFC 5861, section 4.
        def usable_on_error?(now)
          seconds = @directives.least("stale-if-error") or return false
          return false if @directives.include?("must-revalidate") || @directives.unqualified?("no-cache")
          @freshness.remaining(now) >= -seconds
        end

        def inspect = "#<#{self.class} #{@status} #{@url} #{@body.bytesize} bytes>"

        private

        # RFC 9110, section 6.6.1: a recipient that stores a response without Date adds the time of its receipt.
        def complete(headers)
          pairs = headers.reject { |field| field.first == "age" }.map { |name, value| [-name, -value].freeze }
          pairs << ["date".b.freeze, HttpDate.write(@received_at)].freeze if pairs.none? { |name, _| name == "date" }
          pairs.freeze
        end

        def checked_tag(value) = (value if value && value.bytesize <= MAX_TAG_BYTES && value.match?(TAG))

        def checked_date(value) = (value if HttpDate.parse(value, now: @received_at))

        def size
          fields = @headers.sum { |name, value| name.bytesize + value.bytesize + FIELD_BYTES }
          OVERHEAD_BYTES + @url.bytesize + @body.bytesize + fields + (@vary ? @vary.bytes : 0)
        end

        def storing_allowed? = @directives.include?("must-understand") ? UNDERSTOOD.include?(@status) : !@directives.include?("no-store")

        def cacheable?
          Freshness::HEURISTIC.include?(@status) || %w[max-age public private].any? { |name| @directives.include?(name) } ||
            @headers.any? { |name, _| name == "expires" }
        end

        # The cache can never use a response that is stale on arrival and has no validator.
        def useful? = validators? || @freshness.initially_fresh? || @directives.include?("stale-if-error")

        # A browser reloads a page with max-age=0, which does not concern immutable responses: RFC 8246, section 2.
        def too_old?(request, remaining, now)
          max_age = request.directives.least("max-age") or return false
          return false if remaining.positive? && @directives.include?("immutable")
          max_age.zero? || @freshness.age(now) > max_age
        end

        def stale_accepted?(request, remaining)
          seconds = request.directives.least("max-stale", bare: Directives::FOREVER) or return false
          !@directives.include?("must-revalidate") && -remaining <= seconds
        end
      end
    end
  end
end
