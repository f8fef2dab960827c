# frozen_string_literal: true

require "fileutils"
require "securerandom"
require_relative "../error"
require_relative "../log/journal"
require_relative "storage/entry"
require_relative "storage/loss"
require_relative "storage/syncing"
require_relative "storage/watermark"
require_relative "storage/youth"

module Hikyaku
  # An update could not be kept, so it was not published: there is no space, or the disk has failed.
  class StorageFailed < StandardError
    include Error
  end

  class Hub
    # Keeps a hub's log over a restart: a journal of what was published, for as long as the log's ring has it.
    #
    #     storage = Storage.new("/var/lib/hub", history: 33_554_432, level: :synced)
    #     storage.open { |entry| ring_takes(entry) }
    #     ticket = storage.append(update, …)  under the hub's lock
    #     storage.await(ticket)               in any thread: until it is as safe as the level says
    #     storage.retain(from: position)      what stands before is not needed any more
    #
    # docs/journal.md, section "What the hub keeps".
    class Storage
      UPDATE = 16
      KEY = 17
      KEY_BYTES = 16
      # A journal has about so many segments, so that what is not needed any more goes in so many steps.
      SEGMENTS = 4
      # Bytes that a segment may have.
      SEGMENT_BYTES = ((1 << 20)..(32 << 20))
      BLOCK = 4096
      LEVELS = %i[written synced].freeze
      private_constant :UPDATE, :KEY, :KEY_BYTES, :SEGMENTS, :SEGMENT_BYTES, :BLOCK, :LEVELS

      def self.segment_bytes(history) = (history / SEGMENTS / BLOCK * BLOCK).clamp(SEGMENT_BYTES)

      attr_reader :key
      attr_reader :next_position

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
        @ends = {} # numbers of segments, and the newest position in each
        @youth = Youth.new(age, clock)
        @lock = Mutex.new
      end

      # Opens the journal, or makes one, and hands over what it has. From the first entry on there is a key.
      def open(lose:)
        FileUtils.mkdir_p(@folder, mode: 0o700)
        @lose = lose
        @given = @watermark.read
        @journal = Log::Journal.open(@folder, on_begin: method(:remember), **@options) { |record| restore(record) { |entry| yield entry } }
        @syncing = Syncing.new(@journal, @lock)
        @watermark.begin(@next_position - 1)
        tell
        self
      rescue SystemCallError, Log::Journal::Full, Log::Journal::Failed => error
        raise StorageFailed, "the hub's history cannot be kept in #{@folder}: #{error.message}"
      end

      # Keeps an update, before anybody sees it.
      def append(update, topics:, type: update.type)
        entry = Entry.new(position: @next_position, published_at: @clock.call, topics: topics, data: update.data, private: update.private?,
          id: update.id, type: type, retry_after: update.retry_after)
        failing { @lock.synchronize { keep(entry) } }
      end

      # Waits until what was kept is as safe as the level says.
      def await(ticket)
        failing { @syncing.await { safe?(ticket) } } if ticket
      end

      # What stands before a position is not needed any more.
      def retain(from:)
        return unless @ends.size > 1 && @ends.first.last < from
        @lock.synchronize do
          while @ends.first.last < from && @ends.first.first != @journal.current
            number, = @ends.shift
            failing { @journal.drop(number) }
          end
        end
      end

      def young_from = @youth.from

      # Ends in order. Harmless when repeated.
      def close
        @syncing.stop
        failing { @journal.close }
      ensure
        @watermark.close
      end

      # Lets go of it, as a crash would: it is another process's.
      def abandon
        @syncing.stop
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
          missing_up_to(entry.position - 1, @key) if entry.position > @next_position
          note(entry, record.place)
          @newest_at = entry.published_at
          yield entry
        end
      end

      # With another key the position before the next is nobody's but the gap's.
      def restore_key(key, position)
        before = @key || key
        @next_position = position unless @key
        @key = key
        missing_up_to(position - 1, before) if position > @next_position
      end

      def missing_up_to(position, key_before)
        @lose.call(@next_position, position, key_before)
        @next_position = position + 1
      end

      # First in every segment, and twice: a damaged byte must not give updates the ids of another key.
      def remember(journal)
        begin_again(journal) unless @begun
        @begun = true
        2.times { journal.append(KEY, 0, [@key, @next_position].pack("a#{KEY_BYTES}Q<"), urgent: true) }
      end

      # Where the end may be missing, what comes has other ids than what is missing.
      def begin_again(journal)
        before = @key
        return @key = SecureRandom.bytes(KEY_BYTES) unless before
        return unless @given ? @given >= @next_position : @watermark.copied? || !journal.in_order?
        @loss = {newest: @newest_at, known: (@given - @next_position + 1 if @given), space: journal.open_end, copied: @watermark.copied?}
        @key = SecureRandom.bytes(KEY_BYTES)
        missing_up_to(@next_position, before)
      end

      def tell
        @journal.holes.each { |hole| report(Loss.hole(@folder, @journal.torn_segment, hole.from, hole.to, hole.missing)) }
        report(Loss.tail(@folder, level: @level, **@loss)) if @loss
      end

      def report(sentence) = @report&.call(:error, sentence)

      def keep(entry)
        position = @journal.append(UPDATE, entry.flags, entry.to_bytes)
        note(entry, @journal.place)
        @journal.write
        @watermark.note(entry.position)
        @journal.want_sync(position) if @level == :synced
        @syncing.rouse
        position unless safe?(position)
      end

      def safe?(position) = ((@level == :synced) ? @journal.synced : @journal.written) >= position

      def note(entry, place)
        @ends[place >> 32] = entry.position
        @youth.note(entry.position, entry.published_at)
        @next_position = entry.position + 1
      end

      def failing
        yield
      rescue Log::Journal::Full, Log::Journal::Failed, LimitExceeded => error
        raise StorageFailed, "the update cannot be kept: #{error.message}"
      end
    end
  end
end
