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
      class Entry
        # With a weak tag or a strong one: RFC 9110, section 8.8.3.
        TAG = %r{\A(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"\z}n
        MAX_TAG_BYTES = 512
        OVERHEAD_BYTES = 1000 # of the objects that make it up
        FIELD_BYTES = 120 # of the objects that hold one
        private_constant :TAG, :MAX_TAG_BYTES, :OVERHEAD_BYTES, :FIELD_BYTES

        attr_reader :url
        attr_reader :status
        attr_reader :headers
        attr_reader :body
        attr_reader :directives
        attr_reader :freshness
        attr_reader :variance
        attr_reader :etag
        attr_reader :last_modified
        attr_reader :received_at
        attr_reader :bytes

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

        def updated(received, requested_at:, received_at:, inquiry: nil)
          self.class.new(url: @url, status: @status, headers: Fields.updated(@headers, received), body: @body,
            requested_at: requested_at, received_at: received_at, inquiry: inquiry, variance: @variance, heuristic: @heuristic)
        end

        def left(now) = @freshness.lifetime - @freshness.age(now)

        def strong? = !@etag.nil? && @etag.start_with?('"')

        def validators? = @status.between?(200, 299) && !(@etag || @last_modified).nil?

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
