# frozen_string_literal: true

require_relative "../errors"
require_relative "../../log/journal"
require_relative "records"
require_relative "segment_index"

module Hikyaku
  module Broker
    class RubyEngine
      # The broker's journal: it appends records, reads contents back, and drops segments that are not needed. All that is freed in a turn
      # is one record.
      class Store
        # Ids in one FREE: the smallest segment holds it, whatever that begins with.
        MAX_FREED = 1024
        # Messages, and bytes, that a tick copies out of the oldest segment.
        COPIES = 100
        COPY_BYTES = 256 * 1024
        # Bytes of a record beside its body.
        RECORD_BYTES = 24
        # Seconds after which a full disk is tried again.
        RETRY_AFTER = 1.0
        private_constant :MAX_FREED, :COPIES, :COPY_BYTES, :RECORD_BYTES, :RETRY_AFTER

        # Messages that were copied out of old segments.
        attr_reader :copied_count

        # `max_bytes` are those of all segments; 0: any number.
        def initialize(clock, max_bytes)
          @clock = clock
          @max_bytes = max_bytes
          @index = SegmentIndex.new
          @freed = []
          @freed_mentions = {}
          @copied_count = 0
        end

        # `on_begin` is called with the store at the beginning of each segment; the block gets each record that there was.
        def open(folder, on_begin:, **options, &replay)
          begin_segment = lambda do |journal|
            @journal = journal
            @index[journal.current]
            @index.droppable = true
            on_begin.call(self)
            append_name(@naming) if @naming
          end
          @journal = Log::Journal.open(folder, on_begin: begin_segment, **options, &replay)
          @index.open(@journal.oldest..@journal.current, @journal.current)
        end

        # Raises Log::Journal::Full.
        def append(type, body, urgent: true) = @journal.append(type, 0, body, urgent: urgent)

        # Appends what may be missing, or is repeated in the next segment.
        def try_append(type, body)
          append(type, body, urgent: !@journal.full?)
        rescue Log::Journal::Full, Log::Journal::Failed
          nil
        end

        # Appends a message behind the name of its queue, in the same segment. Raises Log::Journal::Full and LimitExceeded.
        def append_message(message, copy: false)
          flags, body = Records.enqueue(message, message.content || content(message), copy: copy)
          @naming = message.queue
          append_name(message.queue)
          @journal.append(Records::ENQUEUE, flags, body)
          stored(message, @journal.place, body.bytesize)
        ensure
          @naming = nil
        end

        # Appends what has become of a message, and the milliseconds that it waits.
        def changed(message, delay: 0)
          return unless message.place
          flags, body = Records.state(message, delay)
          # The rest of the last segment on a full disk is for records that free something.
          @journal.append(Records::STATE, flags, body, urgent: !@journal.full?)
          mentions(message, @journal.current)
        rescue Log::Journal::Full, Log::Journal::Failed
          nil # a restart finds the message as it was before, which loses nothing
        end

        def free(message)
          message.place or return
          @freed << message.id
          @index.forget(message, @freed_mentions, current)
        end

        # The record of a message is at this place.
        def stored(message, place, bytes)
          @index.remove(message, @journal&.current) if message.place
          message.place = place
          message.stored_bytes = bytes + RECORD_BYTES
          @index.add(message, place >> 32)
        end

        # A record in this segment frees a message.
        def freed(message, number) = @index.forget(message, @index[number].mentions, @journal&.current)

        # A record in this segment mentions a message.
        def mentions(message, number) = @index.mention(message, @index[number].mentions)

        # A message has another record in a later segment.
        def copied(message)
          @index.copied_from(message, message.segment)
          @index.remove(message, @journal&.current)
        end

        # Keeps a segment as long as another.
        def keep(number, other) = (@index[number].mentions[other] = true if number)

        # Reads properties and payload from the disk. Raises Log::Journal::Unread.
        def content(message)
          record = @journal.reread(message.place)
          Records.content(record.flags, record.body)
        end

        # Ends a turn, and returns the position that has to be synced for all of it to be.
        def commit
          append_freed until @freed.empty?
          @index.drop(current) { |number| @journal.drop(number) } if @index.droppable
          @journal.write
          @journal.appended
        end

        # Copies messages of the oldest segment to the newest one where most of the journal is not needed, and tries a full disk again.
        def tick
          compact
          return unless (at = retry_at) && at <= @clock.now
          @journal.retry
          @retry_at = nil
        end

        def next_timer = (@compacting || (compactable && !@journal.full?)) ? @clock.now : retry_at

        # Copies messages of a segment, so that it can be dropped, and returns how many.
        def compact_segment(segment, max_messages, max_bytes)
          count = 0
          while count < max_messages && max_bytes > 0 && (message = segment.live.first&.last)
            append_message(message, copy: true)
            @index.copied_from(message, segment.number)
            max_bytes -= message.stored_bytes
            count += 1
          end
          count
        rescue LimitExceeded
          @index.unmovable!(segment)
          count
        end

        # Whether it takes nothing but what frees something: half of the last segment that there may be is for that.
        def full? = @journal.full? || (@max_bytes > 0 && @index.standing * segment_bytes >= @max_bytes && (@journal.place & 0xffffffff) > segment_bytes / 2)

        def full_because
          case @journal.shortage
          when Errno::EMFILE, Errno::ENFILE then "the broker may open no other file for its journal"
          when nil then "the journal has the bytes that it may have (broker_max_storage)"
          else "there is no room on the broker's disk"
          end
        end

        # Oldest first.
        def segments = @index

        def live_bytes = @index.live_bytes

        # Number of the segment that is being written.
        def current = @journal.current

        def segment_bytes = @journal.segment_bytes

        # Positions up to which all records are in the hands of the kernel, or on the disk.
        def written = @journal.written

        def synced = @journal.synced

        def want_sync(position) = @journal.want_sync(position)

        def sync_wanted? = @journal.sync_wanted?

        def space_wanted? = @journal.space_wanted?

        # Any thread.
        def sync = @journal.sync

        # Any thread.
        def make_space = @journal.make_space

        # Whether something waits to be written until a segment has ended.
        def pending? = @journal.pending?

        def close
          append_freed until @freed.empty?
          @journal.close
        end

        def abandon = @journal.abandon

        # By the names of hk_journal_stats_t.
        def stats
          figures = @journal.stats
          {records: figures.records, bytes: figures.bytes, batches: figures.batches, syncs: figures.syncs, sync_ns: (figures.sync_seconds * 1e9).round,
           longest_sync_ns: (figures.longest_sync * 1e9).round, segments: figures.segments, spares: figures.spares, torn_repaired: figures.torn_repaired,
           torn_places: figures.torn_places, torn_missing: figures.torn_missing}
        end

        private

        def compactable = @index.compactable(current, segment_bytes)

        def compact
          segment = compactable or return @compacting = false
          @copied_count += compact_segment(segment, COPIES, COPY_BYTES)
          @compacting = true
        rescue Log::Journal::Full, Log::Journal::Unread
          @compacting = false
        end

        # The journal is not told when there is room on the disk again.
        def retry_at = @retry_at = @journal.full? ? @retry_at || @clock.now + RETRY_AFTER : nil

        # A segment that is begun by this record, or by the message behind it, gets the name too.
        def append_name(queue)
          return if queue.named == @journal.current
          @journal.append(Records::QUEUE, 0, Records.queue(queue))
          queue.named = @journal.current
        end

        def append_freed
          @journal.append(Records::FREE, 0, @freed.shift(MAX_FREED).pack("Q<*"), urgent: true)
          @index[@journal.current].mentions.merge!(@freed_mentions)
          @freed_mentions = {} if @freed.empty?
        end
      end
    end
  end
end
