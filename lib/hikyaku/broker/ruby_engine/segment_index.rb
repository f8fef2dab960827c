# frozen_string_literal: true

require_relative "segment"

module Hikyaku
  module Broker
    class RubyEngine
      # Which segments of the journal are needed.
      #
      # A segment is needed while the record of a message in it is live, and while a FREE or STATE in it mentions a message of an older
      # segment that is still there: else that message would come back as it was.
      #
      #     segment 1   ENQUEUE 7 ◄──────┐
      #     segment 2   ENQUEUE 8        │ needs segment 1 gone first
      #     segment 3   FREE 7 ──────────┘
      class SegmentIndex
        # From so many segments on, and with more than twice the bytes that are live, the oldest is compacted.
        MIN_COMPACTED = 4
        private_constant :MIN_COMPACTED

        # Bytes of the records of live messages.
        attr_reader :live_bytes
        # Whether there may be segments to drop.
        attr_accessor :droppable

        def initialize
          @segments = {}
          @older = {}
          @live_bytes = @dropped = 0
          @droppable = false
        end

        # Adds the segments that the journal has, those without any record too. `first_own` is the first of this process.
        def open(numbers, first_own)
          @first_own = first_own
          @segments = numbers.to_h { |number| [number, self[number]] }
        end

        def [](number) = @segments[number] ||= Segment.new(number)

        # Oldest first.
        def each(&block) = @segments.each_value(&block)
        include Enumerable

        # Segments that are there and are to stay.
        def standing = @segments.size - @dropped

        def add(message, number)
          segment = self[number]
          segment.live[message.id] = message
          segment.live_bytes += message.stored_bytes
          @live_bytes += message.stored_bytes
        end

        # `current` is the segment that is being written.
        def remove(message, current)
          segment = @segments[message.segment] or return
          segment.live.delete(message.id)
          segment.live_bytes -= message.stored_bytes
          @live_bytes -= message.stored_bytes
          @droppable = true if segment.live.empty? && segment.number != current
        end

        # Removes a message that is done with, as a record says that `mentions` belong to.
        def forget(message, mentions, current)
          mention(message, mentions)
          remove(message, current)
          @older.delete(message.id) unless @older.empty?
          message.place = nil
        end

        # Notes that a record mentions a message, in each segment where it has a record.
        def mention(message, mentions)
          mentions[message.segment] = true
          return if @older.empty?
          @older[message.id]&.each { |number| mentions[number] = true if @segments.key?(number) }
        end

        # Notes that a copy of a message is in a later segment than this one.
        def copied_from(message, number) = (@older[message.id] ||= []) << number

        # The oldest segment with live messages, when it is time to compact it.
        def compactable(current, segment_bytes)
          return if standing < MIN_COMPACTED || standing * segment_bytes <= 2 * @live_bytes
          segment = @segments.each_value.find { |each| !each.dropped && !each.live.empty? }
          segment unless segment.nil? || segment.number == current || segment.equal?(@unmovable)
        end

        # Its messages do not fit into a new segment, which begins with more, or is smaller. Other segments are not compacted either:
        # what mentions these messages has to stay.
        def unmovable!(segment) = @unmovable = segment

        # Yields the number of each segment that is not needed any more. In the order of their numbers: one that goes may let the next
        # ones go.
        def drop(current)
          @droppable = false
          @segments.each_value do |segment|
            next if segment.dropped || segment.number == current || !segment.live.empty?
            segment.mentions.delete_if { |number, _| number == segment.number || gone?(number) }
            next unless segment.mentions.empty?
            segment.dropped = true
            yield segment.number
          end
          @segments.delete_if { |number, segment| segment.dropped && gone?(number) }
          @dropped = @segments.count { |_, segment| segment.dropped }
        end

        private

        # Whether the journal was told of a segment. One from before this process may have to wait for the one before it, whose end was
        # torn.
        def gone?(number)
          segment = @segments[number] or return true
          segment.dropped && (number > @first_own || !@segments.key?(number - 1) || gone?(number - 1))
        end
      end
    end
  end
end
