# frozen_string_literal: true

require_relative "../error"
require_relative "cache/cache_request"
require_relative "cache/entry"
require_relative "cache/lookup"
require_relative "cache/validation"

module Hikyaku
  module HTTP
    # A private cache in memory: RFC 9111. It does no I/O and has no clock: the caller passes the time, and admits one thread at a time.
    #
    # URLs are those of {Address#url}, and their fragments do not count. Names of header fields are in lower case. A response that is not public answers only
    # requests that agree in every field that may identify a user: Authorization, Cookie, X-API-Key, and all others that are not known to identify none.
    #
    # @example
    #   cache = Hikyaku::HTTP::Cache.new(max_bytes: 8_388_608)
    #   cache.store(method: "GET", url: "http://example.com/", request_headers: [], status: 200, headers: [["cache-control", "max-age=60"]],
    #     body: "hello", requested_at: 0.0, received_at: 0.1)
    #   cache.find(method: "GET", url: "http://example.com/", headers: [], now: 30.0).fresh? # => true
    class Cache
      MISS = Lookup.new(:miss)
      UNSATISFIABLE = Lookup.new(:unsatisfiable)
      private_constant :MISS, :UNSATISFIABLE

      # @param max_bytes [Integer] about the size of all stored responses, with headers, keys and the objects that hold them
      # @param max_entry_bytes [Integer, nil] of one response; nil: an eighth of max_bytes
      # @param heuristic [Boolean] whether a response without a lifetime is fresh for a tenth of the time since its last change, at most a day:
      #   RFC 9111, section 4.2.2. The cache does not notice a change meanwhile
      # @raise [ConfigError]
      def initialize(max_bytes: 33_554_432, max_entry_bytes: nil, heuristic: false)
        @heuristic = heuristic
        @max_bytes = checked(:max_bytes, max_bytes)
        @max_entry_bytes = [checked(:max_entry_bytes, max_entry_bytes || (@max_bytes / 8)), @max_bytes].min
        @entries = EntryStore.new(@max_bytes)
      end

      # Looks a request up. The cache does not answer requests with validators or a Range of their own, or with no-store.
      # RFC 9111, section 4.
      #
      # @param method [String] in upper case
      # @param url [String]
      # @param headers [Array<Array(String, String)>] of the request
      # @param now [Float] seconds of the wall clock
      # @return [Lookup]
      def find(method:, url:, headers:, now:)
        request = CacheRequest.new(method, headers)
        match = matching(key(url), request).max_by { |entry| [entry.freshness.date, entry.received_at] } unless request.bypasses_cache?
        if match&.usable?(request, now)
          @entries.touch(match)
          return Lookup.new(:fresh, stored: CachedResponse.new(match, request: request, now: now))
        end
        return UNSATISFIABLE if request.directives.include?("only-if-cached")
        request.bypasses_cache? ? MISS : stale(@entries[key(url)], match, request, now)
      end

      # Takes a complete response. It removes the responses that this one outdates, whether it stores this one or not.
      # The response to a HEAD updates the stored response to a GET: RFC 9111, sections 3 and 4.3.5.
      #
      # @param method [String] in upper case
      # @param url [String]
      # @param request_headers [Array<Array(String, String)>]
      # @param status [Integer]
      # @param headers [Array<Array(String, String)>]
      # @param body [String] as callers get it
      # @param requested_at [Float] seconds of the wall clock
      # @param received_at [Float] seconds of the wall clock
      # @return [CachedResponse, nil] nil if the response must not be stored, is too large, or could never be used
      def store(method:, url:, request_headers:, status:, headers:, body:, requested_at:, received_at:)
        request = CacheRequest.new(method, request_headers)
        times = {requested_at: requested_at, received_at: received_at}
        return update_by_head(key(url), request, status, headers, times) if request.head?
        return unless request.get?
        entry = Entry.new(url: key(url), status: status, headers: headers, body: body, request: request, heuristic: @heuristic, **times)
        storable = storable?(entry, request)
        supersede(entry.url, request) if storable || request.supersedes?(status)
        return unless storable
        @entries.add(entry)
        CachedResponse.new(entry, request: request, now: received_at)
      end

      # Takes a 304 to a request with the validators of a {Lookup}. RFC 9111, sections 3.2 and 4.3.4.
      #
      # @param stored [CachedResponse] of the {Lookup}
      # @param headers [Array<Array(String, String)>] of the 304
      # @param requested_at [Float] seconds of the wall clock
      # @param received_at [Float] seconds of the wall clock
      # @return [CachedResponse, nil] the response, with the headers of the 304; nil if the request validated several responses and the 304 does not
      #   name one: repeat the request without validators
      def validated(stored, headers:, requested_at:, received_at:)
        entry = Validation.validated_entry(stored, headers) or return
        if Validation.agreeing?(entry, headers)
          times = {requested_at: requested_at, received_at: received_at}
          updated = entry.updated(headers, request: stored.request, **times)
          update(entry, updated, headers, stored.request, times) if @entries.include?(entry)
        end
        CachedResponse.new(updated || entry, request: stored.request, now: received_at, validated: true)
      end

      # Takes the response to an unsafe method. It removes what is stored for the URL, and for the URLs of the same origin that the response names.
      # RFC 9111, section 4.4.
      #
      # @param method [String] in upper case; a safe one has no effect
      # @param url [String]
      # @param status [Integer] an error has no effect
      # @param headers [Array<Array(String, String)>] of the response
      # @return [void]
      def invalidate(method:, url:, status:, headers:)
        Invalidation.urls(method: method, url: key(url), status: status, headers: headers).each { |outdated| @entries.remove_all(outdated) }
      end

      # @return [Integer] about the size of all stored responses
      def bytes = @entries.bytes

      # @return [Integer] number of stored responses
      def size = @entries.size

      # @return [void]
      def clear = @entries.clear

      # @return [String]
      def inspect = "#<#{self.class} #{size} responses, #{bytes} of #{@max_bytes} bytes>"

      private

      def checked(name, value)
        return value if value.is_a?(Integer) && !value.negative?
        raise ConfigError, "the cache's #{name} is #{value.inspect[0, 40]}: give a number of bytes, 0 or more"
      end

      def key(url)
        text = url.to_s
        text.include?("#") ? text[0, text.index("#")] : text
      end

      def matching(url, request) = @entries[url].select { |entry| entry.vary.matches?(request) }

      def supersede(url, request) = matching(url, request).each { |entry| @entries.remove(entry) }

      def storable?(entry, request) = entry.bytes <= @max_entry_bytes && entry.storable?(request)

      def stale(entries, match, request, now)
        fallback = CachedResponse.new(match, request: request, now: now) if match&.usable_on_error?(now)
        candidates = Validation.candidates(entries, match, request)
        return Lookup.new(:miss, fallback: fallback) if candidates.empty?
        @entries.touch(candidates.first)
        stored = CachedResponse.new(candidates.first, request: request, now: now, candidates: candidates)
        Lookup.new(:stale, stored: stored, validators: Validation.fields(candidates, match), fallback: fallback)
      end

      # A 304 updates all responses with its strong tag, also those for other requests: section 4.3.4. It restores no response that was removed meanwhile, and
      # adds nothing of one user to a response for others.
      def update(entry, updated, headers, request, times)
        twins = entry.strong? ? @entries[entry.url].select { |other| other.etag == entry.etag && other.vary.same_identity?(request) } : []
        supersede(entry.url, request)
        twins.each do |twin|
          next unless @entries.include?(twin) && twin.vary.like?(updated.vary)
          @entries.remove(twin)
          updated_twin = twin.updated(headers, **times)
          @entries.add(updated_twin) if storable?(updated_twin, request)
        end
        @entries.add(updated) if storable?(updated, request)
      end

      def update_by_head(url, request, status, headers, times)
        return if status != 200 || request.bypasses_cache?
        updated = matching(url, request).filter_map do |entry|
          @entries.remove(entry)
          entry.updated(headers, request: request, **times) if Validation.unchanged?(entry, headers)
        end
        stored = updated.select { |entry| storable?(entry, request) }.each { |entry| @entries.add(entry) }.last
        CachedResponse.new(stored, request: request, now: times[:received_at]) if stored
      end

      # The entries by URL. Above the limit the least recently used one goes.
      class EntryStore
        MAX_VARIANTS = 32 # of one URL
        NONE = [].freeze
        private_constant :MAX_VARIANTS, :NONE

        attr_reader :bytes

        def initialize(max_bytes)
          @max_bytes = max_bytes
          clear
        end

        def [](url) = @variants.fetch(url, NONE)

        def size = @entries.size

        def include?(entry) = @entries.key?(entry)

        def add(entry)
          remove(self[entry.url].first) while self[entry.url].size >= MAX_VARIANTS
          (@variants[entry.url] ||= []) << entry
          @entries[entry] = true
          @bytes += entry.bytes
          remove(@entries.first.first) while @bytes > @max_bytes
        end

        def remove(entry)
          return unless @entries.delete(entry)
          @bytes -= entry.bytes
          variants = @variants[entry.url]
          variants.delete_if { |other| other.equal?(entry) }
          @variants.delete(entry.url) if variants.empty?
        end

        def remove_all(url) = self[url].dup.each { |entry| remove(entry) }

        def touch(entry)
          return unless @entries.delete(entry)
          @entries[entry] = true
          variants = @variants[entry.url]
          variants.push(variants.delete_at(variants.index { |other| other.equal?(entry) }))
        end

        def clear
          @variants = {}
          @entries = {}.compare_by_identity
          @bytes = 0
        end
      end
      private_constant :EntryStore
    end
  end
end
