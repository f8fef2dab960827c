# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Parser
      # How much is read before it is refused.
      class Limits
        attr_reader :leading_lines, :method_bytes, :target_bytes, :line_bytes, :head_bytes, :headers, :chunk_line_bytes, :trailer_bytes

        def initialize(max_leading_lines: 4, max_method_bytes: 32, max_target_bytes: 16_384, max_line_bytes: 32_768, max_head_bytes: 65_536,
          max_headers: 100, max_chunk_line_bytes: 256, max_trailer_bytes: 8_192)
          @leading_lines = max_leading_lines
          @method_bytes = max_method_bytes
          @target_bytes = max_target_bytes
          @line_bytes = max_line_bytes
          @head_bytes = max_head_bytes
          @headers = max_headers
          @chunk_line_bytes = max_chunk_line_bytes
          @trailer_bytes = max_trailer_bytes
          freeze
        end

        # Of a request line; a status line may be as long.
        def start_line_bytes = @method_bytes + @target_bytes + " HTTP/1.1 ".bytesize
      end
    end
  end
end
