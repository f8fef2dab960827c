# frozen_string_literal: true

require_relative "format"

module Hikyaku
  module Log
    class Journal
      # Files that are ready to become segments: filled with zeros and on the disk, so that to begin a segment needs no room.
      class Spares
        # Bytes that are written at once.
        ZEROS = ("\0".b * 1024 * 1024)
        # Room on the disk, or descriptors: what passes.
        SHORTAGES = [Errno::ENOSPC, Errno::EDQUOT, Errno::EMFILE, Errno::ENFILE].freeze
        private_constant :ZEROS

        # A file that is ready.
        Spare = Struct.new(:name, :file)

        def initialize(files, size, number)
          @files = files
          @size = size
          @number = number
          @ready = Thread::Queue.new
          @shortage = nil
          @making = Mutex.new
        end

        def count = @ready.size

        attr_reader :shortage

        def full? = !@shortage.nil?

        # To be tried again.
        def retry = @shortage = nil

        def take = @ready.empty? ? nil : @ready.pop

        # Makes so many, unless it is known that there is no room. Any thread.
        def make(wanted)
          @making.synchronize { make_one until count >= wanted || full? }
          count >= wanted
        end

        # Writes zeros.
        def fill(file, from, to)
          while from < to
            left = to - from
            written = @files.write(file, (left < ZEROS.bytesize) ? ZEROS.byteslice(0, left) : ZEROS, from)
            raise Errno::EIO if written == 0
            from += written
          end
        end

        # Deletes those that are there.
        def discard
          @making.synchronize do
            while (spare = take)
              @files.close(spare.file)
              @files.unlink(spare.name)
            end
          end
        end

        # Closes those that are there, and leaves the files.
        def release
          while (spare = take)
            @files.close(spare.file)
          end
        end

        private

        def make_one
          spare = Spare.new(Format.spare_name(@number))
          @number += 1
          spare.file = @files.create(spare.name)
          fill(spare.file, 0, @size)
          @files.sync(spare.file)
          @ready << spare
        rescue SystemCallError => error
          throw_away(spare) if spare.file
          raise unless SHORTAGES.any? { |kind| kind === error }
          @shortage = error
        end

        # What cannot be deleted now goes when the journal is opened next.
        def throw_away(spare)
          @files.close(spare.file)
          @files.unlink(spare.name)
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
