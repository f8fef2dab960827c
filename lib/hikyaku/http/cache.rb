# frozen_string_literal: true

require_relative "../error"
require_relative "address"
require_relative "cache/entry"
require_relative "cache/found"
require_relative "cache/inquiry"
require_relative "cache/invalidation"
require_relative "cache/reuse"
require_relative "cache/shelf"
require_relative "cache/stored"
require_relative "cache/storing"
require_relative "cache/validation"

module Hikyaku
  module HTTP
    # A private cache in memory: RFC 9111. It does no I/O and has no clock; who uses it says what time it is, and lets one thread in at a time.
    #
    # URLs are those of {Address#url}; a fragment does not count. Names of header fields are in lower case. An answer that is not public is
    # given only to requests that say the same in every field that may name a user: Authorization, Cookie, X-API-Key and any other that is
    # not known to name none.
    #
    # @example
    #   cache = Hikyaku::HTTP::Cache.new(max_bytes: 8_388_608)
    #   cache.store(method: "GET", url: "http://example.com/", request_headers: [], status: 200, headers: [["cache-control", "max-age=60"]],
    #     body: "hello", requested_at: 0.0, received_at: 0.1)
    #   cache.find(method: "GET", url: "http://example.com/", headers: [], now: 30.0).fresh? # => true
    class Cache
      MISS = Found.new(:miss)
      UNSATISFIABLE = Found.new(:unsatisfiable)
      private_constant :MISS, :UNSATISFIABLE

      # @param max_bytes [Integer] of all that is stored, with headers, keys and the objects that hold them, about
      # @param max_entry_bytes [Integer, nil] of one response; nil: an eighth of max_bytes
      # @param heuristic [Boolean] whether an answer without a lifetime is used without asking for a tenth of the time since it was last
      #   changed, a day at most: RFC 9111, section 4.2.2. It is not told of a change meanwhile
      # @raise [ConfigError]
      def initialize(max_bytes: 33_554_432, max_entry_bytes: nil, heuristic: false)
        @heuristic = heuristic
        @max_bytes = checked(:max_bytes, max_bytes)
        @max_entry_bytes = [checked(:max_entry_bytes, max_entry_bytes || (@max_bytes / 8)), @max_bytes].min
        @shelf = Shelf.new(@max_bytes)
      end

      # What there is for a request. One with validators or a Range of its own, or with no-store, is not answered.
      # RFC 9111, section 4.
      #
      # @param method [String] in upper case
      # @param url [String]
      # @param headers [Array<Array(String, String)>] of the request
      # @param now [Float] seconds of the wall clock
      # @return [Found]
      def find(method:, url:, headers:, now:)
        inquiry = Inquiry.new(method, headers)
        own = matching(key(url), inquiry).max_by { |entry| [entry.freshness.date, entry.received_at] } unless inquiry.passes_by?
        if own && Reuse.allowed?(own, inquiry, now)
          @shelf.touch(own)
          return Found.new(:fresh, stored: Stored.new(own, inquiry: inquiry, now: now))
        end
        return UNSATISFIABLE if inquiry.directives.include?("only-if-cached")
        inquiry.passes_by? ? MISS : stale(@shelf[key(url)], own, inquiry, now)
      end

      # Takes a whole answer. What was stored for the request before, and is out of date with it, goes, whether this is kept or not.
      # The answer to a HEAD changes the stored answer to a GET: RFC 9111, sections 3 and 4.3.5.
      #
      # @param method [String] in upper case
      # @param url [String]
      # @param request_headers [Array<Array(String, String)>]
      # @param status [Integer]
      # @param headers [Array<Array(String, String)>]
      # @param body [String] as callers get it
      # @param requested_at [Float] seconds of the wall clock
      # @param received_at [Float] seconds of the wall clock
      # @return [Stored, nil] nil when it must not be stored, is too large, or would never be of use
      def store(method:, url:, request_headers:, status:, headers:, body:, requested_at:, received_at:)
        inquiry = Inquiry.new(method, request_headers)
        times = {requested_at: requested_at, received_at: received_at}
        return head_answered(key(url), inquiry, status, headers, times) if inquiry.head?
        return unless inquiry.get?
        entry = Entry.new(url: key(url), status: status, headers: headers, body: body, inquiry: inquiry, heuristic: @heuristic, **times)
        kept = keep?(entry, inquiry)
        supersede(entry.url, inquiry) if kept || Storing.superseding?(status, inquiry)
        return unless kept
        @shelf.add(entry)
        Stored.new(entry, inquiry: inquiry, now: received_at)
      end

      # Takes a 304 to a request that was sent with the validators of a {Found}. RFC 9111, sections 3.2 and 4.3.4.
      #
      # @param stored [Stored] of the {Found}
      # @param headers [Array<Array(String, String)>] of the 304
      # @param requested_at [Float] seconds of the wall clock
      # @param received_at [Float] seconds of the wall clock
      # @return [Stored, nil] the response, with the headers of the 304; nil where several were asked about and it does not say which
      #   it means: then one has to ask again without validators
      def validated(stored, headers:, requested_at:, received_at:)
        entry = Validation.meant(stored, headers) or return
        if Validation.agreeing?(entry, headers)
          times = {requested_at: requested_at, received_at: received_at}
          renewed = entry.updated(headers, inquiry: stored.inquiry, **times)
          renew(entry, renewed, headers, stored.inquiry, times) if @shelf.include?(entry)
        end
        Stored.new(renewed || entry, inquiry: stored.inquiry, now: received_at, validated: true)
      end

      # Takes the answer to a method that is not safe: what is stored for its URL goes, and what it names of the same origin.
      # RFC 9111, section 4.4.
      #
      # @param method [String] in upper case; nothing happens for a safe one
      # @param url [String]
      # @param status [Integer] nothing happens for an error
      # @param headers [Array<Array(String, String)>] of the answer
      # @return [void]
      def invalidate(method:, url:, status:, headers:)
        Invalidation.urls(method: method, url: key(url), status: status, headers: headers).each { |gone| @shelf.remove_all(gone) }
      end

      # @return [Integer] that are taken, about
      def bytes = @shelf.bytes

      # @return [Integer] stored responses
      def size = @shelf.size

      # @return [void]
      def clear = @shelf.clear

      # @return [String]
      def inspect = "#<#{self.class} #{size} responses, #{bytes} of #{@max_bytes} bytes>"

      private

      def checked(name, value)
        return value if value.is_a?(Integer) && !value.negative?
        raise ConfigError, "the cache's #{name} is #{value.inspect[0, 40]}; it is a number of bytes, 0 or more"
      end

      def key(url)
        text = url.to_s
        text.include?("#") ? text[0, text.index("#")] : text
      end

      def matching(url, inquiry) = @shelf[url].select { |entry| entry.variance.matches?(inquiry) }

      def supersede(url, inquiry) = matching(url, inquiry).each { |entry| @shelf.remove(entry) }

      def keep?(entry, inquiry) = entry.bytes <= @max_entry_bytes && Storing.allowed?(entry, inquiry)

      def stale(entries, own, inquiry, now)
        fallback = Stored.new(own, inquiry: inquiry, now: now) if own && Reuse.allowed_on_error?(own, now)
        asked = Validation.asked(entries, own, inquiry)
        return Found.new(:miss, fallback: fallback) if asked.empty?
        @shelf.touch(asked.first)
        stored = Stored.new(asked.first, inquiry: inquiry, now: now, asked: asked)
        Found.new(:stale, stored: stored, validators: Validation.fields(asked, own), fallback: fallback)
      end

      # Every response of that strong tag is renewed, those for other requests too: section 4.3.4. One that went meanwhile does not come back, and to what is for
      # others as well nothing is added that is of one user.
      def renew(entry, renewed, headers, inquiry, times)
        twins = entry.strong? ? @shelf[entry.url].select { |other| other.etag == entry.etag && other.variance.meant_for?(inquiry) } : []
        supersede(entry.url, inquiry)
        twins.each do |twin|
          next unless @shelf.include?(twin) && twin.variance.like?(renewed.variance)
          @shelf.remove(twin)
          updated = twin.updated(headers, **times)
          @shelf.add(updated) if keep?(updated, inquiry)
        end
        @shelf.add(renewed) if keep?(renewed, inquiry)
      end

      def head_answered(url, inquiry, status, headers, times)
        return if status != 200 || inquiry.passes_by?
        updated = matching(url, inquiry).filter_map do |entry|
          @shelf.remove(entry)
          entry.updated(headers, inquiry: inquiry, **times) if Validation.unchanged?(entry, headers)
        end
        kept = updated.select { |entry| keep?(entry, inquiry) }.each { |entry| @shelf.add(entry) }.last
        Stored.new(kept, inquiry: inquiry, now: times[:received_at]) if kept
      end
    end
  end
end
