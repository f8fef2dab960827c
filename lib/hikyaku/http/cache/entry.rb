# frozen_string_literal: true

require_relative "directives"
require_relative "fields"
require_relative "freshness"
require_relative "http_date"
require_relative "variance"

module Hikyaku
  module HTTP
    class Cache
      # A response that is kept: a value. What it is for whom, and when, is a {Stored}.
      #
      # @api private
      class Entry
        # With a weak tag or a strong one: RFC 9110, section 8.8.3.
        TAG = %r{\A(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"\z}n
        MAX_TAG_BYTES = 512
        OVERHEAD_BYTES = 1000 # of the objects that make it up
        FIELD_BYTES = 120 # of the objects that hold one
        private_constant :TAG, :MAX_TAG_BYTES, :OVERHEAD_BYTES, :FIELD_BYTES

        # @return [String] without fragment
        attr_reader :url
        # @return [Integer]
        attr_reader :status
        # @return [Array<Array(String, String)>] binary, with a Date and without Age
        attr_reader :headers
        # @return [String] binary
        attr_reader :body
        # @return [Directives]
        attr_reader :directives
        # @return [Freshness]
        attr_reader :freshness
        # @return [Variance, nil] nil where it answers no other request
        attr_reader :variance
        # @return [String, nil] the entity tag, where it is one
        attr_reader :etag
        # @return [String, nil] as it was received, where it is a date
        attr_reader :last_modified
        # @return [Float] seconds of the wall clock
        attr_reader :received_at
        # @return [Integer] that it takes in memory, about
        attr_reader :bytes

        # @param url [String]
        # @param status [Integer]
        # @param headers [Array<Array(String, String)>] as received
        # @param body [String]
        # @param requested_at [Float] seconds of the wall clock
        # @param received_at [Float] seconds of the wall clock
        # @param inquiry [Inquiry, nil] that it came for
        # @param variance [Variance, nil] in place of the inquiry
        # @param heuristic [Boolean] see {Freshness#initialize}
        def initialize(url:, status:, headers:, body:, requested_at:, received_at:, inquiry: nil, variance: nil, heuristic: false)
          @url = -url
          @status = status
          @body = (body.frozen? && body.encoding == Encoding::BINARY) ? body : body.b.freeze
          @received_at = received_at
          @directives = Directives.parse(Fields.values(headers, "cache-control"))
          kept = Fields.end_to_end(headers)
          @heuristic = heuristic
          @freshness = Freshness.new(status: status, headers: kept, directives: @directives, requested_at: requested_at, received_at: received_at, heuristic: heuristic)
          @headers = complete(kept)
          @variance = inquiry ? Variance.of(@headers, inquiry) : variance
          @etag = tag(Fields.single(@headers, "etag"))
          @last_modified = modified(Fields.single(@headers, "last-modified"))
          @bytes = size
          freeze
        end

        # @param received [Array<Array(String, String)>] of a 304, or of the answer to a HEAD
        # @param requested_at [Float] seconds of the wall clock
        # @param received_at [Float] seconds of the wall clock
        # @param inquiry [Inquiry, nil] that they came for; nil where it was another than that of this entry
        # @return [Entry] with these: RFC 9111, section 3.2
        def updated(received, requested_at:, received_at:, inquiry: nil)
          self.class.new(url: @url, status: @status, headers: Fields.updated(@headers, received), body: @body,
            requested_at: requested_at, received_at: received_at, inquiry: inquiry, variance: @variance, heuristic: @heuristic)
        end

        # @param now [Float] seconds of the wall clock
        # @return [Float] seconds that it is still fresh; less than 0: that it is stale
        def left(now) = @freshness.lifetime - @freshness.age(now)

        # @return [Boolean] whether its tag stands for these very bytes
        def strong? = !@etag.nil? && @etag.start_with?('"')

        # @return [Boolean] whether a server can be asked whether it is still right
        def validators? = @status.between?(200, 299) && !(@etag || @last_modified).nil?

        # @return [String] without what may be secret
        def inspect = "#<#{self.class} #{@status} #{@url} #{@body.bytesize} bytes>"

        private

        # RFC 9110, section 6.6.1: who keeps a response notes when it came.
        def complete(headers)
          pairs = headers.reject { |field| field.first == "age" }.map { |name, value| [-name, -value].freeze }
          pairs << ["date".b.freeze, HttpDate.write(@received_at)].freeze if pairs.none? { |name, _| name == "date" }
          pairs.freeze
        end

        def tag(value) = (value if value && value.bytesize <= MAX_TAG_BYTES && value.match?(TAG))

        def modified(value) = (value if HttpDate.parse(value, now: @received_at))

        def size
          fields = @headers.sum { |name, value| name.bytesize + value.bytesize + FIELD_BYTES }
          OVERHEAD_BYTES + @url.bytesize + @body.bytesize + fields + (@variance ? @variance.bytes : 0)
        end
      end
    end
  end
end
