# frozen_string_literal: true

require "securerandom"
require_relative "checkpoint"
require_relative "errors"
require_relative "format"
require_relative "reading"
require_relative "recovery"
require_relative "segment"
require_relative "spares"

module Hikyaku
  module Log
    class Journal
      # What may take long: opening and closing, bringing to the disk, and making space.
      module Keeping
        # Brings to the disk what was written before it began, and gives the next segment its name when one has ended. Any thread.
        #
        # @return [Integer] position up to which all is synced
        # @raise [Failed]
        def sync
          @sync_lock.synchronize do
            alive!
            active = @active
            written, dirty, drops, ended = @lock.synchronize { [@written, @dirty, @drops.take_written, active.whole?].tap { @dirty = false } }
            bring_to_disk(active, written, drops) if dirty
            activate_next(active) if ended
          end
          @synced
        end

        # Removes segments that were dropped, writes the checkpoint, makes spares. Any thread.
        #
        # @return [void]
        # @raise [Failed]
        def make_space
          @space_lock.synchronize do
            alive!
            remove_dropped
            write_checkpoint if @checkpoint_due
            guarded("make a segment in", "") { @spares.make(spares_wanted) }
          end
          nil
        end

        # Brings everything to the disk, and ends the journal in order. Does nothing when that was done.
        #
        # @return [void]
        # @raise [Failed] whatever happens, the lock is given back
        def close
          return if @closed
          alive!
          loop do
            write
            sync
            break unless pending? || @synced < @appended || @active.whole?
          end
          finish
        ensure
          release
        end

        # Gives back the lock, and leaves the files as a crash would.
        #
        # @return [void]
        def abandon = release

        private

        def recover(report, &replay)
          @lock_file = guarded("lock", "lock") { @files.lock("lock") }
          raise Locked, "#{@path} is in use by another process: stop it, or use another folder" unless @lock_file
          recovery = Reading.of(@path, report) { |reading| read_all(reading, &replay) }
          guarded("repair", "") { take_over(recovery) }
          start(recovery.newest)
        rescue
          release
          raise
        ensure
          recovery&.close
        end

        def read_all(reading)
          recovery = guarded("read", "") do
            @files.list.each { |name| @files.unlink(name) if Format.temporary?(name) }
            Recovery.new(@files, reading).check!
          end
          if block_given?
            recovery.replay do |record|
              reading.record
              yield record
            end
          end
          recovery
        rescue
          recovery&.close
          raise
        end

        # What was read is not known to be on the disk: the process before may have been told of no failure.
        def take_over(recovery)
          newest = recovery.newest
          skip_holes(newest) if newest
          @in_order = recovery.closed?
          @open_end = newest ? newest.limit - newest.offset : 0
          recovery.segments.each do |segment|
            segment.sync if segment.equal?(newest) || segment.position - 1 > recovery.synced
            segment.close
          end
          gone = [*recovery.leftovers, *recovery.unbegun]
          gone.each { |segment| @files.unlink(segment.name) }
          @files.sync_folder unless gone.empty?
          recovery.segments.each { |segment| @segments[segment.number] = Segment.new(segment.header, whole: !segment.ending.nil?) }
          @stats.torn_repaired = 1 if newest && newest.ending.nil?
          @identity = recovery.identity || SecureRandom.bytes(Format::IDENTITY_BYTES)
          @number = newest ? newest.number + 1 : 1
          @appended = @written = @synced = recovery.position
          first = recovery.checkpoint&.first || 1
          dropped = recovery.dropped.select { |number| number >= first }
          @drops = Drops.new(dropped, dropped - (recovery.checkpoint&.dropped || []))
        end

        # So that whoever reads the segment next goes on where this process does.
        def skip_holes(newest)
          @holes = newest.holes.reject(&:recorded)
          @stats.torn_places = @holes.size
          @stats.torn_missing = @holes.sum(&:missing)
          return if @holes.empty?
          file = @files.reopen(newest.name)
          @holes.each { |hole| write_all(file, newest.skip(hole), hole.from) }
          @files.sync(file)
          @torn_segment = newest.name
        ensure
          @files.close(file) if file
        end

        def start(newest)
          @spares = Spares.new(@files, @segment_bytes, @number)
          if ready(1)
            begin_segment
            activate(@current)
          else
            go_on(newest)
          end
          write
          sync
          @checkpoint_due = true
          make_space
        end

        # There is no room for another segment: what frees something goes into what is left of the newest one.
        def go_on(newest)
          raise disk_full if newest.nil? || newest.ending == Format::ENDING
          offset = newest.offset - ((newest.ending == Format::CLOSE) ? Format::MARK_BYTES : 0)
          segment = Segment.new(newest.header, file: guarded("open", newest.name) { @files.reopen(newest.name) })
          @lock.synchronize { @segments[segment.number] = @current = @active = segment }
          guarded("clear the end of", segment.name) { clear_behind(segment, offset) }
          @batch = Batch.new(segment, offset, @appended)
          remember
          raise disk_full if tail + Format::MARK_BYTES > segment.size
        end

        # What stood behind the records is gone before others are written there: else what is left of it might continue them.
        def clear_behind(segment, offset)
          @spares.fill(segment.file, offset, segment.size)
          @files.sync(segment.file)
        end

        def disk_full
          Full.none(@path, @spares.shortage, @segment_bytes)
        end

        def bring_to_disk(active, written, drops)
          began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          guarded("sync", active.name) { @files.sync_data(active.file) }
          took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
          lose("") unless @files.in_place?
          look_for(active)
          @lock.synchronize do
            @synced = written
            @drops.sync(drops)
            @stats.syncs += 1
            @stats.sync_seconds += took
            @stats.longest_sync = took if took > @stats.longest_sync
          end
        end

        def activate_next(active)
          following = @lock.synchronize { @segments[active.number + 1] }
          activate(following)
          guarded("close", active.name) { @files.close(active.file) }
          active.file = nil
          @checkpoint_due = true
        end

        # The header is on the disk before the name is, and the name before any record.
        def activate(segment)
          guarded("begin", segment.name) do
            write_all(segment.file, Format.header(segment.header), 0)
            @files.sync(segment.file)
            @files.rename(segment.spare, segment.name)
            @files.sync_folder
          end
          @lock.synchronize { @active = segment }
        end

        # One for what frees something; and one to go on with, before the segment that is written is full.
        def spares_wanted = (tail > @segment_bytes / 2) ? 2 : 1

        def remove_dropped
          # A number that a new segment repeats may come again when its file is gone already.
          numbers = @lock.synchronize { @drops.take_synced & @segments.keys }
          return if numbers.empty?
          numbers.each { |number| guarded("remove", Format.segment_name(number)) { @files.unlink(Format.segment_name(number)) } }
          guarded("sync", "") { @files.sync_folder }
          @lock.synchronize { numbers.each { |number| @segments.delete(number) } }
          @checkpoint_due = true
          @spares.retry
        end

        # It bounds the next opening. Where there is no room for it, it waits.
        def write_checkpoint
          @checkpoint_due = @checkpoint_missed = false
          checkpoint = @lock.synchronize { checkpoint_now }
          if guarded("write", Checkpoint::NAME) { replace_checkpoint(checkpoint.to_bytes) }
            @lock.synchronize { @drops.name(checkpoint.first, checkpoint.dropped) }
          else
            @checkpoint_missed = true
          end
        end

        def checkpoint_now
          first = @segments.each_key.find { |number| !@drops.known?(number) }
          Checkpoint.new(identity: @identity, synced: @synced, newest: @active.number, first: first, written_at: @clock.call,
            dropped: @drops.known.select { |number| number > first }.sort)
        end

        # @return [Boolean] false: there was no room
        def replace_checkpoint(bytes)
          @files.unlink(Checkpoint::TEMPORARY) if @files.list.include?(Checkpoint::TEMPORARY)
          file = @files.create(Checkpoint::TEMPORARY)
          begin
            write_all(file, bytes, 0)
            @files.sync(file)
          ensure
            @files.close(file)
          end
          @files.rename(Checkpoint::TEMPORARY, Checkpoint::NAME)
          @files.sync_folder
          true
        rescue *Spares::SHORTAGES
          false
        end

        # All before CLOSE is on the disk: it says so.
        def finish
          bytes = Format.mark(@current.seed, @appended + 1, Format::CLOSE, @synced, @clock.call)
          guarded("write to", @current.name) do
            write_all(@current.file, bytes, @batch.offset)
            @files.sync_data(@current.file)
          end
          @space_lock.synchronize do
            remove_dropped
            write_checkpoint
            guarded("remove a spare in", "") { @spares.discard }
          end
        end

        def release
          return if @closed
          @closed = true
          @trouble ||= Failed.new("the journal in #{@path} was closed: open it again")
          @spares&.release
          @segments.each_value { |segment| @files.close(segment.file) if segment.file }
          forget_reading
          @files.close_folder
          @files.close(@lock_file) if @lock_file
        end
      end
    end
  end
end
