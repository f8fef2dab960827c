# frozen_string_literal: true

require "fileutils"
require "securerandom"
require_relative "../error"
require_relative "../log/journal"
require_relative "storage/entry"
require_relative "storage/flush_worker"
require_relative "storage/loss_report"
require_relative "storage/retention_index"
require_relative "storage/watermark"

module Hikyaku
  # An update could not be stored, so it was not published: there is no space, or the disk has failed.
  class StorageFailed < StandardError
    include Error
  end

  class Hub
    # Preserves a hub's log over a restart: a journal of the updates that the log's ring retains.
    #
    #     storage = Storage.new("/var/lib/hub", history: 33_554_432, level: :synced)
    #     storage.open { |entry| ring_takes(entry) }
    #     ticket = storage.append(update, …)  under the hub's lock
    #     storage.await(ticket)               in any thread: returns when the update is as safe as the level says
    #     storage.retain(from: position)      deletes the segments before a position
    #
    # docs/journal.md, section "What the hub keeps".
    class Storage
      UPDATE = 16
      KEY = 17
      KEY_BYTES = 16
      # About how many segments a journal has: old updates are deleted by the segment.
      SEGMENTS = 4
      SEGMENT_BYTES = ((1 << 20)..(32 << 20))
      BLOCK = 4096
      LEVELS = %i[written synced].freeze
      private_constant :UPDATE, :KEY, :KEY_BYTES, :SEGMENTS, :SEGMENT_BYTES, :BLOCK, :LEVELS

      def self.segment_bytes(history) = (history / SEGMENTS / BLOCK * BLOCK).clamp(SEGMENT_BYTES)

      attr_reader :key, :next_position

      def initialize(folder, history:, level: :written, age: nil, report: nil, boot: Watermark.boot, files: nil,
        clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond) })
        raise ArgumentError, "a hub's level is #{LEVELS.join(" or ")}, not #{level}" unless LEVELS.include?(level)
        @folder = folder
        @level = level
        @clock = clock
        @report = report
        @watermark = Watermark.new(folder, boot: boot)
        @options = {segment_bytes: Storage.segment_bytes(history), files: files, report: report, clock: clock}
        @next_position = 1
        @ends = {} # the newest position in each segment, by its number
        @retention = RetentionIndex.new(age, clock)
        @lock = Mutex.new
      end

      # Opens or creates the journal and yields its entries. From the first entry on, `key` is known. `lose` is called for positions whose
      # updates are missing.
      def open(lose:)
        FileUtils.mkdir_p(@folder, mode: 0o700)
        @lose = lose
        @given = @watermark.read
        @journal = Log::Journal.open(@folder, on_begin: method(:write_key), **@options) { |record| restore(record) { |entry| yield entry } }
        @flush_worker = FlushWorker.new(@journal, @lock)
        @watermark.begin(@next_position - 1)
        report_losses
        self
      rescue SystemCallError, Log::Journal::Full, Log::Journal::Failed => error
        raise StorageFailed, "the hub's history cannot be stored in #{@folder}: #{error.message}"
      end

      # Stores an update. Returns a ticket for `await`; nil if the update is as safe as the level says already.
      def append(update, topics:, type: update.type)
        entry = Entry.new(position: @next_position, published_at: @clock.call, topics: topics, data: update.data, private: update.private?,
          id: update.id, type: type, retry_after: update.retry_after)
        failing { @lock.synchronize { store(entry) } }
      end

      def await(ticket)
        failing { @flush_worker.await { safe?(ticket) } } if ticket
      end

      def retain(from:)
        return unless @ends.size > 1 && @ends.first.last < from
        @lock.synchronize do
          while @ends.first.last < from && @ends.first.first != @journal.current
            number, = @ends.shift
            failing { @journal.drop(number) }
          end
        end
      end

      def retained_from = @retention.from

      # Harmless when repeated.
      def close
        @flush_worker.stop
        failing { @journal.close }
      ensure
        @watermark.close
      end

      # Releases the files without writing, as a crash would: they belong to another process.
      def abandon
        @flush_worker.stop
        @journal.abandon
        @watermark.close
      end

      def stats = @journal.stats

      def inspect = "#<#{self.class.name} #{@folder}>"

      private

      def restore(record)
        case record.type
        when KEY then restore_key(*record.body.unpack("a#{KEY_BYTES}Q<"))
        when UPDATE
          @key ||= SecureRandom.bytes(KEY_BYTES)
          entry = Entry.read(record)
          lose_up_to(entry.position - 1, @key) if entry.position > @next_position
          note(entry, record.place)
          @newest_at = entry.published_at
          yield entry
        end
      end

      # A new key begins one position further on, so that the gap event has a position that no update had.
      def restore_key(key, position)
        before = @key || key
        @next_position = position unless @key
        @key = key
        lose_up_to(position - 1, before) if position > @next_position
      end

      def lose_up_to(position, key_before)
        @lose.call(@next_position, position, key_before)
        @next_position = position + 1
      end

      # Written first in every segment, and twice: a damaged byte must not give updates the ids of another key.
      def write_key(journal)
        choose_key(journal) unless @begun
        @begun = true
        2.times { journal.append(KEY, 0, [@key, @next_position].pack("a#{KEY_BYTES}Q<"), urgent: true) }
      end

      # Where the end of the history may be missing, new updates get other ids than the missing ones had.
      def choose_key(journal)
        before = @key
        return @key = SecureRandom.bytes(KEY_BYTES) unless before
        return unless @given ? @given >= @next_position : @watermark.copied? || !journal.in_order?
        @loss = {newest: @newest_at, known: (@given - @next_position + 1 if @given), space: journal.open_end, copied: @watermark.copied?}
        @key = SecureRandom.bytes(KEY_BYTES)
        lose_up_to(@next_position, before)
      end

      def report_losses
        @journal.holes.each { |hole| report(LossReport.hole(@folder, @journal.torn_segment, hole.from, hole.to, hole.missing)) }
        report(LossReport.tail(@folder, level: @level, **@loss)) if @loss
      end

      def report(message) = @report&.call(:error, message)

      def store(entry)
        position = @journal.append(UPDATE, entry.flags, entry.to_bytes)
        note(entry, @journal.place)
        @journal.write
        @watermark.note(entry.position)
        @journal.want_sync(position) if @level == :synced
        @flush_worker.wake
        position unless safe?(position)
      end

      def safe?(position) = ((@level == :synced) ? @journal.synced : @journal.written) >= position

      def note(entry, place)
        @ends[place >> 32] = entry.position
        @retention.add(entry.position, entry.published_at)
        @next_position = entry.position + 1
      end

      def failing
        yield
      rescue Log::Journal::Full, Log::Journal::Failed, LimitExceeded => error
        raise StorageFailed, "the update cannot be stored: #{error.message}"
      end
    end
  end
end
