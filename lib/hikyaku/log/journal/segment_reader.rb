# frozen_string_literal: true

require_relative "../crc32c"
require_relative "format"
require_relative "record"

module Hikyaku
  module Log
    class Journal
      # Reads a segment, record by record, up to the first that does not verify: docs/journal.md, "Opening: torn or corrupt". It
      # holds a window of the file, whatever the size of the segment.
      class SegmentReader
        WINDOW = 1024 * 1024
        # Bytes that are searched at once for what may be a record.
        SEARCHED = 64 * 1024
        # What a MARK, END or CLOSE has from its flags on.
        MARK_TRACE = "\0\0\0\xEF\xFF\xFF\xFF".b.freeze
        private_constant :WINDOW, :SEARCHED, :MARK_TRACE

        # @return [Integer] by the name of the file
        attr_reader :number
        # @return [Format::Header, nil] nil when it does not verify
        attr_reader :header
        # @return [Integer] of the file, in bytes
        attr_reader :size
        # @return [Integer] where the records end, or the first stands that does not verify
        attr_reader :offset
        # @return [Integer] of the record that is due there
        attr_reader :position
        # @return [Integer, nil] Format::ENDING or Format::CLOSE; nil: it has no end
        attr_reader :ending
        # @return [Integer] the highest position that the segment says was synced
        attr_reader :synced
        # @return [Array<Integer>] numbers that the segment says were dropped
        attr_reader :dropped

        # @param files [Files]
        # @param number [Integer]
        def initialize(files, number)
          @files = files
          @number = number
          @size = files.size(file)
          close
          @header = Format.parse_header(bytes(0, Format::HEADER_BYTES))
          rewind
        end

        # @return [String] of the file
        def name = Format.segment_name(number)

        # Yields each record that verifies, the journal's own too.
        #
        # @param verify [Boolean] false: it was read before, up to `upto`
        # @param upto [Integer] an offset
        # @yieldparam record [Record]
        # @return [self]
        def each(verify: true, upto: limit)
          rewind
          while @header && @ending.nil? && @offset < upto && (record = record_at(@offset, due: @position, verify: verify))
            note(record)
            yield record if block_given?
          end
          self
        end

        # Looks for what says that something was synced behind the end, at every multiple of 8.
        #
        # @return [Integer] the highest position said there, or before
        def look_behind
          return @synced unless @header
          at = @offset
          while at < limit
            chunk = bytes(at, [WINDOW, limit - at].min)
            found = -1
            while (found = chunk.index(MARK_TRACE, found + 1))
              start = at + found - 17
              note_mark(start) if start % 8 == 0 && start >= @offset
            end
            at += [chunk.bytesize - 32, 8].max
          end
          @synced
        end

        # @param offset [Integer] of a record, or of anything
        # @param due [Integer, nil] its position; nil: any
        # @param verify [Boolean]
        # @return [Record, nil] nil when it does not verify
        def record_at(offset, due: nil, verify: true)
          at = look_at(offset, Format::RECORD_BYTES)
          length, checksum, position, type, flags, zero, inverse = @window.unpack("L<L<Q<CCS<L<", offset: at)
          return unless inverse && length ^ inverse == 0xffffffff && zero == 0 && offset + Format::RECORD_BYTES + length <= limit
          return if due && position != due
          return unless Format::TYPES.include?(type) || own?(type, length)
          at = look_at(offset, Format::RECORD_BYTES + length)
          return if verify && CRC32C.update(seed, @window.byteslice(at + 8, Format::RECORD_BYTES - 8 + length)) != checksum
          Record.new(position, type, flags, @window.byteslice(at + Format::RECORD_BYTES, length), number << 32 | (offset + Format::RECORD_BYTES))
        end

        # Goes by a header that does not verify: the checksums of the records say whether its salt is right.
        #
        # @return [void]
        def trust_header!
          fields = bytes(0, Format::HEADER_BYTES).ljust(Format::HEADER_BYTES, "\0").unpack("x8a16Q<Q<Q<Q<L<")
          @header = Format::Header.new(*fields)
          @header.size = @size
          @trusted = true
        end

        # @return [Boolean] whether the header is only believed
        def trusted? = !!@trusted

        # @param offset [Integer] a multiple of 8
        # @return [Integer] where the next record may stand, from there on
        def next_candidate(offset)
          while offset < limit
            words = bytes(offset, [SEARCHED, limit - offset].min).unpack("L<*")
            0.step(words.size - 6, 2) { |i| return offset + 4 * i if words[i] ^ words[i + 5] == 0xffffffff }
            offset += [4 * words.size - 24 + 8, 8].max / 8 * 8
          end
          offset
        end

        # @return [Boolean] whether a record stands right behind CLOSE or END
        def goes_on? = !!(ending && record_at(@offset))

        # @return [Integer] bytes of the segment that can be read
        def limit = [@size, @header ? @header.size : 0].min

        # @return [void]
        def sync = @files.sync(file)

        # Gives back the file and the window; whoever reads on opens it again. There may be thousands of segments.
        #
        # @return [void]
        def close
          @files.close(@file) if @file
          @file = nil
          @window = "".b
          @window_at = 0
        end

        private

        def file = @file ||= @files.open(name)

        def rewind
          @offset = Format::HEADER_BYTES
          @position = @header ? @header.first : 0
          @ending = nil
          @synced = 0
          @dropped = []
        end

        def seed = @seed ||= Format.seed(@header.salt)

        def own?(type, length)
          (type == Format::DROPPED) ? length % 8 == 0 : length == 16 && type.between?(Format::MARK, Format::CLOSE)
        end

        def note(record)
          @offset += Format.space(record.body.bytesize)
          case record.type
          when Format::DROPPED then @dropped.concat(record.body.unpack("Q<*").select { |other| other < number })
          when Format::MARK, Format::ENDING, Format::CLOSE
            @synced = [@synced, record.body.unpack1("Q<")].max
            @ending = record.type unless record.type == Format::MARK
          else @position += 1
          end
        end

        def note_mark(offset)
          record = record_at(offset)
          return unless record && record.type <= Format::CLOSE && record.position >= @position
          @synced = [@synced, record.body.unpack1("Q<")].max
        end

        # Fewer than `size` at the end of the file.
        def bytes(offset, size)
          at = look_at(offset, size)
          @window.byteslice(at, size)
        end

        # Brings these bytes into the window, as far as there are so many.
        #
        # @return [Integer] where they begin in it
        def look_at(offset, size)
          if offset < @window_at || offset + size > @window_at + @window.bytesize
            @window = read(offset, [size, WINDOW].max)
            @window_at = offset
          end
          offset - @window_at
        end

        def read(offset, size)
          got = "".b
          while got.bytesize < size
            piece = @files.read(file, size - got.bytesize, offset + got.bytesize)
            return got if piece.empty?
            got << piece
          end
          got
        end
      end
    end
  end
end
