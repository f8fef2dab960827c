# frozen_string_literal: true

require_relative "malformed"
require_relative "response"

module Hikyaku
  module HTTP
    class Parser
      # Reads heads of responses as {HeadReader} does, by the parser of the engine in C: `hikyaku/native` brings `_limit` and `_read`.
      class NativeHeadReader
        # So many fields have room on the stack, or nearly.
        MOST_HEADERS = 1_000
        MOST_BYTES = 2**40
        private_constant :MOST_HEADERS, :MOST_BYTES

        def self.there? = private_method_defined?(:_read)

        def self.keeps?(limits) = limits.headers <= MOST_HEADERS

        def initialize(input, limits)
          @input = input
          bytes = [limits.method_bytes, limits.target_bytes, limits.line_bytes, limits.head_bytes].map { |limit| [limit, MOST_BYTES].min }
          _limit(*bytes, limits.headers)
        end

        # Nothing is taken before the head is whole.
        def begun? = false

        def read(request_method)
          return if @input.empty?
          found = @input.look { |bytes, at| _read(bytes, at, request_method) } or return
          raise Malformed.new(found) if found.is_a?(Symbol)
          response = Response.told(found)
          @input.skip(response.bytes)
          response
        end
      end
    end
  end
end
