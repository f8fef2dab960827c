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
      # Positions that a feed remembers. Whoever is further behind scans the log, so that thousands of matchers that
      # select everything cost thousands of kilobytes, not gigabytes.
      LIMIT = 1024

      # @return [Matcher]
      attr_reader :matcher
      # @return [Array<Subscription>] the uses of the matcher, in no order
      attr_reader :subscriptions
      # @return [Array<Subscriber>] whose they are, each at the same place: a fan-out needs nothing else
      attr_reader :subscribers
      # @return [Integer] from here on, every position that the matcher selects is in the feed
      attr_reader :since
      # @return [Integer] the newest position; 0 when there was none yet
      attr_reader :newest
      # @return [Integer] the newest position that was trimmed; 0 when none was
      attr_reader :trimmed
      # @return [Boolean] it is in an index
      attr_accessor :indexed
      # @return [Boolean] it grew since its subscribers were last looked at
      attr_accessor :dirty
      # @return [Batch, nil] what caught-up subscribers receive next
      attr_accessor :batch

      # @return [Numeric] what matching costs in Ruby: see TopicProgram#cost_in_ruby
      attr_reader :cost
      # @return [String, nil] the address that the matcher's cost is charged to: see PatternBudget
      attr_reader :payer

      def initialize(matcher, since:, payer: nil)
        @matcher = matcher
        @cost = matcher.cost_in_ruby
        @payer = payer
        @since = since
        @positions = []
        @newest = 0
        @trimmed = 0
        @subscriptions = []
        @subscribers = []
        @dirty = @indexed = false
        @batch = nil
      end

      # @param position [Integer] not smaller than the newest; the same again is ignored
      # @return [Boolean] whether the feed grew
      def append(position)
        return false if position == @newest
        @positions << position
        @newest = position
        trim(LIMIT / 2) if @positions.size > LIMIT
        true
      end

      # @param cursor [Integer] at least `since - 1`
      # @return [Integer] the last position that is not after it, or `since - 1`
      def last_until(cursor)
        return @newest if @newest.between?(@since, cursor)
        previous = @positions[-2]
        return previous if previous && previous <= cursor
        after = @positions.bsearch_index { |position| position > cursor } || @positions.size
        (after == 0) ? @since - 1 : @positions[after - 1]
      end

      # @param cursor [Integer] at least `since - 1`
      # @return [Integer, nil] the first position after it. O(1) at the end of the feed, else O(log n).
      def next_after(cursor)
        return if @newest <= cursor
        previous = @positions[-2]
        return @newest if previous.nil? || previous <= cursor
        @positions.bsearch { |position| position > cursor }
      end

      # @return [Boolean] whether the feed knows all positions after the cursor
      def covers?(cursor) = cursor >= @since - 1

      # Adds a subscription. O(1).
      def link(subscription)
        subscription.index = @subscriptions.size
        @subscriptions << subscription
        @subscribers << subscription.subscriber
      end

      # Removes a subscription by moving the last one into its place. O(1).
      def unlink(subscription)
        last = @subscriptions.pop
        @subscribers.pop
        return if last.equal?(subscription)
        last.index = subscription.index
        @subscriptions[last.index] = last
        @subscribers[last.index] = last.subscriber
      end

      private

      def trim(count)
        @trimmed = @positions.shift(count).last
        @since = @trimmed + 1
      end
    end
  end
end
