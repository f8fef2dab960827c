# frozen_string_literal: true

require_relative "../log"
require_relative "record"

module Hikyaku
  class Hub
    # The newest updates, bounded in bytes of memory: records as bytes in a ring, and the newest few as objects too, because
    # those are asked for again and again. The newest is always kept, even when it alone is larger.
    class History
      # What a record costs beside its bytes, in either engine: see HK_RECORD_OVERHEAD.
      OVERHEAD = 153
      # So many of the newest are objects, if they are no more than a part of the history.
      RECENT = 64
      RECENT_SHARE = 32
      private_constant :OVERHEAD, :RECENT, :RECENT_SHARE

      attr_reader :capacity

      def initialize(capacity:, topics:)
        @capacity = capacity
        @topics = topics
        @ring = Log::Ring.new(capacity: capacity, overhead: OVERHEAD)
        @ids = Log::IdIndex.new
        @recent = []
        @recent_bytes = 0
      end

      # Appends a record and evicts the oldest ones while there are too many bytes.
      def append(record, chosen: false)
        position = @ring.append(record.head, record.frame)
        @ids.add(record.id, position) if chosen
        evict while bytes > @capacity && @ring.first < @ring.head
        remember(record)
        position
      end

      # Appends a record further on: there is none at the positions between.
      def append_at(position, record)
        forget_recent
        @ring.leave_out_until(position)
        append(record)
      end

      def keep_from(position)
        @ring.keep_from(position)
        @ids.keep_from(@ring.first)
        forget_recent if @recent.size > size
      end

      def go_on_at(position)
        @ring.go_on_at(position)
        @ids.keep_from(@ring.first)
        forget_recent
      end

      def [](position)
        from_newest = @ring.head - position
        return @recent[-1 - from_newest] if from_newest >= 0 && from_newest < @recent.size
        packed = @ring[position]
        Record.unpack(packed, @topics) if packed
      end

      def position_of(id) = @ids[id]

      def first = @ring.first

      def head = @ring.head

      def size = @ring.size

      def bytes = @ring.bytes + @ids.bytes

      private

      def evict
        @ring.shift
        @ids.keep_from(@ring.first)
      end

      def remember(record)
        @recent << record
        @recent_bytes += record.frame.bytesize
        while @recent.size > RECENT || (@recent_bytes > @capacity / RECENT_SHARE && @recent.size > 1) || @recent.size > size
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
