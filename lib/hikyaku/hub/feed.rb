# frozen_string_literal: true

module Hikyaku
  class Hub
    # The log positions that one matcher selects, shared by every subscriber that uses the matcher.
    #
    #     log     ... 41 42 43 44 45 46 47
    #     feed           42       45    47      next_after(42) = 45
    #
    # A feed is an index, never a copy: it holds positions, oldest first, at most LIMIT of them. It is complete from
    # `since` on; before that, the log must be scanned.
    class Feed
      # Positions that a feed remembers. A subscriber that is further behind scans the log, so that thousands of matchers that
      # select everything take thousands of kilobytes, not gigabytes.
      LIMIT = 1024

      attr_reader :matcher, :subscriptions, :subscribers, :since, :newest
      attr_accessor :indexed, :dirty
      attr_reader :cost
      # The client address that is charged for the pattern.
      attr_reader :payer

      def initialize(matcher, since:, payer: nil)
        @matcher = matcher
        @cost = matcher.cost_in_ruby
        @payer = payer
        @since = since
        @positions = []
        @newest = 0
        @subscriptions = []
        @subscribers = []
        @dirty = @indexed = false
        @batches = nil
      end

      # The batch that was gathered last for subscribers with a stream format.
      def batch(format) = @batches && @batches[format]

      def store_batch(format, batch)
        @batches ? @batches[format] = batch : @batches = {format => batch}
      end

      def drop_batches = @batches = nil

      def append(position)
        return false if position == @newest
        @positions << position
        @newest = position
        trim(LIMIT / 2) if @positions.size > LIMIT
        true
      end

      def last_until(cursor)
        return @newest if @newest.between?(@since, cursor)
        previous = @positions[-2]
        return previous if previous && previous <= cursor
        after = @positions.bsearch_index { |position| position > cursor } || @positions.size
        (after == 0) ? @since - 1 : @positions[after - 1]
      end

      def next_after(cursor)
        return if @newest <= cursor
        previous = @positions[-2]
        return @newest if previous.nil? || previous <= cursor
        @positions.bsearch { |position| position > cursor }
      end

      def covers?(cursor) = cursor >= @since - 1

      # Asks the index where it is complete, because to match a pattern takes longer.
      def selects?(record, position)
        covers?(position - 1) ? next_after(position - 1) == position : record.matched_by?(@matcher)
      end

      def link(subscription)
        subscription.index = @subscriptions.size
        @subscriptions << subscription
        @subscribers << subscription.subscriber
      end

      # Moves the last subscription into the place of the one that is removed. O(1).
      def unlink(subscription)
        last = @subscriptions.pop
        @subscribers.pop
        return if last.equal?(subscription)
        last.index = subscription.index
        @subscriptions[last.index] = last
        @subscribers[last.index] = last.subscriber
      end

      private

      def trim(count) = @since = @positions.shift(count).last + 1
    end
  end
end
