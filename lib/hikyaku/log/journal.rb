# frozen_string_literal: true

require_relative "../error"
require_relative "journal/batch"
require_relative "journal/checkpoint"
require_relative "journal/drops"
require_relative "journal/errors"
require_relative "journal/files"
require_relative "journal/format"
require_relative "journal/growing"
require_relative "journal/keeping"
require_relative "journal/reading"
require_relative "journal/record"
require_relative "journal/recovery"
require_relative "journal/rereading"
require_relative "journal/segment"
require_relative "journal/spares"

module Hikyaku
  module Log
    # A log on the disk: docs/journal.md is the format. Twin of hk_journal.
    #
    #     append ──► a batch in memory ──► write: one pwrite a turn ──► sync: fdatasync
    #
    # What is quick is done by whoever owns the journal, in one thread: `append`, `write`, `drop`. What may take long, `sync` and
    # `make_space`, may run in any other thread, each in one of its own, so that a sync never waits for a segment that is being filled
    # with zeros. Nothing waits for a timer: while one sync runs, what comes gathers for the next. `sync_wanted?` and
    # `space_wanted?` say when there is something to do. A test, or a program with nothing else to do, calls them at once.
    #
    # After Failed the journal takes nothing any more and acknowledges nothing. A process that was forked holds the lock of its parent's journal
    # until it calls `abandon`.
    class Journal
      include Growing
      include Keeping
      include Rereading

      # Figures since it was opened; times in seconds, the longest since they were last read.
      Stats = Struct.new(:records, :bytes, :batches, :syncs, :sync_seconds, :longest_sync, :segments, :spares, :torn_repaired, :torn_places, :torn_missing)

      # Between two looks whether what is written to still has a name.
      LOOK_MS = 100
      private_constant :LOOK_MS

      # Opens a journal, or makes one in an empty folder; repairs a torn tail; begins a segment; makes a spare.
      #
      # @param path [String] of the folder, which exists
      # @param segment_bytes [Integer] size of new segments: 64 KiB to 1 GiB, a multiple of 4,096
      # @param on_begin [#call, nil] is given the journal whenever a segment is begun, the first one too, before any other record of
      #   it: it appends what the log has to remember for ever
      # @param files [Files] the system calls
      # @param report [#call, nil] is given a level of a logger, and a sentence: how far the reading is
      # @param clock [#call] milliseconds since 1970
      # @yieldparam record [Record] each record of the log that there is, in order
      # @return [Journal]
      # @raise [Locked, Corrupt, Full, Failed, Interrupted]
      def self.open(path, segment_bytes: Format::SEGMENT_USUAL, on_begin: nil, files: nil, report: nil, clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond) }, &replay)
        unless segment_bytes.between?(Format::SEGMENT_LEAST, Format::SEGMENT_MOST) && segment_bytes % 4096 == 0
          raise LimitExceeded, "a segment has 64 KiB to 1 GiB, in steps of 4,096 bytes, not #{segment_bytes} bytes"
        end
        new(path, segment_bytes: segment_bytes, on_begin: on_begin, files: files, clock: clock).tap { |journal| journal.__send__(:recover, report, &replay) }
      end
      private_class_method :new

      # @return [Integer] position of the newest record that was appended; 0: none
      attr_reader :appended
      # @return [Integer] position up to which all is in the hands of the kernel
      attr_reader :written
      # @return [Integer] position up to which all is on the disk
      attr_reader :synced
      # @return [Integer] where the newest record stands: what `reread` takes
      attr_reader :place
      # @return [Failed, nil] what went wrong, once something has
      attr_reader :trouble
      # @return [Integer] bytes of a new segment
      attr_reader :segment_bytes
      # @return [Array<SegmentReader::Hole>] what did not verify in the newest segment when it was opened, before records that do
      attr_reader :holes
      # @return [String, nil] the file in which they are
      attr_reader :torn_segment
      # @return [Integer] bytes behind the newest record that was found, in its segment
      attr_reader :open_end

      def initialize(path, segment_bytes:, on_begin:, files:, clock:)
        @path = path
        @segment_bytes = segment_bytes
        @on_begin = on_begin
        @clock = clock
        @files = files || open_folder(path)
        @lock = Mutex.new
        @sync_lock = Mutex.new
        @space_lock = Mutex.new
        @segments = {}
        @queue = []
        @wanted = 0
        @place = 0
        @holes = []
        @open_end = 0
        @stats = Stats.new(0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0)
      end

      # Appends a record. O(bytes), without a system call but where there is no spare although there is room for one.
      #
      # @param type [Integer] 16 to 63
      # @param flags [Integer] of the type
      # @param body [String] bytes
      # @param urgent [Boolean] it frees something: it may use what is reserved for that
      # @return [Integer] its position
      # @raise [Full] there is no room for another segment; nothing was appended
      # @raise [LimitExceeded] it is larger than a segment holds
      # @raise [Failed]
      def append(type, flags, body, urgent: false)
        alive!
        raise ArgumentError, "a log's types are #{Format::TYPES}, not #{type}" unless Format::TYPES.include?(type)
        space = Format.space(body.bytesize)
        make_way(space, urgent) if !fits?(space) || !(urgent || open_to_bulk?)
        offset = @batch.append(type, flags, body)
        @place = @current.number << 32 | offset
        @stats.records += 1
        @appended = @batch.last
      end

      # Hands what was appended to the kernel: one pwrite, most of the time. What belongs into a segment that has no name yet waits
      # until `sync` has ended the one before.
      #
      # @return [Integer] position up to which all is written
      # @raise [Failed]
      def write
        alive!
        say_drops
        seal unless @batch.empty?
        return @written unless @queue.first && @queue.first.segment.equal?(@active)
        put(@queue.shift) while @queue.first && @queue.first.segment.equal?(@active)
        look_now_and_then
        @written
      end

      # @return [Boolean] whether `write` has something to do, now or after a sync
      def pending? = !(@batch.empty? && @queue.empty?)

      # Somebody waits for this position to be synced.
      #
      # @param position [Integer]
      # @return [void]
      def want_sync(position) = @wanted = [@wanted, position].max

      # @return [Boolean] whether a sync would bring something nearer that somebody waits for
      def sync_wanted? = @trouble.nil? && ((@wanted > @synced && @written > @synced) || @active.whole? || @drops.waiting?)

      # @return [Boolean] whether `make_space` has something to do
      def space_wanted?
        @trouble.nil? && (!@drops.synced.empty? || @checkpoint_due || (!@spares.full? && @spares.count < spares_wanted))
      end

      # @return [Boolean] whether the process before had ended it in order, so that nothing of it can be missing
      def in_order? = @in_order

      # @return [Boolean] whether there was no room for another segment: only what is urgent is taken
      def full? = @spares.full?

      # @return [SystemCallError, nil] what there was none of
      def shortage = @spares.shortage

      # There may be room again: it is tried by `make_space`.
      #
      # @return [void]
      def retry
        @spares.retry
        @checkpoint_due ||= @checkpoint_missed
      end

      # @return [Integer] bytes of records, not urgent, that can be appended before another segment must be there; 0 when full
      def remaining = (open_to_bulk? && !full?) ? [segment_bytes - tail - Format::MARK_BYTES, 0].max : 0

      # @return [Integer] number of the oldest segment that is there
      def oldest = @lock.synchronize { @segments.each_key.first }

      # @return [Integer] number of the segment that records are appended to
      def current = @current.number

      # @return [Integer] bytes of all segments that are there, without spares
      def bytes = @lock.synchronize { @segments.each_value.sum(&:size) }

      # A segment is not needed any more: it is said in the next batch, and when that is synced its file is removed.
      #
      # @param segment [Integer] number, not of the current one
      # @return [Boolean] false: there is no such segment, or it was dropped before
      def drop(segment)
        alive!
        raise ArgumentError, "segment #{segment} is the one that is being written" if segment == current
        @lock.synchronize { @segments.key?(segment) && !@drops.known?(segment) && @drops.request(segment) }
      end

      # @return [Stats] as they are now
      def stats
        @lock.synchronize do
          @stats.segments = @segments.size
          @stats.spares = @spares.count
          @stats.dup.tap { @stats.longest_sync = 0.0 }
        end
      end

      # @return [String]
      def inspect = "#<#{self.class.name} #{@path} appended=#{@appended} synced=#{@synced}>"

      private

      def open_folder(path)
        Files.new(path)
      rescue SystemCallError => error
        raise Failed.new("cannot open #{path}: #{error.message}; a journal needs a folder that exists", error)
      end

      def alive!
        raise @trouble if @trouble
      end

      # Somebody may have deleted what is written to.
      def look_for(segment)
        lose(segment.name) unless guarded("look at", segment.name) { @files.linked?(segment.file) }
      end

      # A file, or the folder (""), is not where it was.
      def lose(name)
        lost = name.empty? ? "moved, replaced or deleted" : "deleted"
        @trouble ||= Failed.new("#{File.join(@path, name)} was #{lost} while it was in use: what was written there may be gone; " \
          "put back what was there, then start again", Errno::ENOENT.new)
        raise @trouble
      end

      # What the system says where that is the end.
      def guarded(what, name)
        yield
      rescue SystemCallError => error
        @trouble ||= Failed.new("cannot #{what} #{File.join(@path, name)}: #{error.message}; nothing is kept any more: see to the disk, then start again", error)
        raise @trouble
      end

      def tail = @batch.tail

      def put(batch)
        bytes = batch.to_bytes(@synced, @clock.call)
        guarded("write to", @active.name) { write_all(@active.file, bytes, batch.offset) }
        @lock.synchronize do
          @written = batch.last
          @dirty = true
          @drops.write(batch.drops)
          @active.whole = true if batch.ends?
        end
        @stats.batches += 1
        @stats.bytes += bytes.bytesize
      end

      # What is only written is not looked at by a sync.
      def look_now_and_then
        now = @clock.call
        return if @looked && (now - @looked).between?(0, LOOK_MS - 1)
        @looked = now
        look_for(@active) if @active.file
      end

      def write_all(file, bytes, offset)
        done = @files.write(file, bytes, offset)
        while done < bytes.bytesize
          more = @files.write(file, bytes.byteslice(done..), offset + done)
          raise Errno::EIO if more == 0
          done += more
        end
      end
    end
  end
end
