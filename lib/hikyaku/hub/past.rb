# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  # A stream is to go back for what it missed while it still catches up for as many changes before as it may.
  class TooManyRewinds < StandardError
    include Error
  end

  class Hub
    # What a stream that was changed knows of before: what it had been sent when it went back to catch up.
    #
    #     log      ... 40 ····· 50 ····· 60 ················ 100 ...
    #     /a       ─────────────────────────────────────────► sent; then /b is added, and caught up from 50:
    #     layer    [ up to 100 what /a selects                ]
    #     /b                    ────────► sent; then /c is added, and caught up from 40:
    #     layer                 [ what /b selects ]
    #     /c           ─► now; of what it selects, that which a layer has is left out
    #
    # A layer is dropped when the stream has passed it. Where each subscription begins, it knows itself: see Subscription#from.
    class Past
      # So many layers may lie one on the other.
      LIMIT = 8
      # What who wants more is told.
      FULL = "the stream still catches up for #{LIMIT} changes before this one: wait until it has, or open another"
      # What was sent up to a position: of what each of these matchers selects behind its position, what the grant admits.
      Layer = Struct.new(:to, :grant, :matchers) do
        def had?(record, position)
          position <= to && matchers.any? { |matcher, since| since < position && record.matched_by?(matcher) } && grant.admits?(record)
        end
      end
      private_constant :Layer

      attr_accessor :resumes_at

      def initialize
        @layers = []
        @ends = 0
      end

      # Puts a layer on the others, because the stream goes back from here.
      def add(here, grant, subscriptions)
        pass(here)
        raise TooManyRewinds, FULL if @layers.size >= LIMIT
        @layers << Layer.new(here, grant, subscriptions.map { |subscription| [subscription.matcher, subscription.since] })
      end

      # What the stream is from now on.
      def settle(subscriptions)
        @ends = (@layers.map(&:to) + subscriptions.map(&:from)).max
      end

      # Forgets what the stream has passed.
      def pass(cursor) = @layers.reject! { |layer| layer.to <= cursor }

      def restricts?(cursor) = cursor < @ends

      def had?(record, position) = @layers.any? { |layer| layer.had?(record, position) }

      def selects?(subscriptions, record, position)
        subscriptions.any? { |subscription| subscription.from < position && record.matched_by?(subscription.matcher) }
      end

      def indexed_from(subscriptions)
        late = subscriptions.reject { |subscription| subscription.feed.covers?(subscription.from) }
        late.map { |subscription| subscription.feed.since - 1 }.max || 0
      end

      def nearest(subscriptions, cursor)
        subscriptions.filter_map { |subscription| subscription.feed.next_after([cursor, subscription.from].max) }.min
      end
    end
  end
end
