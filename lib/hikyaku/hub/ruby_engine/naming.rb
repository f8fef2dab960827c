# frozen_string_literal: true

require_relative "../event"

module Hikyaku
  class Hub
    class RubyEngine
      # Streams whose events name the matchers that selected them, so that a client tells its subscriptions apart.
      #
      #     match: /books/1
      #     match_urlpattern: /books/:id
      #     id: #PGzYTzR-0Sg
      #     data: …
      #
      # A stream that goes back for a matcher is sent what that one selects also where another had selected it before: then the
      # event names those alone for which it is new.
      module Naming
        private

        def had?(subscriber, record, position) = (record.topics.empty? || !subscriber.names?) && subscriber.had?(record, position)

        def names_of(subscriber, record, position)
          return unless subscriber.names?
          record.topics.empty? ? "" : Event.names(matchers_new_to(subscriber, record, position))
        end

        # For the rest of an event of which it has a part: meanwhile its matchers may change.
        def keep_names(subscriber, position)
          subscriber.partial_names = names_of(subscriber, @log[position], position) if subscriber.names?
        end

        def frame_for(subscriber, position)
          record = @log[position]
          names = names_of(subscriber, record, position)
          names ? names + record.frame : record.frame
        end

        def matchers_new_to(subscriber, record, position)
          restricted = subscriber.restricted?
          subscriber.subscriptions.filter_map do |subscription|
            next if restricted && subscription.from >= position
            subscription.matcher if selects?(subscription.feed, record, position)
          end
        end

        # By the feed where that knows, since to match a pattern takes longer.
        def selects?(feed, record, position)
          feed.covers?(position - 1) ? feed.next_after(position - 1) == position : record.matched_by?(feed.matcher)
        end
      end

      private_constant :Naming
    end
  end
end
