# frozen_string_literal: true

require "securerandom"
require_relative "../error"
require_relative "journal/batch"
require_relative "journal/checkpoint"
require_relative "journal/drops"
require_relative "journal/errors"
require_relative "journal/files"
require_relative "journal/format"
require_relative "journal/guard"
require_relative "journal/opening"
require_relative "journal/reading"
require_relative "journal/record"
require_relative "journal/record_reader"
require_relative "journal/segment"
require_relative "journal/spares"

module Hikyaku
  module Log
    # A log on the disk: docs/journal.md is the format. Twin of hk_journal.
    #
    #     append ──► a batch in memory ──► write: one pwrite a turn ──► sync: fdatasync
    #
    # The thread that owns the journal does what is quick: `append`, `write`, `drop`. `sync` and `make_space` may take long and run in any
    # other thread, each in one of its own, so that a sync never waits for a segment that is being filled with zeros. Nothing waits for a
    # timer: while one sync runs, records gather for the next. `sync_wanted?` and `space_wanted?` say when there is something to do. A test,
    # or a program with nothing else to do, calls them at once.
    #
    # Where records go:
    #
    #     bulk      as long as a spare segment is left, and into the first half of a segment while one is made
    #     urgent    may use the last spare, and the rest of the last segment
    #     DROPPED   may use its last bytes, and so may the next process, to repeat what the log remembers
    #
    # After Failed the journal takes nothing any more and acknowledges nothing. A process that was forked holds the lock of its parent's journal
    # until it calls `abandon`.
    class Journal
      # Figures since it was opened; times in seconds, the longest since they were last read.
      Stats = Struct.new(:records, :bytes, :batches, :syncs, :sync_seconds, :longest_sync, :segments, :spares, :torn_repaired, :torn_places, :torn_missing)

      # Milliseconds between two checks that the file which is written to still has a name.
      LINK_CHECK_MS = 100
      # Bytes in the last segment that only DROPPED may use: it brings others back.
      DROP_RESERVE = 1024
      private_constant :LINK_CHECK_MS, :DROP_RESERVE

      # Opens a journal, or makes one in an empty folder; repairs a torn tail; begins a segment; makes a spare.
      def self.open(path, segment_bytes: Format::SEGMENT_USUAL, on_begin: nil, files: nil, report: nil, clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond) }, &replay)
        unless segment_bytes.between?(Format::SEGMENT_LEAST, Format::SEGMENT_MOST) && segment_bytes % 4096 == 0
          raise LimitExceeded, "a segment has 64 KiB to 1 GiB, in steps of 4,096 bytes, not #{segment_bytes} bytes"
        end
        new(path, segment_bytes: segment_bytes, on_begin: on_begin, files: files, clock: clock).tap { |journal| journal.__send__(:take_over, report, &replay) }
      end
      private_class_method :new

      # Positions up to which all was appended, is in the hands of the kernel, and is on the disk; 0: none.
      attr_reader :appended, :written, :synced
      # Where the newest record is: what `reread` takes.
      attr_reader :place
      # Bytes of a new segment.
      attr_reader :segment_bytes

      def initialize(path, segment_bytes:, on_begin:, files:, clock:)
        @path = path
        @segment_bytes = segment_bytes
        @on_begin = on_begin
        @clock = clock
        @files = files || open_folder(path)
        @guard = Guard.new(@files)
        @records = RecordReader.new(@files)
        @lock = Mutex.new
        @sync_lock = Mutex.new
        @space_lock = Mutex.new
        @segments = {}
        @queue = []
        @wanted = 0
        @place = 0
        @stats = Stats.new(0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0)
      end

      # Appends a record of type 16 to 63 and returns its position. `urgent`: it frees something and may use what is reserved for that.
      # O(bytes), without a system call but where there is no spare although there is room for one.
      #
      # Raises Full where there is no room for another segment, LimitExceeded where a segment cannot hold it, and Failed. Nothing was
      # appended then.
      def append(type, flags, body, urgent: false)
        @guard.check!
        raise ArgumentError, "a log's types are #{Format::TYPES}, not #{type}" unless Format::TYPES.include?(type)
        space = Format.space(body.bytesize)
        make_way(space, urgent) if !fits?(space) || !(urgent || open_to_bulk?)
        offset = @batch.append(type, flags, body)
        @place = @current.number << 32 | offset
        @stats.records += 1
        @appended = @batch.last
      end

      # Hands what was appended to the kernel, mostly with one pwrite, and returns the position up to which all is written. Records of a
      # segment that has no name yet wait until `sync` has ended the one before. Raises Failed.
      def write
        @guard.check!
        append_drops
        seal unless @batch.empty?
        return @written unless @queue.first && @queue.first.segment.equal?(@active)
        put(@queue.shift) while @queue.first && @queue.first.segment.equal?(@active)
        check_link
        @written
      end

      # The Failed that ended it, or nil.
      def trouble = @guard.failure

      # Whether `write` has something to do, now or after a sync.
      def pending? = !(@batch.empty? && @queue.empty?)

      # Somebody waits for this position to be synced.
      def want_sync(position) = @wanted = [@wanted, position].max

      # Whether a sync would bring something nearer that somebody waits for.
      def sync_wanted? = @guard.failure.nil? && ((@wanted > @synced && @written > @synced) || @active.whole? || @drops.waiting?)

      # Brings to the disk what was written before it began, gives the next segment its name when one has ended, and returns the position
      # up to which all is synced. Any thread. Raises Failed.
      def sync
        @sync_lock.synchronize do
          @guard.check!
          active = @active
          written, dirty, drops, ended = @lock.synchronize { [@written, @dirty, @drops.take_written, active.whole?].tap { @dirty = false } }
          bring_to_disk(active, written, drops) if dirty
          activate_next(active) if ended
        end
        @synced
      end

      # Whether `make_space` has something to do.
      def space_wanted?
        @guard.failure.nil? && (!@drops.synced.empty? || @checkpoint_due || (!@spares.full? && @spares.count < spares_wanted))
      end

      # Removes segments that were dropped, writes the checkpoint, makes spares. Any thread. Raises Failed.
      def make_space
        @space_lock.synchronize do
          @guard.check!
          remove_dropped
          write_checkpoint if @checkpoint_due
          @guard.call("make a segment in", "") { @spares.make(spares_wanted) }
        end
        nil
      end

      # Reads a record again, by what `place` was after it was appended, or by Record#place. The owner's thread only. Raises ArgumentError
      # where its segment is gone, Corrupt, Failed, and Unread, which passes.
      def reread(place)
        number = place >> 32
        segment = @lock.synchronize { @segments[number] } or raise ArgumentError, "segment #{number} is not there any more"
        @guard.call("read", segment.name) { @records.read(segment, place & 0xffffffff, [*@queue, @batch]) }
      end

      # Drops a segment, by its number, that is not needed any more: the next batch says so, and when that is synced its file is removed.
      # Returns false where there is no such segment, or it was dropped before.
      def drop(segment)
        @guard.check!
        raise ArgumentError, "segment #{segment} is the one that is being written" if segment == current
        @lock.synchronize { @segments.key?(segment) && !@drops.known?(segment) && @drops.request(segment) }
      end

      # Whether the process before had ended it in order, so that nothing of it can be missing.
      def in_order? = @opening.in_order?

      # What did not verify in the newest segment when it was opened, before records that do, and the name of that file; bytes behind the
      # newest record that was found.
      def holes = @opening.holes

      def torn_segment = @opening.torn_segment

      def open_end = @opening.open_end

      # Whether there was no room for another segment: it takes only what is urgent.
      def full? = @spares.full?

      # The SystemCallError for which there is no room, or nil.
      def shortage = @spares.shortage

      # There may be room again: `make_space` tries.
      def retry
        @spares.retry
        @checkpoint_due ||= @checkpoint_missed
      end

      # Bytes of records, not urgent, that fit before another segment must be there; 0 when full.
      def remaining = (open_to_bulk? && !full?) ? [segment_bytes - tail - Format::MARK_BYTES, 0].max : 0

      # Number of the oldest segment.
      def oldest = @lock.synchronize { @segments.each_key.first }

      # Number of the segment that records are appended to.
      def current = @current.number

      # Bytes of all segments, without spares.
      def bytes = @lock.synchronize { @segments.each_value.sum(&:size) }

      def stats
        @lock.synchronize do
          @stats.segments = @segments.size
          @stats.spares = @spares.count
          @stats.dup.tap { @stats.longest_sync = 0.0 }
        end
      end

      # Brings everything to the disk, and ends the journal in order. Raises Failed; the lock is given back in any case.
      def close
        return if @closed
        @guard.check!
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
      def abandon = release

      def inspect = "#<#{self.class.name} #{@path} appended=#{@appended} synced=#{@synced}>"

      private

      def open_folder(path)
        Files.new(path)
      rescue SystemCallError => error
        raise Failed.new("cannot open #{path}: #{error.message}; a journal needs a folder that exists", error)
      end

      def take_over(report, &replay)
        @lock_file = @guard.call("lock", "lock") { @files.lock("lock") }
        raise Locked, "#{@path} is in use by another process: stop it, or use another folder" unless @lock_file
        Reading.of(@path, report) do |reading|
          @opening = Opening.new(@files, reading)
          @guard.call("read", "") { @opening.read(&replay) }
        end
        @guard.call("repair", "") { @opening.take_over }
        begin_after(@opening)
      rescue
        release
        raise
      ensure
        @opening&.close
      end

      def begin_after(opening)
        @identity = opening.identity
        @number = opening.number
        @segments = opening.segments
        @drops = opening.drops
        @appended = @written = @synced = opening.position
        @stats.torn_repaired = 1 if opening.torn?
        @stats.torn_places = opening.holes.size
        @stats.torn_missing = opening.holes.sum(&:missing)
        @spares = Spares.new(@files, @segment_bytes, @number)
        if ready(1)
          begin_segment
          activate(@current)
        else
          go_on(opening.newest)
        end
        write
        sync
        @checkpoint_due = true
        make_space
      end

      # There is no room for another segment: what frees something goes into the rest of the newest one.
      def go_on(newest)
        raise disk_full if newest.nil? || newest.ending == Format::ENDING
        offset = newest.offset - ((newest.ending == Format::CLOSE) ? Format::MARK_BYTES : 0)
        segment = Segment.new(newest.header, file: @guard.call("open", newest.name) { @files.reopen(newest.name) })
        @lock.synchronize { @segments[segment.number] = @current = @active = segment }
        @guard.call("clear the end of", segment.name) { clear_behind(segment, offset) }
        @batch = Batch.new(segment, offset, @appended)
        remember
        raise disk_full if tail + Format::MARK_BYTES > segment.size
      end

      # Bytes behind the records might else continue a record that is written there.
      def clear_behind(segment, offset)
        @spares.fill(segment.file, offset, segment.size)
        @files.sync(segment.file)
      end

      def tail = @batch.tail

      # MARK goes before it if it is the first of its batch, END behind it.
      def fits?(space)
        reserve = (@spares.count > 0 || @beginning) ? 0 : DROP_RESERVE + [@begun_bytes, segment_bytes / 8].min
        tail + space + Format::MARK_BYTES + reserve <= @current.size
      end

      # While there is no spare, the second half of a segment is for what frees something.
      def open_to_bulk? = @beginning || @spares.count > 0 || (!@spares.full? && tail < @current.size / 2)

      # A record that is not urgent leaves a spare to those that are.
      def make_way(space, urgent)
        refuse_beginning if @beginning
        raise too_large(space) if space > segment_bytes - Format::HEADER_BYTES - Format::MARK_BYTES - [@begun_bytes, Format::MARK_BYTES].max
        rotate = !fits?(space)
        needed = (rotate ? 1 : 0) + (urgent ? 0 : 1)
        raise disk_full unless ready(needed)
        return unless rotate
        begin_segment
        # What each segment begins with may have grown since the last one.
        raise too_large(space) if tail + space + Format::MARK_BYTES > segment_bytes
      end

      # A thread that makes spares has mostly done it before.
      def ready(count) = @spares.count >= count || @guard.call("make a segment in", "") { @spares.make(count) }

      def seal(finish: false)
        @batch.finish! if finish
        @queue << @batch
        @batch = Batch.new(@current, finish ? 0 : @batch.tail, @appended)
      end

      # The new segment gets its name when the END of the one before is on the disk.
      def begin_segment
        seal(finish: true) if @current
        header = Format::Header.new(@identity, @number, @appended + 1, SecureRandom.bytes(8).unpack1("Q<"), @clock.call, segment_bytes)
        spare = @spares.take
        @current = Segment.new(header, file: spare.file, spare: spare.name)
        @number += 1
        @lock.synchronize { @segments[@current.number] = @current }
        @batch = Batch.new(@current, Format::HEADER_BYTES, @appended)
        remember
      end

      def remember
        @beginning = true
        repeated = @lock.synchronize { @drops.unnamed }
        @batch.drop(repeated) unless repeated.empty?
        @on_begin&.call(self)
        @begun_bytes = @batch.empty? ? 0 : tail - @batch.offset
      ensure
        @beginning = false
      end

      # A drop that finds no room waits until there is some.
      def append_drops
        return unless @drops.requested?
        numbers = @lock.synchronize { @drops.sayable(@segments) }
        return if numbers.empty?
        space = Format.space(8 * numbers.size)
        if tail + space + Format::MARK_BYTES > @current.size
          return unless ready(1)
          begin_segment
        end
        @lock.synchronize { @drops.say(numbers) }
        @batch.drop(numbers)
      end

      def put(batch)
        bytes = batch.to_bytes(@synced, @clock.call)
        @guard.call("write to", @active.name) { @files.write_all(@active.file, bytes, batch.offset) }
        @lock.synchronize do
          @written = batch.last
          @dirty = true
          @drops.write(batch.drops)
          @active.whole = true if batch.ends?
        end
        @stats.batches += 1
        @stats.bytes += bytes.bytesize
      end

      # Nothing is synced where no record asks for it: then only this notices that the file was deleted.
      def check_link
        now = @clock.call
        return if @checked && (now - @checked).between?(0, LINK_CHECK_MS - 1)
        @checked = now
        @guard.check_segment(@active) if @active.file
      end

      def bring_to_disk(active, written, drops)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @guard.call("sync", active.name) { @files.sync_data(active.file) }
        took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
        @guard.check_folder
        @guard.check_segment(active)
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
        @guard.call("close", active.name) { @files.close(active.file) }
        active.file = nil
        @checkpoint_due = true
      end

      # The header is on the disk before the name is, and the name before any record.
      def activate(segment)
        @guard.call("begin", segment.name) do
          @files.write_all(segment.file, Format.header(segment.header), 0)
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
        numbers.each { |number| @guard.call("remove", Format.segment_name(number)) { @files.unlink(Format.segment_name(number)) } }
        @guard.call("sync", "") { @files.sync_folder }
        @lock.synchronize { numbers.each { |number| @segments.delete(number) } }
        @checkpoint_due = true
        @spares.retry
      end

      # A checkpoint bounds the next opening. Where there is no room for it, it waits.
      def write_checkpoint
        @checkpoint_due = @checkpoint_missed = false
        checkpoint = @lock.synchronize { checkpoint_now }
        if @guard.call("write", Checkpoint::NAME) { checkpoint.replace(@files) }
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

      # All before CLOSE is on the disk: it says so.
      def finish
        bytes = Format.mark(@current.seed, @appended + 1, Format::CLOSE, @synced, @clock.call)
        @guard.call("write to", @current.name) do
          @files.write_all(@current.file, bytes, @batch.offset)
          @files.sync_data(@current.file)
        end
        @space_lock.synchronize do
          remove_dropped
          write_checkpoint
          @guard.call("remove a spare in", "") { @spares.discard }
        end
      end

      def release
        return if @closed
        @closed = true
        @guard.close
        @spares&.release
        @segments.each_value { |segment| @files.close(segment.file) if segment.file }
        @records.close
        @files.close_folder
        @files.close(@lock_file) if @lock_file
      end

      def disk_full = Full.none(@path, @spares.shortage, @segment_bytes)

      def too_large(space)
        LimitExceeded.new("a record of #{space} bytes does not fit into a segment of #{segment_bytes} bytes; give segment_bytes a larger value")
      end

      # What a segment begins with fits nowhere, or the journal goes on in the rest of a segment.
      def refuse_beginning
        raise disk_full if @active.equal?(@current)
        @guard.fail!(Failed.new("what has to stand at the beginning of each segment of #{@path} does not fit into #{segment_bytes} bytes; give segment_bytes a larger value"))
      end
    end
  end
end
