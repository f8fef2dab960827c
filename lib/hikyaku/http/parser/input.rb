# frozen_string_literal: true

require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # The bytes that have arrived and were not taken yet.
      class Input
        CR = "\r".ord
        private_constant :CR

        def initialize
          @bytes = String.new(encoding: Encoding::BINARY)
          @at = 0
          @looked = 0
        end

        def size = @bytes.bytesize - @at

        def empty? = size.zero?

        # What was taken is dropped once it is more than what is left: each byte is copied a few times at most.
        def <<(bytes)
          if @at > size
            @bytes = @bytes.byteslice(@at, size)
            @at = 0
          end
          @bytes << ((bytes.encoding == Encoding::BINARY) ? bytes : bytes.b)
        end

        def look = yield(@bytes, @at)

        # Takes what was looked at.
        def skip(count)
          @at += count
          @looked = 0
        end

        # Takes as many bytes, or all that there are.
        def take(count)
          taken = @bytes.byteslice(@at, [count, size].min)
          @at += taken.bytesize
          @looked = 0
          taken
        end

        # Takes a line whose end is there; what was looked through for it once is not looked through again.
        def line(longest:, long:, budget: Float::INFINITY, over: long, bare: false)
          window = [longest + 2, budget].min
          seen = [size, window].min
          stop = @bytes.index("\n", @at + @looked)
          if stop.nil? || stop >= @at + seen
            @looked = seen
            return if seen < window
            raise Malformed.new((longest + 2 <= budget) ? long : over)
          end
          whole = stop > @at && @bytes.getbyte(stop - 1) == CR
          raise Malformed.new(:line_end) unless whole || bare
          length = stop - @at - (whole ? 1 : 0)
          raise Malformed.new(long) if length > longest
          take(stop + 1 - @at).byteslice(0, length)
        end
      end
    end
  end
end
