# frozen_string_literal: true

require_relative "errors"
require_relative "format"
require_relative "record"

module Hikyaku
  module Log
    class Journal
      # Reading a record again, from memory while it was not written, or from its file.
      module Rereading
        # Bytes that are read at once, to find out how many there are.
        AHEAD = 4096
        private_constant :AHEAD

        # The owner's thread only.
        #
        # @param place [Integer] what `place` said after it was appended, or Record#place
        # @return [Record]
        # @raise [Corrupt] it is not what was written
        # @raise [ArgumentError] its segment is gone
        # @raise [Unread] there are too many open files: it can be tried again
        # @raise [Failed]
        def reread(place)
          number = place >> 32
          offset = place & 0xffffffff
          segment = @lock.synchronize { @segments[number] } or raise ArgumentError, "segment #{number} is not there any more"
          bytes = from_memory(segment, offset) || from_file(segment, offset)
          position, type, flags = bytes.unpack("x8Q<CC")
          Record.new(position, type, flags, bytes.byteslice(Format::RECORD_BYTES..), place)
        end

        private

        def from_memory(segment, offset)
          [*@queue, @batch].each do |batch|
            next unless batch.segment.equal?(segment)
            record = batch.record_at(offset)
            return record if record
          end
          nil
        end

        def from_file(segment, offset)
          at = offset - Format::RECORD_BYTES
          guarded("read", segment.name) do
            bytes = read_at(segment, at, AHEAD)
            length, _, inverse = bytes.unpack("L<L<x12L<")
            size = Format::RECORD_BYTES + length.to_i
            damaged(segment, at) unless inverse && length ^ inverse == 0xffffffff && at + size <= segment.size
            bytes << read_at(segment, at + bytes.bytesize, size - bytes.bytesize) if size > bytes.bytesize
            bytes = bytes.byteslice(0, size)
            damaged(segment, at) unless bytes.bytesize == size && Format.verify?(bytes, segment.seed)
            bytes
          end
        end

        def damaged(segment, at) = raise(Corrupt.new(@path, segment.name, at, "a record does not verify any more"))

        def read_at(segment, at, size)
          @files.read(reading(segment), size, at)
        end

        # A file of its own, apart from the one that is written to, which another thread may close.
        def reading(segment)
          return @reading.last if @reading&.first == segment.number
          forget_reading
          (@reading = [segment.number, @files.open(segment.name)]).last
        rescue Errno::EMFILE, Errno::ENFILE => error
          raise Unread, "cannot open #{File.join(@path, segment.name)}: #{error.message}; allow more open files"
        end

        def forget_reading
          @files.close(@reading.last) if @reading
          @reading = nil
        end
      end
    end
  end
end
