# frozen_string_literal: true

require "securerandom"
require_relative "batch"
require_relative "checkpoint"
require_relative "errors"
require_relative "files"
require_relative "format"
require_relative "recovery"
require_relative "segment"
require_relative "spares"
require_relative "survey"

module Hikyaku
  module Log
    class Journal
      # Keeps what verifies of a damaged journal: docs/journal.md, "Opening: torn or corrupt". All records that are whole are written
      # into new segments behind those that there are. The new checkpoint, which needs only these, is what makes it happen: until then
      # the journal is refused as it was, and from then on it is sound. An interrupted salvage is begun again.
      class Salvage
        # Says which segments an unfinished salvage has written.
        MARKER = "salvage"
        BATCH_BYTES = 1024 * 1024
        private_constant :MARKER, :BATCH_BYTES

        # The files, without what an unfinished salvage has written.
        class Originals < Files
          attr_accessor :unfinished

          # (see Files#list)
          def list = super.reject { |name| unfinished && (number = Format.segment_number(name)) && number >= unfinished }

          def everything = Dir.children(path)

          def link(from, to)
            File.link(at(from), at(to))
            nil
          end
        end

        attr_reader :survey

        def initialize(path)
          @path = path
          @files = Originals.new(path)
          @files.unfinished = unfinished
          @recovery = Recovery.new(@files)
          @survey = Survey.new(@recovery)
        rescue SystemCallError => error
          raise failed("read", error)
        end

        def sound? = @recovery.damages.empty?

        def damages = @recovery.damages

        def carry_out(&block)
          lock = @files.lock("lock") or raise Locked, "#{@path} is in use by another process: stop it first"
          remove_temporary
          write_segments(&block)
          commit
        rescue SystemCallError => error
          raise failed("write", error)
        ensure
          @spares&.release
          @files.close(lock) if lock
        end

        def close
          @recovery.close
          @files.close_folder
        end

        private

        def failed(what, error) = Failed.new("cannot #{what} #{@path}: #{error.message}", error)

        def unfinished
          return unless @files.list.include?(MARKER)
          number = File.read(File.join(@path, MARKER)).to_i
          file = @files.list.include?(Checkpoint::NAME) && Checkpoint.parse(File.binread(File.join(@path, Checkpoint::NAME)))
          number if number > 0 && !(file && file.first >= number)
        end

        def remove_temporary
          (@files.everything - @files.list).each { |name| @files.unlink(name) }
          @files.list.each { |name| @files.unlink(name) if Format.temporary?(name) }
        end

        def write_segments
          size = @recovery.segments.map { |segment| segment.trusted? ? Format::SEGMENT_USUAL : segment.header.size }.max || Format::SEGMENT_USUAL
          @number = @recovery.segments.map(&:number).push(@recovery.leftovers.last&.number || 0, @recovery.checkpoint&.newest || 0).max + 1
          @last = @survey.last
          @synced = @last
          @identity = @recovery.identity || SecureRandom.bytes(Format::IDENTITY_BYTES)
          @spares = Spares.new(@files, size, @number)
          @written = []
          begin_segment(size)
          written = 0
          @survey.each do |record|
            append(record, size)
            yield written if block_given? && (written += 1) % 10_000 == 0
          end
          finish(Format::MARK)
        end

        def begin_segment(size)
          spare = @spares.make(1) && @spares.take or raise Full, "there is no room for another segment of #{size} bytes in #{@path}: make room there"
          header = Format::Header.new(@identity, @number + @written.size, @last + 1, SecureRandom.bytes(8).unpack1("Q<"), now, size)
          @segment = Segment.new(header, file: spare.file, spare: spare.name)
          @written << @segment
          write(Format.header(header), 0)
          @batch = Batch.new(@segment, Format::HEADER_BYTES, @last)
        end

        def append(record, size)
          if @batch.tail + Format.space(record.body.bytesize) + Format::MARK_BYTES > size
            finish(Format::ENDING)
            begin_segment(size)
          elsif @batch.tail - @batch.offset > BATCH_BYTES && @batch.tail + 2 * Format::MARK_BYTES + Format.space(record.body.bytesize) <= size
            write_batch
          end
          @batch.append(record.type, record.flags, record.body)
          @last = @batch.last
        end

        def write_batch
          return if @batch.empty?
          tail = @batch.tail
          write(@batch.to_bytes(@synced, now), @batch.offset)
          @batch = Batch.new(@segment, tail, @last)
        end

        # What the last MARK says was synced is: the file gets its name only when all of it is. No CLOSE: what the log had given may be missing.
        def finish(type)
          write_batch
          write(Format.mark(@segment.seed, @last + 1, type, (type == Format::MARK) ? @last : @synced, now), @batch.offset)
          @files.sync(@segment.file)
          @files.close(@segment.file)
        end

        def write(bytes, offset)
          done = 0
          done += @files.write(@segment.file, bytes.byteslice(done..), offset + done) while done < bytes.bytesize
        end

        def commit
          mark_unfinished
          aside = set_aside
          @written.each { |segment| @files.rename(segment.spare, segment.name) }
          @files.sync_folder
          replace(Checkpoint::NAME, Checkpoint::TEMPORARY, Checkpoint.new(identity: @identity, synced: @last, newest: @written.last.number,
            first: @written.first.number, written_at: now, dropped: []).to_bytes)
          @files.everything.each { |name| @files.unlink(name) if (Format.segment_number(name) || @number) < @number }
          @files.unlink(MARKER)
          @files.sync_folder
          aside
        end

        def mark_unfinished = replace(MARKER, Checkpoint::TEMPORARY, @number.to_s)

        def replace(name, temporary, bytes)
          file = @files.create(temporary)
          @files.write(file, bytes, 0)
          @files.sync(file)
          @files.close(file)
          @files.rename(temporary, name)
          @files.sync_folder
        end

        # Another name for each damaged file; the old one goes at the end.
        def set_aside
          there = @files.everything
          damages.map(&:name).select { |name| there.include?(name) }.map do |name|
            aside = "#{name}.damaged"
            copy = 1
            aside = "#{name}.#{copy += 1}.damaged" while there.include?(aside)
            @files.link(name, aside)
            aside
          end
        end

        def now = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
      end
    end
  end
end
