# frozen_string_literal: true

require_relative "errors"
require_relative "format"
require_relative "record"

module Hikyaku
  module Log
    class Journal
      # Reads a record again, by its place: from a batch that was not written yet, or from the file of its segment.
      class RecordReader
        # Bytes that are read at once, to find out how many there are.
        FIRST_READ = 4096
        private_constant :FIRST_READ

        def initialize(files)
          @files = files
        end

        # `offset` is that of the record's body. Raises Corrupt, Unread and what the system raises.
        def read(segment, offset, batches)
          bytes = from_batches(segment, offset, batches) || from_file(segment, offset)
          position, type, flags = bytes.unpack("x8Q<CC")
          Record.new(position, type, flags, bytes.byteslice(Format::RECORD_BYTES..), segment.number << 32 | offset)
        end

        def close
          @files.close(@file) if @file
          @file = @number = nil
        end

        private

        def from_batches(segment, offset, batches)
          batches.each do |batch|
            next unless batch.segment.equal?(segment)
            record = batch.record_at(offset)
            return record if record
          end
          nil
        end

        def from_file(segment, offset)
          at = offset - Format::RECORD_BYTES
          file = file_of(segment)
          bytes = @files.read(file, FIRST_READ, at)
          length, _, inverse = bytes.unpack("L<L<x12L<")
          size = Format::RECORD_BYTES + length.to_i
          damaged(segment, at) unless inverse && length ^ inverse == 0xffffffff && at + size <= segment.size
          bytes << @files.read(file, size - bytes.bytesize, at + bytes.bytesize) if size > bytes.bytesize
          bytes = bytes.byteslice(0, size)
          damaged(segment, at) unless bytes.bytesize == size && Format.verify?(bytes, segment.seed)
          bytes
        end

        def damaged(segment, at) = raise(Corrupt.new(@files.path, segment.name, at, "a record does not verify any more"))

        # Not the file that is written to, which another thread may close.
        def file_of(segment)
          return @file if @number == segment.number
          close
          @file = @files.open(segment.name)
          @number = segment.number
          @file
        rescue Errno::EMFILE, Errno::ENFILE => error
          raise Unread, "cannot open #{File.join(@files.path, segment.name)}: #{error.message}; allow more open files"
        end
      end
    end
  end
end
