# frozen_string_literal: true

module Hikyaku
  module Log
    # The newest records, bounded in bytes. Positions are dense and rise from 1.
    #
    #     evicted …  | first … head |  next
    #                 └─ retained ─┘
    #
    # A record is anything with `bytesize`: what it costs in memory. The newest record is always kept, even
    # when it alone is larger than the ring. Not thread-safe: the engine that owns it is.
    class Ring
      # @return [Integer] the oldest retained position; `head + 1` when nothing is retained
      attr_reader :first
      # @return [Integer] the newest position; 0 before the first append
      attr_reader :head
      # @return [Integer] bytes that the retained records cost
      attr_reader :bytes
      # @return [Integer] bytes that they may cost
      attr_reader :capacity

      # @param capacity [Integer] bytes
      def initialize(capacity:)
        @capacity = capacity
        @records = []
        @first = 1
        @head = 0
        @bytes = 0
      end

      # Appends a record and evicts the oldest ones while the ring is too large. Amortised O(1).
      #
      # @param record [#bytesize]
      # @yieldparam evicted [#bytesize] a record that was dropped, oldest first
      # @yieldparam position [Integer] where it was
      # @return [Integer] its position
      def append(record, &evicted)
        @records << record
        @bytes += record.bytesize
        @head += 1
        evict(&evicted) while @bytes > @capacity && @first < @head
        @head
      end

      # Evicts what stands before a position.
      #
      # @param position [Integer] the oldest that is kept
      # @yieldparam evicted [#bytesize] see #append
      # @yieldparam position [Integer]
      # @return [void]
      def keep_from(position, &evicted)
        evict(&evicted) while @first < position && @first <= @head
      end

      # Goes on at a position: nothing before it is retained.
      #
      # @param position [Integer] of the next record, not below the one that it would have
      # @yieldparam evicted [#bytesize] see #append
      # @yieldparam position [Integer]
      # @return [void]
      def go_on_at(position, &evicted)
        return if position == @head + 1
        keep_from(@head + 1, &evicted)
        @first = position
        @head = position - 1
      end

      # @param position [Integer]
      # @return [#bytesize, nil] the record, or nil when it was evicted or not yet written
      def [](position)
        return if position < @first || position > @head
        @records[position - @first]
      end

      # @return [Integer] how many records are retained
      def size = @records.size

      private

      def evict
        evicted = @records.shift
        @bytes -= evicted.bytesize
        @first += 1
        yield evicted, @first - 1 if block_given?
      end
    end
  end
end
