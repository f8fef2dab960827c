# frozen_string_literal: true

require_relative "../../log/journal"
require_relative "dropping"
require_relative "records"
require_relative "segment"

module Hikyaku
  module Broker
    class RubyEngine
      # The broker's journal: what stands in which segment, and when a segment is not needed any more.
      #
      # A segment is needed while a message stands in it that is not done with, and while a FREE or STATE in it speaks of a message
      # in an older segment that is still there: else that message would come back as it was.
      #
      #     segment 1   ENQUEUE 7 ◄──────┐
      #     segment 2   ENQUEUE 8        │ needs segment 1 gone first
      #     segment 3   FREE 7 ──────────┘
      #
      # What is freed in a turn is one record.
      class Ledger
        # Ids in one FREE: the smallest segment holds it, whatever it begins with.
        IDS = 1024
        private_constant :IDS

        include Dropping

        # @param max_bytes [Integer] of all segments; 0: any number
        def initialize(max_bytes)
          @max_bytes = max_bytes
          @segments = {}
          @freed = []
          @freed_in = {}
          @older = {}
          @live_bytes = @dropped = 0
          @droppable = false
        end

        # @param storage [String] the folder
        # @param remember [#call] is given the ledger at the beginning of each segment
        # @param options [Hash] of Log::Journal.open
        # @yieldparam record [Log::Journal::Record] what there was
        # @return [void]
        def open(storage, remember:, **options, &replay)
          begin_with = lambda do |journal|
            @journal = journal
            segment_at(journal.current)
            @droppable = true
            remember.call(self)
            name(@naming) if @naming
          end
          @journal = Log::Journal.open(storage, on_begin: begin_with, **options, &replay)
          @first_own = @journal.current
          # Those without any record are not needed, either.
          @segments = (@journal.oldest..@first_own).to_h { |number| [number, segment_at(number)] }
        end

        # @return [Hash{Integer => Segment}] oldest first
        attr_reader :segments
        # @return [Integer] bytes of records of messages that are not done with
        attr_reader :live_bytes

        # Appends a record that stands for itself.
        #
        # @param type [Integer]
        # @param body [String]
        # @return [void]
        # @raise [Log::Journal::Full]
        def say(type, body, urgent: true) = @journal.append(type, 0, body, urgent: urgent)

        # As `say`, of what is said again in the next segment, or may be missed.
        #
        # @param type [Integer]
        # @param body [String]
        # @return [void]
        def mention(type, body)
          say(type, body, urgent: more_than_frees?)
        rescue Log::Journal::Full, Log::Journal::Failed
          nil
        end

        # Appends a message behind the name of its queue, which stands in the same segment.
        #
        # @param message [Message]
        # @param copy [Boolean] it stands in an older segment, too
        # @return [void]
        # @raise [Log::Journal::Full, LimitExceeded]
        def enqueue(message, copy: false)
          flags, body = Records.enqueue(message, message.content || content(message), copy: copy)
          @naming = message.queue
          name(message.queue)
          @journal.append(Records::ENQUEUE, flags, body)
          stands(message, @journal.place, body.bytesize)
        ensure
          @naming = nil
        end

        # A segment stays as long as another.
        #
        # @param number [Integer, nil]
        # @param other [Integer]
        # @return [void]
        def keep(number, other) = (segment_at(number).speaks_of[other] = true if number)

        # Notes where a message stands.
        #
        # @param message [Message]
        # @param place [Integer]
        # @param bytes [Integer] of its record's body
        # @return [void]
        def stands(message, place, bytes)
          leave(message) if message.place
          segment = segment_at(place >> 32)
          message.place = place
          message.stored = bytes + 24
          segment.live[message.id] = message
          segment.live_bytes += message.stored
          @live_bytes += message.stored
        end

        # A message is done with.
        #
        # @param message [Message]
        # @return [void]
        def free(message)
          message.place or return
          @freed << message.id
          forget(message, @freed_in)
        end

        # It is done with, as a record in this segment says.
        #
        # @param message [Message]
        # @param number [Integer] of the segment
        # @return [void]
        def freed(message, number) = forget(message, segment_at(number).speaks_of)

        # Says what became of a message.
        #
        # @param message [Message]
        # @param delay [Integer] ms that it waits; 0: it does not
        # @return [void]
        def changed(message, delay: 0)
          return unless message.place
          flags, body = Records.state(message, delay)
          @journal.append(Records::STATE, flags, body, urgent: more_than_frees?)
          speaks(message, @journal.current)
        rescue Log::Journal::Full, Log::Journal::Failed
          nil # a restart finds the message as it was before, which loses nothing
        end

        # A record in this segment speaks of a message.
        #
        # @param message [Message]
        # @param number [Integer]
        # @return [void]
        def speaks(message, number) = note(message, segment_at(number).speaks_of)

        # The end of a turn: what was freed is said, what was appended is written, and what is not needed is dropped.
        #
        # @return [Integer] position of what has to be synced for all of it to be
        def commit
          say_freed until @freed.empty?
          drop_dead_segments if @droppable
          @journal.write
          @journal.appended
        end

        # @return [Integer] position up to which all is in the hands of the kernel
        def written = @journal.written

        # @param message [Message]
        # @return [String] properties and payload, from the disk
        def content(message)
          record = @journal.reread(message.place)
          Records.content(record.flags, record.body)
        end

        # The second half of the last segment that there may be is for what frees something.
        #
        # @return [Boolean] it takes nothing but that
        def full? = @journal.full? || (@max_bytes > 0 && standing * segment_bytes >= @max_bytes && (@journal.place & 0xffffffff) > segment_bytes / 2)

        # @return [Boolean] the disk had no room for another segment
        def out_of_space? = @journal.full?

        # @return [String] why nothing but what frees something is taken
        def full_of
          case @journal.shortage
          when Errno::EMFILE, Errno::ENFILE then "the broker may open no other file for its journal"
          when nil then "the journal has the bytes that it may have (broker_max_storage)"
          else "there is no room on the broker's disk"
          end
        end

        # There may be room again.
        #
        # @return [void]
        def retry = @journal.retry

        # A record says that a message stands in a later segment, too.
        #
        # @param message [Message] as it stood before
        # @return [void]
        def copied(message)
          (@older[message.id] ||= []) << message.segment
          leave(message)
        end

        # @param position [Integer]
        # @return [void]
        def want_sync(position) = @journal.want_sync(position)

        # @return [Integer]
        def synced = @journal.synced

        # @return [Boolean]
        def sync_wanted? = @journal.sync_wanted?

        # @return [Boolean]
        def space_wanted? = @journal.space_wanted?

        # Any thread.
        #
        # @return [void]
        def sync = @journal.sync

        # Any thread.
        #
        # @return [void]
        def make_space = @journal.make_space

        # @return [Boolean] something waits to be written until a segment has ended
        def pending? = @journal.pending?

        # @return [void]
        def close
          say_freed until @freed.empty?
          @journal.close
        end

        # @return [void]
        def abandon = @journal.abandon

        # @return [Integer] number of the segment that is being written
        def current = @journal.current

        # @return [Integer] bytes of a segment
        def segment_bytes = @journal.segment_bytes

        # @return [Hash{Symbol => Integer}] by the names of hk_journal_stats_t
        def stats
          figures = @journal.stats
          {records: figures.records, bytes: figures.bytes, batches: figures.batches, syncs: figures.syncs, sync_ns: (figures.sync_seconds * 1e9).round,
           longest_sync_ns: (figures.longest_sync * 1e9).round, segments: figures.segments, spares: figures.spares, torn_repaired: figures.torn_repaired,
           torn_places: figures.torn_places, torn_missing: figures.torn_missing}
        end

        private

        # On a full disk what is left of the last segment is for what frees something.
        def more_than_frees? = !@journal.full?

        # The name of a queue stands in the segment that is being written: a segment that is begun meanwhile gets it, too.
        def name(queue)
          return if queue.named == @journal.current
          @journal.append(Records::QUEUE, 0, Records.queue(queue))
          queue.named = @journal.current
        end

        def segment_at(number) = @segments[number] ||= Segment.new(number)

        def leave(message)
          segment = @segments[message.segment] or return
          segment.live.delete(message.id)
          segment.live_bytes -= message.stored
          @live_bytes -= message.stored
          @droppable = true if segment.live.empty? && segment.number != @journal&.current
        end

        def forget(message, speaks_of)
          note(message, speaks_of)
          leave(message)
          @older.delete(message.id) unless @older.empty?
          message.place = nil
        end

        def note(message, speaks_of)
          speaks_of[message.segment] = true
          return if @older.empty?
          @older[message.id]&.each { |number| speaks_of[number] = true if @segments.key?(number) }
        end

        def say_freed
          @journal.append(Records::FREE, 0, @freed.shift(IDS).pack("Q<*"), urgent: true)
          segment_at(@journal.current).speaks_of.merge!(@freed_in)
          @freed_in = {} if @freed.empty?
        end
      end
    end
  end
end
