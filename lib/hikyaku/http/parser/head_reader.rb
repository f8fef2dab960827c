# frozen_string_literal: true

require_relative "field"
require_relative "malformed"
require_relative "request"
require_relative "request_line"
require_relative "response"
require_relative "status_line"

module Hikyaku
  module HTTP
    class Parser
      # Reads heads line by line: a malformed start line is told at once, malformed fields when the head is whole.
      class HeadReader
        def initialize(kind, input, limits)
          @kind = kind
          @input = input
          @limits = limits
          @start_lines = {request: RequestLine, response: StatusLine}.fetch(kind) { raise ArgumentError, "there are requests and responses, no #{kind.inspect}" }
          @lenient = kind == :response # RFC 9112, sections 2.2 and 5.2
          @leading_lines = (kind == :request) ? limits.leading_lines : 0
          clear
        end

        # Whether something of a head was taken that is not whole yet.
        def begun? = @start_line || @empty_lines > 0

        def read(request_method)
          line, headers, bytes = lines
          return unless line
          (@kind == :request) ? Request.new(line, headers) : Response.new(line, headers, bytes, request_method: request_method)
        end

        private

        # The start line, names and values, and how many bytes these were.
        def lines
          return if @input.empty? && !@start_line
          while (line = next_line)
            if @start_line
              return whole if line.empty?
              add(line)
            elsif line.empty?
              skip
            else
              @start_line = @start_lines.parse(line, @limits)
            end
          end
        end

        def clear
          @start_line = nil
          @lines = []
          @folds = {}
          @bytes = @empty_lines = 0
        end

        def next_line
          longest, long = @start_line ? [@limits.line_bytes, :line_too_long] : [@limits.start_line_bytes, :target_too_long]
          before = @input.size
          line = @input.line(longest: longest, long: long, budget: @limits.head_bytes - @bytes, over: :head_too_large, bare: @lenient)
          @bytes += before - @input.size
          line
        end

        def add(line)
          return @lines << line unless @lenient && @lines.any? && Field.folded?(line)
          (@folds[@lines.size - 1] ||= []) << line
        end

        # RFC 9112, section 2.2: some clients send an empty line after a body.
        def skip
          @empty_lines += 1
          @bytes = 0
          raise Malformed.new(:start_line) if @empty_lines > @leading_lines
        end

        def whole
          headers = @lines.each_with_index.map do |line, index|
            raise Malformed.new(:too_many_headers) if index == @limits.headers
            field = Field.parse(line)
            @folds.key?(index) ? Field.unfold(*field, @folds[index], @limits.line_bytes) : field
          end
          [@start_line, headers.freeze, @bytes].tap { clear }
        end
      end
    end
  end
end
