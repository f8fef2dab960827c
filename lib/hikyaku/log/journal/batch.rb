# frozen_string_literal: true

require_relative "format"

module Hikyaku
  module Log
    class Journal
      # What one turn has appended to one segment: MARK, whose contents are known when it is written, and records behind it.
      class Batch
        BLANK = ("\0".b * Format::MARK_BYTES).freeze
        private_constant :BLANK

        attr_reader :segment
        attr_reader :offset
        attr_reader :last
        attr_reader :drops

        def initialize(segment, offset, last)
          @segment = segment
          @offset = offset
          @first = last + 1
          @last = last
          @drops = []
          @bytes = "".b
          @ends = false
        end

        def empty? = @bytes.empty?

        def ends? = @ends

        def tail = @offset + (@bytes.empty? ? Format::MARK_BYTES : @bytes.bytesize)

        def append(type, flags, body)
          @bytes << BLANK if @bytes.empty?
          offset = @offset + @bytes.bytesize
          Format.record(@segment.seed, @last + 1, type, flags, body, @bytes)
          @last += 1 if type >= Format::TYPES.begin
          offset + Format::RECORD_BYTES
        end

        def drop(numbers)
          append(Format::DROPPED, 0, numbers.pack("Q<*"))
          @drops.concat(numbers)
        end

        # Nothing comes behind it in its segment but END.
        def finish! = @ends = true

        def record_at(offset)
          at = offset - Format::RECORD_BYTES - @offset
          @bytes.byteslice(at, Format::RECORD_BYTES + @bytes.unpack1("L<", offset: at)) if at >= Format::MARK_BYTES && at < @bytes.bytesize
        end

        def to_bytes(synced, now)
          @bytes[0, Format::MARK_BYTES] = Format.mark(@segment.seed, @first, Format::MARK, synced, now) unless empty?
          @ends ? @bytes + Format.mark(@segment.seed, @last + 1, Format::ENDING, synced, now) : @bytes
        end
      end
    end
  end
end
