# frozen_string_literal: true

module Hikyaku
  module Log
    # Records one behind the other. Positions are dense and rise from 1.
    #
    #     evicted …  | first … head |  next
    #                 └─ retained ─┘
    #
    # A record is bytes; they are copied into blocks, which are used again when the records in them have gone. So a million
    # records are no million objects, which Ruby's garbage collection would walk through, and would keep room for twice; and the
    # memory is that of the bytes, however small or large they are and whatever else comes and goes between them.
    #
    #     blocks   [a a a a b b c c c|c c d d d d e e e|e f f f · · · · ·]
    #     starts    a       b   c         d       e       f
    #
    # Not thread-safe: the engine that owns it is.
    class Ring
      attr_reader :first
      attr_reader :head
      attr_reader :bytes

      # Bytes of a block: with what the allocator adds, some whole pages.
      BLOCK = 256 * 1024 - 64
      # Bytes that a position without a record costs.
      VOID = 8
      private_constant :BLOCK, :VOID

      def initialize(capacity:, overhead: 0)
        @capacity = capacity
        @overhead = overhead
        @blocks = []
        @spare = []
        @starts = []
        @evicted_blocks = 0
        @tail = 0
        @first = 1
        @head = 0
        @bytes = 0
      end

      # Appends a record. Amortised O(its bytes).
      def append(*parts)
        @starts << @tail
        @bytes += @overhead
        parts.each { |part| write(part) }
        @head += 1
      end

      # Evicts the oldest record.
      def shift
        size = size_of(@starts.shift, @starts.first || @tail)
        @bytes -= size.zero? ? VOID : size + @overhead
        @first += 1
        give_back
      end

      # Evicts what stands before a position.
      def keep_from(position)
        shift while @first < position && @first <= @head
      end

      # Goes on at a position: nothing before it is retained.
      def go_on_at(position)
        return if position == @head + 1
        keep_from(@head + 1)
        @first = position
        @head = position - 1
      end

      # Goes on at a position: there is no record at those between, but what stands before is retained.
      def leave_out_until(position)
        void = position - @head - 1
        @starts.concat(Array.new(void, @tail))
        @bytes += void * VOID
        @head += void
      end

      def [](position)
        return if position < @first || position > @head
        index = position - @first
        start = @starts[index]
        size = size_of(start, @starts[index + 1] || @tail)
        read(start, size) if size > 0
      end

      def size = @starts.size

      def inspect = "#<#{self.class} #{@first}..#{@head}>"

      private

      def size_of(start, stop) = stop - start

      def write(bytes)
        written = 0
        while (rest = bytes.bytesize - written) > 0
          place = @tail % BLOCK
          @blocks << (@spare.pop || "\0".b * BLOCK) if place.zero?
          length = [BLOCK - place, rest].min
          @blocks.last[place, length] = (length == bytes.bytesize) ? bytes : bytes.byteslice(written, length)
          @tail += length
          @bytes += length
          written += length
        end
      end

      # A slice could share the block's memory, and make the next write copy it: unpack never does.
      def read(start, size)
        number, place = start.divmod(BLOCK)
        number -= @evicted_blocks
        return @blocks[number].unpack1("a#{size}", offset: place) if place + size <= BLOCK
        bytes = String.new(capacity: size, encoding: Encoding::BINARY)
        while bytes.bytesize < size
          bytes << @blocks[number].unpack1("a#{[BLOCK - place, size - bytes.bytesize].min}", offset: place)
          number += 1
          place = 0
        end
        bytes
      end

      def give_back
        oldest = (@starts.first || @tail) / BLOCK
        while @evicted_blocks < oldest
          block = @blocks.shift
          @spare << block if (@blocks.size + @spare.size) * BLOCK <= @capacity
          @evicted_blocks += 1
        end
      end
    end
  end
end
