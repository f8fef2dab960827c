# frozen_string_literal: true

require_relative "format"

module Hikyaku
  module Log
    class Journal
      # What one turn has appended to one segment: MARK, whose contents are known when it is written, and records behind it.
      class Batch
        BLANK = ("\0".b * Format::MARK_BYTES).freeze
        private_constant :BLANK

        # @return [Segment]
        attr_reader :segment
        # @return [Integer] where it begins in the segment, in bytes
        attr_reader :offset
        # @return [Integer] of its newest record, or of the one before it
        attr_reader :last
        # @return [Array<Integer>] segments that it says are dropped
        attr_reader :drops

        # @param segment [Segment]
        # @param offset [Integer] bytes
        # @param last [Integer] position of the newest record before it
        def initialize(segment, offset, last)
          @segment = segment
          @offset = offset
          @first = last + 1
          @last = last
          @drops = []
          @bytes = "".b
          @ends = false
        end

        # @return [Boolean]
        def empty? = @bytes.empty?

        # @return [Boolean] whether END stands behind it
        def ends? = @ends

        # @return [Integer] where the next record would stand
        def tail = @offset + (@bytes.empty? ? Format::MARK_BYTES : @bytes.bytesize)

        # @param type [Integer]
        # @param flags [Integer]
        # @param body [String]
        # @return [Integer] where its body stands in the segment
        def append(type, flags, body)
          @bytes << BLANK if @bytes.empty?
          offset = @offset + @bytes.bytesize
          Format.record(@segment.seed, @last + 1, type, flags, body, @bytes)
          @last += 1 if type >= Format::TYPES.begin
          offset + Format::RECORD_BYTES
        end

        # @param numbers [Array<Integer>] of segments
        # @return [void]
        def drop(numbers)
          append(Format::DROPPED, 0, numbers.pack("Q<*"))
          @drops.concat(numbers)
        end

        # Nothing comes behind it in its segment but END.
        #
        # @return [void]
        def finish! = @ends = true

        # @param offset [Integer] of a body in the segment
        # @return [String, nil] its record, if it is here
        def record_at(offset)
          at = offset - Format::RECORD_BYTES - @offset
          @bytes.byteslice(at, Format::RECORD_BYTES + @bytes.unpack1("L<", offset: at)) if at >= Format::MARK_BYTES && at < @bytes.bytesize
        end

        # @param synced [Integer] the highest position known to be on the disk
        # @param now [Integer] milliseconds since 1970
        # @return [String] all of it, to be written at `offset`
        def to_bytes(synced, now)
          @bytes[0, Format::MARK_BYTES] = Format.mark(@segment.seed, @first, Format::MARK, synced, now) unless empty?
          @ends ? @bytes + Format.mark(@segment.seed, @last + 1, Format::ENDING, synced, now) : @bytes
        end
      end
    end
  end
end
