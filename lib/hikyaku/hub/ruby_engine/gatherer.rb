# frozen_string_literal: true

require_relative "../event"
require_relative "../gap"
require_relative "../topic_survey"

module Hikyaku
  class Hub
    class RubyEngine
      # Gathers what a subscriber receives next where a shared batch does not do: control bytes, the rest of an event, several feeds,
      # private records, positions before a feed's index, a ring that has passed the subscriber. The twin of hk_hub_gather.
      class Gatherer
        # Records that one `take` reads before others get their turn. Costly patterns also use up the allowance of the turn.
        SCAN_BUDGET = 256
        # The largest event that is retained for a subscriber that has a part of it when the ring drops it: no more than the kernel
        # buffers for the socket anyway. Of a larger one the rest is lost, and the stream is closed.
        MAX_PARTIAL_BYTES = 64 * 1024
        private_constant :SCAN_BUDGET, :MAX_PARTIAL_BYTES

        # Subscribers that were told of a gap, or closed, because the ring had passed them.
        attr_reader :gaps, :overruns

        def initialize(log, queue, gap_policy)
          @log = log
          @queue = queue
          @gap_policy = gap_policy
          @gaps = @overruns = 0
          # Of the current call: records that it may still read, the position up to which nothing is pending, whether it stopped
          # while it scanned with costly patterns.
          @budget = @reached = 0
          @scanning = false
          # Of the current turn: steps of pattern programs.
          @scan_allowance = 0
        end

        def begin_turn = @scan_allowance = TopicSurvey::STEPS_PER_TURN

        def scan_allowed? = @scan_allowance > 0

        def take(subscriber, max_bytes)
          return take_rest(subscriber) if subscriber.offset > 0
          return if overrun?(subscriber)
          return take_control(subscriber) if subscriber.control
          gather(subscriber, max_bytes)
        end

        # Puts the cursor behind the last whole event that the socket accepted, and remembers where it stopped within the next.
        # Returns how many whole events there were.
        def keep_rest(subscriber, taken, accepted)
          if subscriber.taken_to.nil?
            subscriber.control = taken.byteslice(accepted, taken.bytesize - accepted)
            return 0
          end
          if subscriber.offset > 0
            subscriber.offset += accepted
            return 0
          end
          keep_rest_of_events(subscriber, accepted)
        end

        private

        def take_control(subscriber)
          subscriber.taken_to = nil
          subscriber.taken = subscriber.control
        end

        def take_rest(subscriber)
          bytes = subscriber.partial || rest_from_log(subscriber)
          unless bytes
            close_overrun(subscriber)
            return
          end
          @queue << subscriber
          subscriber.taken_count = 1
          subscriber.taken_to = subscriber.leads_to
          subscriber.taken = bytes.byteslice(subscriber.offset, bytes.bytesize)
        end

        def rest_from_log(subscriber)
          record = @log[subscriber.partial_at] or return
          bytes = subscriber.format.encode(subscriber.partial_at, record)
          subscriber.partial_names ? subscriber.partial_names + bytes : bytes
        end

        def gather(subscriber, max_bytes)
          subscriber.pass_replayed if subscriber.replay_filter
          @budget = SCAN_BUDGET
          bytes = nil
          count = 0
          to = subscriber.cursor
          while (position = next_after(subscriber, to))
            event = subscriber.encode(@log[position], position)
            break if bytes && bytes.bytesize + event.bytesize > max_bytes
            if bytes
              bytes = bytes.dup if bytes.frozen?
              bytes << event
            else
              bytes = event
            end
            count += 1
            to = position
          end
          pending = position || @reached < @log.head
          queue_again(subscriber, position) if pending || subscriber.catching_up
          to = @reached unless position
          if bytes
            subscriber.taken_to = to
            subscriber.taken_count = count
            return subscriber.taken = bytes
          end
          subscriber.cursor = to
          say_caught_up(subscriber) if subscriber.catching_up && !pending
        end

        def queue_again(subscriber, position)
          (position.nil? && @scanning) ? @queue.add_scanning(subscriber) : @queue << subscriber
        end

        def say_caught_up(subscriber)
          subscriber.catching_up = false
          subscriber.say(Event::CAUGHT_UP)
          take_control(subscriber)
        end

        # The next position after the cursor that the subscriber receives. nil: there is none, or the budget is used up; nothing up to
        # @reached is pending.
        def next_after(subscriber, cursor)
          indexed_from = subscriber.indexed_from
          grant = subscriber.grant
          cost = (cursor < indexed_from) ? subscriber.subscriptions.sum { |subscription| subscription.feed.cost } : 0
          while cursor < indexed_from && cursor < @log.head
            @scanning = cost > 0
            return stop_at(cursor) if (@budget -= 1) < 0 || (@scanning && @scan_allowance <= 0 && @budget.finite?)
            cursor += 1
            record = @log[cursor] or next
            @scan_allowance -= cost * record.topics.sum { |topic| topic.value.bytesize + 1 } if @scanning
            return cursor if subscriber.selects?(record, cursor) && grant.admits?(record) && !subscriber.sent?(record, cursor)
          end
          @scanning = false
          while (position = next_of_feeds(subscriber, cursor))
            return stop_at(cursor) if (@budget -= 1) < 0
            record = @log[position]
            return position if record && grant.admits?(record) && !subscriber.sent?(record, position)
            cursor = position
          end
          stop_at(@log.head)
        end

        def stop_at(position)
          @reached = position
          nil
        end

        def next_of_feeds(subscriber, cursor)
          return subscriber.replay_filter.next_after(subscriber.subscriptions, cursor) if subscriber.restricted?
          best = nil
          subscriber.subscriptions.each do |subscription|
            position = subscription.feed.next_after(cursor)
            best = position if position && (best.nil? || position < best)
          end
          best
        end

        def keep_rest_of_events(subscriber, accepted)
          whole = 0
          @budget = Float::INFINITY
          while (position = next_after(subscriber, subscriber.cursor))
            record = @log[position]
            event = subscriber.encode(record, position)
            if accepted < event.bytesize
              keep_partial(subscriber, record, position, event, accepted)
              break
            end
            accepted -= event.bytesize
            whole += 1
            subscriber.cursor = position
          end
          whole
        end

        # The names are retained because the matchers may change before the rest is written.
        def keep_partial(subscriber, record, position, event, accepted)
          subscriber.partial_names = subscriber.names_of(record, position) if subscriber.names?
          subscriber.offset = accepted
          subscriber.partial_at = position
          subscriber.partial = event if accepted > 0 && event.bytesize <= MAX_PARTIAL_BYTES
        end

        # Tells a subscriber that the ring has passed it and moves it on, or closes it: then true. A subscriber that asked for all that
        # is retained, and has received nothing yet, has missed nothing: it begins where the ring begins now.
        def overrun?(subscriber)
          oldest = @log.first
          return false if subscriber.cursor >= oldest - 1
          lost = subscriber.subscriptions.select { |subscription| lost?(subscription, oldest) }
          if lost.empty?
            subscriber.cursor = subscriber.began_at = oldest - 1 if subscriber.before_oldest?
            return false
          end
          matchers = lost.map(&:matcher)
          if @gap_policy && matchers.any? { |matcher| @gap_policy.call(matcher) == :close }
            close_overrun(subscriber)
            return true
          end
          @gaps += 1
          # After what is pending, which may be the rest of a frame of which a part was written.
          subscriber.say(Gap.event(id: @log.id_of(oldest - 1), after: @log.id_of(subscriber.cursor), reason: "overrun", matchers: matchers))
          subscriber.cursor = oldest - 1
          false
        end

        def close_overrun(subscriber)
          @overruns += 1
          @queue.close(subscriber, :overrun)
        end

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
      private_constant :Gatherer
    end
  end
end
