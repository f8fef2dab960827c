# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  # A stream would have to go back for missed events while it still catches up for as many earlier changes as are allowed.
  class TooManyRewinds < StandardError
    include Error
  end

  class Hub
    # What a stream was sent before it went back to catch up, so that nothing is sent twice. The twin of hk_replay_filter.
    #
    #     log      ... 40 ····· 50 ····· 60 ················ 100 ...
    #     /a       ─────────────────────────────────────────► sent; then /b is added, from 50 on:
    #     range    [ up to 100 what /a selects                ]
    #     /b                    ────────► sent; then /c is added, from 40 on:
    #     range                 [ what /b selects ]
    #     /c           ─► now; events within a range are left out
    #
    # A range is dropped when the stream has passed it. Each subscription knows where it begins: see Subscription#from.
    class ReplayFilter
      MAX_RANGES = 8
      LIMIT_MESSAGE = "the stream still catches up for #{MAX_RANGES} changes before this one: wait until it has, or open another"
      # Up to a position the stream was sent what the grant admits of what each matcher selects after the matcher's own position.
      SentRange = Struct.new(:to, :grant, :matchers) do
        def sent?(record, position)
          position <= to && matchers.any? { |matcher, since| since < position && record.matched_by?(matcher) } && grant.admits?(record)
        end
      end
      private_constant :MAX_RANGES, :SentRange

      # The position at which the stream goes on behind the rest of an event of which a part was sent.
      attr_accessor :resumes_at

      def initialize
        @ranges = []
        @ends = 0
      end

      # Adds what was sent up to here, because the stream goes back.
      def add(here, grant, subscriptions)
        pass(here)
        raise TooManyRewinds, LIMIT_MESSAGE if @ranges.size >= MAX_RANGES
        @ranges << SentRange.new(here, grant, subscriptions.map { |subscription| [subscription.matcher, subscription.since] })
      end

      # Finds where the filter ends, for the subscriptions that the stream has now.
      def settle(subscriptions)
        @ends = (@ranges.map(&:to) + subscriptions.map(&:from)).max
      end

      # Drops the ranges that the stream has passed.
      def pass(cursor) = @ranges.reject! { |range| range.to <= cursor }

      def restricts?(cursor) = cursor < @ends

      def sent?(record, position) = @ranges.any? { |range| range.sent?(record, position) }

      def selects?(subscriptions, record, position)
        subscriptions.any? { |subscription| subscription.from < position && record.matched_by?(subscription.matcher) }
      end

      def indexed_from(subscriptions)
        late = subscriptions.reject { |subscription| subscription.feed.covers?(subscription.from) }
        late.map { |subscription| subscription.feed.since - 1 }.max || 0
      end

      def next_after(subscriptions, cursor)
        subscriptions.filter_map { |subscription| subscription.feed.next_after([cursor, subscription.from].max) }.min
      end
    end
  end
end
