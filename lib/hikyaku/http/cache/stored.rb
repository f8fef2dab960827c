# frozen_string_literal: true

require_relative "../response"
require_relative "directives"

module Hikyaku
  module HTTP
    class Cache
      # A stored response, as it is for one request at one time: a value.
      class Stored
        OLDEST = Directives::FOREVER
        EMPTY = "".b.freeze
        SET_COOKIE = "set-cookie"
        private_constant :OLDEST, :EMPTY, :SET_COOKIE

        # @return [Entry]
        # @api private
        attr_reader :entry
        # @return [Inquiry] the request
        # @api private
        attr_reader :inquiry
        # @return [Array<Entry>] what the server is asked about
        # @api private
        attr_reader :asked

        # @api private
        def initialize(entry, inquiry:, now:, asked: [entry], validated: false)
          @entry = entry
          @inquiry = inquiry
          @now = now
          @asked = asked
          @validated = validated
          freeze
        end

        # @return [String] without fragment
        def url = @entry.url

        # @return [Integer]
        def status = @entry.status

        # @return [Array<Array(String, String)>] names in lower case, and values, binary, as they are stored: without Age
        def headers = @entry.headers

        # @return [String] binary and frozen; for a HEAD empty
        def body = @inquiry.head? ? EMPTY : @entry.body

        # @return [String, nil] the entity tag
        def etag = @entry.etag

        # @param now [Float] seconds of the wall clock
        # @return [Float] seconds since the server made it, or said that it is still right: RFC 9111, section 4.2.3
        def age(now) = @entry.freshness.age(now)

        # The response that the caller gets, with its Age at the time it was found. Without validation it has no field
        # that no-cache="…" names (RFC 9111, section 5.2.2.4), nor a cookie: one that was set before may have been changed, or taken back, since.
        #
        # @return [Response]
        def response
          Response.new(status: status, headers: shown, body: body, url: url, from: @validated ? :validated : :cache)
        end

        # @return [String] without what may be secret
        def inspect = "#<#{self.class} #{status} #{url} #{@entry.body.bytesize} bytes>"

        private

        def shown
          hidden = @validated ? [] : [SET_COOKIE, *@entry.directives.fields("no-cache")]
          pairs = hidden.empty? ? headers : headers.reject { |field| hidden.include?(field.first) }
          [*pairs, ["age", age(@now).floor.clamp(0, OLDEST).to_s.freeze].freeze].freeze
        end
      end
    end
  end
end
