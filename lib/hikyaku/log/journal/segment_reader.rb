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
        # Bytes that are searched at once for what may be a record, at first and at most: it may be near, or far.
        SEARCHED_FIRST = 256
        SEARCHED = 64 * 1024
        # Segments' worth of bytes that are verified to find what is whole behind the end. What stood in the segment before takes
        # two at most; bodies that are made of heads, each of a long record, take no more than that.
        SEARCH_SEGMENTS = 4
        # What a MARK, END or CLOSE has from its flags on.
        MARK_TRACE = "\0\0\0\xEF\xFF\xFF\xFF".b.freeze
        # What does not count behind something that does not verify.
        NOT_BEHIND = [Format::DROPPED, Format::ENDING, Format::CLOSE].freeze
        private_constant :WINDOW, :SEARCHED_FIRST, :SEARCHED, :SEARCH_SEGMENTS, :MARK_TRACE, :NOT_BEHIND

        # Bytes between two records in which nothing verifies: `to` is the offset of the second. `first` to `last` are the positions
        # that are missing there; `last` is below `first` when none is. `recorded`: a SKIP says so in the segment.
        Hole = Struct.new(:from, :to, :first, :last, :recorded) do
          def missing = last - first + 1
        end

        attr_reader :number
        attr_reader :header
        attr_reader :size
        attr_reader :offset
        attr_reader :position
        attr_reader :ending
        attr_reader :synced
        attr_reader :dropped

        attr_reader :holes

        def initialize(files, number, reading = nil)
          @files = files
          @number = number
          @reading = reading
          @bridged = {}
          @size = files.size(file)
          close
          @header = Format.parse_header(bytes(0, Format::HEADER_BYTES))
          rewind
        end

        def name = Format.segment_name(number)

        # Yields each record that verifies, the journal's own too.
        def each(verify: true, upto: limit)
          rewind
          read(verify, upto) { |record| yield record if block_given? }
          self
        end

        # Goes on behind what does not verify, as long as there are records: only where nothing says that what is missing was synced.
        # DROPPED and END there are not read: what they rely on may be missing.
        def bridge
          while @header && @ending.nil? && (to, position = behind)
            @bridged[@offset] = Hole.new(@offset, to, @position, position - 1, false)
            read(true, limit, bridging: true) { |whole| yield whole if block_given? }
          end
        end

        def skip(hole) = Format.skip(seed, hole.last + 1, bytes(hole.from, hole.to - hole.from))

        # Looks for what says that something was synced behind the end, at every multiple of 8.
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

        def record_at(offset, due: nil, verify: true)
          at = look_at(offset, Format::RECORD_BYTES)
          length, checksum, position, type, flags, zero, inverse = @window.unpack("L<L<Q<CCS<L<", offset: at)
          return unless inverse && length ^ inverse == 0xffffffff && zero == 0 && offset + Format::RECORD_BYTES + length <= limit
          return if due && ((type == Format::SKIP) ? position < due : position != due)
          return unless Format::TYPES.include?(type) || own?(type, length)
          at = look_at(offset, Format::RECORD_BYTES + length)
          return if verify && CRC32C.update(seed, @window.byteslice(at + 8, Format::RECORD_BYTES - 8 + length)) != checksum
          Record.new(position, type, flags, @window.byteslice(at + Format::RECORD_BYTES, length), number << 32 | (offset + Format::RECORD_BYTES))
        end

        # Goes by a header that does not verify: the checksums of the records say whether its salt is right.
        def trust_header!
          fields = bytes(0, Format::HEADER_BYTES).ljust(Format::HEADER_BYTES, "\0").unpack("x8a16Q<Q<Q<Q<L<")
          @header = Format::Header.new(*fields)
          @header.size = @size
          @trusted = true
        end

        def trusted? = !!@trusted

        def next_candidate(offset)
          searched = SEARCHED_FIRST
          while offset < limit
            words = bytes(offset, [searched, limit - offset].min).unpack("L<*")
            searched = [4 * searched, SEARCHED].min
            0.step(words.size - 6, 2) { |i| return offset + 4 * i if words[i] ^ words[i + 5] == 0xffffffff }
            offset += [4 * words.size - 24 + 8, 8].max / 8 * 8
          end
          offset
        end

        def goes_on? = !!(ending && record_at(@offset))

        def limit = [@size, @header ? @header.size : 0].min

        def sync = @files.sync(file)

        # Gives back the file and the window; whoever reads on opens it again. There may be thousands of segments.
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
          @holes = []
        end

        def read(verify, upto, bridging: false)
          while @ending.nil? && @offset < upto
            if (hole = @bridged[@offset])
              pass(hole)
            elsif (record = @header && record_at(@offset, due: @position, verify: verify)) && !(bridging && NOT_BEHIND.include?(record.type))
              note(record)
              yield record
            else
              return
            end
          end
        end

        def pass(hole)
          @holes << hole
          @offset = hole.to
          @position = hole.last + 1
        end

        # Where the records go on behind what is not read: at the first of the log that verifies, or behind what does not count.
        def behind
          record = record_at(@offset, due: @position)
          return [@offset + Format.space(record.body.bytesize), record.position] if record
          at = next_candidate(@offset + Format::RECORD_BYTES)
          while at < limit
            record = record_at(at) if worth_verifying?(at)
            return [at, record.position] if record
            at = next_candidate(at + 8)
          end
        end

        def worth_verifying?(offset)
          length, position, type = bytes(offset, Format::RECORD_BYTES).unpack("L<x4Q<C")
          @allowance ||= SEARCH_SEGMENTS * limit
          return false unless type && position >= @position && type >= Format::TYPES.first && length <= [@allowance, limit - offset].min
          @allowance -= length
          true
        end

        def seed = @seed ||= Format.seed(@header.salt)

        def own?(type, length)
          [Format::DROPPED, Format::SKIP].include?(type) ? length % 8 == 0 : length == 16 && type.between?(Format::MARK, Format::CLOSE)
        end

        def note(record)
          from = @offset
          @offset += Format.space(record.body.bytesize)
          case record.type
          when Format::SKIP then pass(Hole.new(from, @offset, @position, record.position - 1, true))
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
        def look_at(offset, size)
          if offset < @window_at || offset + size > @window_at + @window.bytesize
            @window = read_bytes(offset, [size, WINDOW].max)
            @window_at = offset
          end
          offset - @window_at
        end

        def read_bytes(offset, size)
          got = "".b
          while got.bytesize < size
            piece = @files.read(file, size - got.bytesize, offset + got.bytesize)
            break if piece.empty?
            got << piece
          end
          @reading&.read(got.bytesize, 0)
          got
        end
      end
    end
  end
end
