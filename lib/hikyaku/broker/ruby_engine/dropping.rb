# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Broker
    class RubyEngine
      # How the ledger gets rid of segments: those that nobody needs are dropped, in any order; and when most of what the journal holds
      # is not needed, what stands in the oldest is copied to where is written now, so that it can be dropped, too.
      module Dropping
        # From so many segments on, and with more than twice the bytes that are needed, the oldest is evacuated.
        MANY = 4
        private_constant :MANY

        # @return [Segment, nil] the oldest with messages, when it is time to evacuate it
        def straggling
          return if standing < MANY || standing * @journal.segment_bytes <= 2 * @live_bytes
          segment = @segments.each_value.find { |each| !each.dropped && !each.live.empty? }
          segment unless segment.nil? || segment.number == @journal.current || segment.equal?(@unmovable)
        end

        # Copies messages of a segment to where is written now: it can be dropped without them.
        #
        # @param segment [Segment]
        # @param most [Integer] messages
        # @param most_bytes [Integer]
        # @return [Integer] how many were copied
        def evacuate(segment, most, most_bytes)
          count = 0
          while count < most && most_bytes > 0 && (message = segment.live.first&.last)
            enqueue(message, copy: true)
            (@older[message.id] ||= []) << segment.number
            most_bytes -= message.stored
            count += 1
          end
          count
        rescue LimitExceeded
          # It was taken when segments began with less, or were larger. Others are not moved, either: what speaks of them has to stay.
          @unmovable = segment
          count
        end

        private

        # Segments that are there and are to stay.
        def standing = @segments.size - @dropped

        # In the order of their numbers: one that goes may let the next ones go.
        def drop_dead_segments
          @droppable = false
          @segments.each_value do |segment|
            next if segment.dropped || segment.number == @journal.current || !segment.live.empty?
            segment.speaks_of.delete_if { |number, _| number == segment.number || said?(number) }
            next unless segment.speaks_of.empty?
            segment.dropped = true
            @journal.drop(segment.number)
          end
          let_go
        end

        # A segment that the journal was told of. One from before this process may have to wait for the one before it, whose end was
        # torn.
        def said?(number)
          segment = @segments[number] or return true
          segment.dropped && (number > @first_own || !@segments.key?(number - 1) || said?(number - 1))
        end

        # Those that were dropped, and are of no more interest to any other.
        def let_go
          @segments.delete_if { |number, segment| segment.dropped && said?(number) }
          @dropped = @segments.count { |_, segment| segment.dropped }
        end
      end
    end
  end
end
