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

      # @return [Integer] bytes that they may cost
      attr_reader :capacity

      # @param capacity [Integer] bytes
      # @param topics [Topics] of the hub
      def initialize(capacity:, topics:)
        @capacity = capacity
        @topics = topics
        @ring = Log::Ring.new(capacity: capacity, overhead: OVERHEAD)
        @ids = Log::IdIndex.new
        @recent = []
        @recent_bytes = 0
      end

      # Appends a record and evicts the oldest ones while there are too many bytes.
      #
      # @param record [Record]
      # @param chosen [Boolean] its publisher chose the id
      # @return [Integer] its position
      def append(record, chosen: false)
        position = @ring.append(record.head, record.frame)
        @ids.add(record.id, position) if chosen
        evict while bytes > @capacity && @ring.first < @ring.head
        remember(record)
        position
      end

      # Appends a record further on: there is none at the positions between.
      #
      # @param position [Integer] of the record, not below the one that it would have
      # @param record [Record]
      # @return [Integer] its position
      def append_at(position, record)
        forget_recent
        @ring.leave_out_until(position)
        append(record)
      end

      # @param position [Integer] the oldest that is kept
      # @return [void]
      def keep_from(position)
        @ring.keep_from(position)
        @ids.keep_from(@ring.first)
        forget_recent if @recent.size > size
      end

      # @param position [Integer] of the next record: see Log::Ring
      # @return [void]
      def go_on_at(position)
        @ring.go_on_at(position)
        @ids.keep_from(@ring.first)
        forget_recent
      end

      # @param position [Integer]
      # @return [Record, nil] nil when it was evicted or not yet written
      def [](position)
        from_newest = @ring.head - position
        return @recent[-1 - from_newest] if from_newest >= 0 && from_newest < @recent.size
        packed = @ring[position]
        Record.unpack(packed, @topics) if packed
      end

      # @param id [String] that a publisher chose
      # @return [Integer, nil] the earliest retained position that bears it
      def position_of(id) = @ids[id]

      # @return [Integer] the oldest retained position; `head + 1` when nothing is retained
      def first = @ring.first

      # @return [Integer] the newest position; 0 before the first append
      def head = @ring.head

      # @return [Integer] how many positions are retained
      def size = @ring.size

      # @return [Integer] bytes that they cost
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
