# frozen_string_literal: true

require_relative "../event"
require_relative "../gap"

module Hikyaku
  class Hub
    class RubyEngine
      # Finds what a subscriber receives next where the short way does not do: bytes for it alone, events in pieces, several
      # feeds, private records, positions before a feed's index, a ring that has passed it.
      module Gathering
        # Records that one `take` looks at before others get their turn; with costly patterns fewer, as @scan_allowance says.
        SCAN_BUDGET = 256
        # Bytes of an event that is kept for a reader who has a part of it when the ring drops it: no more than the kernel
        # holds for the reader anyway. Of a larger one the rest is lost, and the stream with it.
        KEPT = 64 * 1024

        private

        # Everything but the hot path: control bytes, events in pieces, several feeds, private records, scans, gaps, other forms.
        def take_slowly(subscriber, max_bytes)
          return take_formed(subscriber, max_bytes) if subscriber.form
          return take_rest(subscriber) if subscriber.offset > 0
          return nil if overrun!(subscriber)
          if (control = subscriber.control)
            subscriber.taken_to = nil
            return subscriber.taken = control
          end
          gather(subscriber, max_bytes)
        end

        def take_rest(subscriber)
          frame = subscriber.partial || partial_from_log(subscriber)
          unless frame
            overrun(subscriber)
            return
          end
          ready!(subscriber)
          subscriber.taken_count = 1
          subscriber.taken_to = subscriber.leads_to
          subscriber.taken = frame.byteslice(subscriber.offset, frame.bytesize)
        end

        def partial_from_log(subscriber)
          frame = @log[subscriber.partial_at]&.frame
          (frame && subscriber.partial_names) ? subscriber.partial_names + frame : frame
        end

        def gather(subscriber, max_bytes)
          subscriber.leave_past_behind if subscriber.past
          @budget = SCAN_BUDGET
          bytes = nil
          count = 0
          to = subscriber.cursor
          while (position = following(subscriber, to))
            frame = frame_for(subscriber, position)
            break if bytes && bytes.bytesize + frame.bytesize > max_bytes
            if bytes
              bytes = bytes.dup if bytes.frozen?
              bytes << frame
            else
              bytes = frame
            end
            count += 1
            to = position
          end
          pending = position || @reached < @log.head
          go_on(subscriber, position) if pending || subscriber.catching_up
          to = @reached unless position
          if bytes
            subscriber.taken_to = to
            subscriber.taken_count = count
            return subscriber.taken = bytes
          end
          subscriber.cursor = to
          take_word(subscriber) if subscriber.catching_up && !pending
        end

        # More may be pending, or it is to be told that there is no more.
        def go_on(subscriber, position) = (position.nil? && @scans) ? ready!(subscriber, @scanning) : ready!(subscriber)

        # Nothing is left of what it asked for.
        def take_word(subscriber)
          subscriber.catching_up = false
          subscriber.taken_to = nil
          subscriber.taken = subscriber.control = Event::CAUGHT_UP
        end

        # The next position after the cursor that the subscriber receives. When there is none, or the budget is used up,
        # nil, and everything up to @reached is done with.
        def following(subscriber, cursor)
          indexed_from = subscriber.indexed_from
          grant = subscriber.grant
          cost = (cursor < indexed_from) ? subscriber.subscriptions.sum { |subscription| subscription.feed.cost } : 0
          while cursor < indexed_from && cursor < @log.head
            @scans = cost > 0
            return stop_at(cursor) if (@budget -= 1) < 0 || (@scans && @scan_allowance <= 0 && @budget.finite?)
            cursor += 1
            record = @log[cursor] or next
            @scan_allowance -= cost * record.topics.sum { |topic| topic.value.bytesize + 1 } if @scans
            return cursor if subscriber.selects?(record, cursor) && grant.admits?(record) && !had?(subscriber, record, cursor)
          end
          @scans = false
          while (position = nearest(subscriber, cursor))
            return stop_at(cursor) if (@budget -= 1) < 0
            record = @log[position]
            return position if record && grant.admits?(record) && !had?(subscriber, record, position)
            cursor = position
          end
          stop_at(@log.head)
        end

        def stop_at(position)
          @reached = position
          nil
        end

        def nearest(subscriber, cursor)
          return subscriber.past.nearest(subscriber.subscriptions, cursor) if subscriber.restricted?
          best = nil
          subscriber.subscriptions.each do |subscription|
            position = subscription.feed.next_after(cursor)
            best = position if position && (best.nil? || position < best)
          end
          best
        end

        # The socket took a part of what was taken: the cursor stops at the last whole event.
        def wrote_part(subscriber, taken, bytes)
          if subscriber.taken_to.nil?
            subscriber.control = taken.byteslice(bytes, taken.bytesize - bytes)
            return
          end
          if subscriber.offset > 0
            subscriber.offset += bytes
            return
          end
          @budget = Float::INFINITY
          while (position = following(subscriber, subscriber.cursor))
            frame = frame_for(subscriber, position)
            size = frame.bytesize
            if bytes < size
              keep_names(subscriber, position)
              subscriber.offset = bytes
              subscriber.partial_at = position
              subscriber.partial = frame if bytes > 0 && size <= KEPT
              return
            end
            bytes -= size
            @deliveries += 1
            subscriber.cursor = position
          end
        end

        # Tells a reader that the ring has passed it, and moves it on or closes it. Who has asked for all that is retained and
        # has got nothing yet begins where the ring begins now: it misses nothing of what it asked for.
        def overrun!(subscriber)
          oldest = @log.first
          return false if subscriber.cursor >= oldest - 1
          lost = subscriber.subscriptions.select { |subscription| lost?(subscription, oldest) }
          if lost.empty?
            subscriber.cursor = subscriber.began_at = oldest - 1 if subscriber.before_oldest?
            return false
          end
          matchers = lost.map(&:matcher)
          if @gap_policy && matchers.any? { |matcher| @gap_policy.call(matcher) == :close }
            overrun(subscriber)
            return true
          end
          @gaps += 1
          id = @ids_of_positions.seal(oldest - 1)
          gap = Gap.event(id: id, after: @ids_of_positions.seal(subscriber.cursor), reason: "overrun", matchers: matchers)
          # Behind what is pending: that may be the rest of something of which a part was written.
          subscriber.control = subscriber.control ? subscriber.control + gap : gap
          subscriber.leave_epoch
          subscriber.cursor = oldest - 1
          false
        end

        def overrun(subscriber)
          @overruns += 1
          close(subscriber, :overrun)
        end

        # Who has got nothing yet of all that is retained misses nothing that begins with it.
        def lost?(subscription, oldest)
          feed, subscriber = subscription.feed, subscription.subscriber
          cursor = subscriber.cursor
          if subscription.from && subscription.from > cursor
            cursor = subscription.from
          elsif subscriber.before_oldest?
            return false
          end
          return true unless feed.covers?(cursor)
          position = feed.next_after(cursor)
          !position.nil? && position < oldest
        end
      end

      private_constant :Gathering
    end
  end
end
