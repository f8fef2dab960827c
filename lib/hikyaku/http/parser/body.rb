# frozen_string_literal: true

require_relative "field"
require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # Takes one body out of the bytes that arrive.
      #
      #     data ──────────────────────────────────────► ended      Content-Length, until close
      #
      #     size ──► data ──► data_end ──► size …
      #       └─ 0 ──► trailer ──► trailer … ──────────► ended      chunked
      #
      # RFC 9112, sections 6 and 7.
      class Body
        # 16 hexadecimal digits make every number below 2**64.
        SIZE = /\A[0-9A-Fa-f]{1,16}(?=;|\z)/n
        QUOTED = /"(?:[^"\\\x00-\x08\x0A-\x1F\x7F]|\\[^\x00-\x08\x0A-\x1F\x7F])*+"/n
        # Without the white space that the grammar tolerates.
        EXTENSIONS = /\A(?:;#{Field::TOKEN}(?:=(?:#{Field::TOKEN}|#{QUOTED}))?)*+\z/n
        # RFC 9110, section 6.5.1.
        FORBIDDEN_TRAILERS = /\A(?:content-length|transfer-encoding)\z/i
        private_constant :SIZE, :QUOTED, :EXTENSIONS, :FORBIDDEN_TRAILERS

        attr_reader :left

        def initialize(framing, length, input, limits)
          @framing = framing
          @input = input
          @limits = limits
          @left = length || 0
          @trailer_bytes = 0
          @state = first_state
        end

        def until_close? = @framing == :until_close

        def next
          until @state == :ended
            return if @input.empty?
            return data if @state == :data
            send(@state) or return
          end
          :end
        end

        private

        def first_state
          case @framing
          when :none then :ended
          when :length then @left.zero? ? :ended : :data
          when :chunked then :size
          else :data
          end
        end

        def data
          return @input.take(@input.size) if until_close?
          piece = @input.take(@left)
          @left -= piece.bytesize
          @state = (@framing == :chunked) ? :data_end : :ended if @left.zero?
          piece
        end

        def size
          line = @input.line(longest: @limits.chunk_line_bytes, long: :chunk_line_too_long) or return
          digits = line[SIZE] or raise Malformed.new(:chunk_size)
          raise Malformed.new(:chunk_extension) unless line.byteslice(digits.bytesize, line.bytesize).match?(EXTENSIONS)
          @left = digits.to_i(16)
          @state = @left.zero? ? :trailer : :data
        end

        def data_end
          return if @input.size < 2
          raise Malformed.new(:chunk_end) unless @input.take(2) == "\r\n"
          @state = :size
        end

        # Validated and dropped.
        def trailer
          line = @input.line(longest: @limits.line_bytes, long: :line_too_long,
            budget: @limits.trailer_bytes - @trailer_bytes, over: :trailers_too_large) or return
          @trailer_bytes += line.bytesize + 2
          return @state = :ended if line.empty?
          name, _ = Field.parse(line)
          raise Malformed.new(:trailer_forbidden) if name.match?(FORBIDDEN_TRAILERS)
          @state
        end
      end
    end
  end
end
