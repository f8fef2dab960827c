# frozen_string_literal: true

require_relative "../log"
require_relative "event"
require_relative "gap"
require_relative "record"

module Hikyaku
  class Hub
    # The newest updates, bounded in bytes of memory, and their event ids. Records are stored as bytes in a ring; the newest few are
    # held as objects too, because every delivery reads them. The newest is always retained, even when it alone exceeds the
    # capacity. The twin of hk_log.
    class History
      # Bytes of memory that a record takes beside its own, in either engine: see HK_RECORD_OVERHEAD.
      OVERHEAD = 153
      # How many of the newest records are held as objects, and the fraction of the capacity that these may take.
      RECENT = 64
      RECENT_FRACTION = 32
      # A larger gap between positions is not filled: nothing before it is remembered.
      MAX_GAP = 1 << 20
      private_constant :OVERHEAD, :RECENT, :RECENT_FRACTION, :MAX_GAP

      attr_reader :capacity

      def initialize(capacity:, topics:, cipher:)
        @capacity = capacity
        @topics = topics
        @ring = Log::Ring.new(capacity: capacity, overhead: OVERHEAD)
        @chosen_ids = Log::IdIndex.new
        @ids = Log::Generations.new(cipher)
        @recent = []
        @recent_bytes = 0
      end

      # Appends the event that an update becomes, and evicts the oldest ones while there are too many bytes. Returns its position
      # and id.
      def append(update, topics:, type:, private:)
        position = head + 1
        id = update.id || @ids.seal(position)
        frame = Event.encode(id: id, data: update.data, type: type, retry_after: update.retry_after)
        append_record(Record.new(frame: frame, topics: topics, id: id, private: private))
        @chosen_ids.add(id, position) if update.id
        evict
        [position, id]
      end

      # Leaves out the positions up to `upto`, whose updates were lost, with an event there that says so. Later ids are made with
      # another key if there is one.
      def append_gap(upto, cipher = nil)
        after = @ids.seal(head)
        @ids.begin(upto, cipher) if cipher
        return restart_at(upto + 1) if upto - head > MAX_GAP
        id = @ids.seal(upto)
        frame = Gap.event(id: id, after: after, reason: "lost")
        forget_recent
        @ring.leave_out_until(upto)
        append_record(Record.new(frame: frame, topics: [], id: id, private: false))
        evict
      end

      # Forgets what stands before a position.
      def keep_from(position)
        @ring.keep_from(position)
        @chosen_ids.keep_from(@ring.first)
        forget_recent if @recent.size > size
      end

      # Goes on at a position, with none retained before it.
      def restart_at(position)
        @ring.go_on_at(position)
        @chosen_ids.keep_from(@ring.first)
        forget_recent
      end

      # Makes ids with another key from now on; those made before are unknown.
      def rekey(cipher = Log::PositionCipher.new) = @ids = Log::Generations.new(cipher)

      def [](position)
        from_newest = @ring.head - position
        return @recent[-1 - from_newest] if from_newest >= 0 && from_newest < @recent.size
        packed = @ring[position]
        Record.unpack(packed, @topics) if packed
      end

      # The id that the hub gives a position.
      def id_of(position) = @ids.seal(position)

      # The position of an event after which nothing has been lost; nil where there is none.
      def position_of(id)
        position = @chosen_ids[id] || @ids.open(id, head)
        position if position && position >= first - 1
      end

      # The position after which a subscriber goes on, and the answer for `Mercure-Last-Event-ID`.
      #
      # Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing".
      def resolve(last_event_id, grant)
        if last_event_id.nil?
          [head, nil]
        elsif last_event_id.empty?
          [head, size.zero? ? "earliest" : cursor(grant)]
        elsif last_event_id != "earliest" && (position = position_of(last_event_id))
          [position, last_event_id]
        else
          [first - 1, "earliest"]
        end
      end

      # An id that stands for the end of the log and tells nothing of private events.
      def cursor(grant)
        record = self[head]
        (record && grant.admits?(record)) ? record.id : @ids.seal(head)
      end

      def last_event_id = self[head]&.id

      def first = @ring.first

      def head = @ring.head

      def size = @ring.size

      def bytes = @ring.bytes + @chosen_ids.bytes

      private

      def append_record(record)
        @ring.append(record.head, record.frame)
        @recent << record
        @recent_bytes += record.frame.bytesize
      end

      def evict
        while bytes > @capacity && @ring.first < @ring.head
          @ring.shift
          @chosen_ids.keep_from(@ring.first)
        end
        while @recent.size > RECENT || (@recent_bytes > @capacity / RECENT_FRACTION && @recent.size > 1) || @recent.size > size
          @recent_bytes -= @recent.shift.frame.bytesize
        end
      end

      def forget_recent
        @recent.clear
        @recent_bytes = 0
      end
    end
  end
end
