# frozen_string_literal: true

require_relative "../batch"

module Hikyaku
  class Hub
    class RubyEngine
      # Hands out what is pending: the hot path. For a caught-up subscriber with one matcher, `fan_out` compares two integers,
      # hands out a string that all its equals share, and moves the cursor. Whoever it does not suit goes through
      # `next_ready`, `take` and `wrote`.
      module Delivery
        def serve(limit, max_bytes, now:, &block)
          speak_again
          limit = go_on_scanning(limit, max_bytes, now, &block)
          while limit > 0
            if @ready.empty? && (@feed || next_feed)
              limit = fan_out(limit, max_bytes, now, &block)
              limit = fan_out_formed(limit, now, &block) if limit > 0 && !@forms.empty?
              break if limit.zero?
            end
            subscriber = next_to_serve or return !(@untold.empty? && @scanning.empty?)
            limit -= 1
            hand_out(subscriber, max_bytes, now, &block)
          end
          true
        end

        def next_ready
          subscriber = next_to_serve
          until subscriber || @untold.empty?
            speak_again
            subscriber = next_to_serve
          end
          subscriber || next_to_scan
        end

        def ready? = !(@ready.empty? && @dirty.empty? && @feed.nil? && @untold.empty? && @scanning.empty?)

        def take(subscriber, max_bytes)
          feed = subscriber.feed
          if feed && subscriber.offset == 0 && !subscriber.control && !subscriber.form
            batch = feed.batch
            unless batch&.serves?(feed, subscriber, @log.first)
              batch = Batch.gather(@log, feed, subscriber, max_bytes) or return take_slowly(subscriber, max_bytes)
              feed.batch = batch if feed.subscribers.size > 1
            end
            subscriber.taken_to = batch.to
            subscriber.taken_count = batch.count
            ready!(subscriber) if batch.more?
            return subscriber.taken = batch.bytes if batch.bytes
            subscriber.cursor = batch.to
            nil
          else
            take_slowly(subscriber, max_bytes)
          end
        end

        def wrote(subscriber, bytes, now:)
          taken = subscriber.taken
          subscriber.taken = nil
          @delivered_bytes += bytes
          subscriber.active_at = now if bytes > 0
          if taken.is_a?(Form::Portion)
            wrote_portion(subscriber, taken, bytes)
          elsif bytes < taken.bytesize
            subscriber.blocked = true
            wrote_part(subscriber, taken, bytes)
          elsif subscriber.taken_to
            subscriber.cursor = subscriber.taken_to
            if subscriber.offset > 0
              subscriber.offset = 0
              subscriber.partial = nil
              subscriber.past.resumes_at = nil if subscriber.past
            end
            @deliveries += subscriber.taken_count
            ready!(subscriber) if subscriber.control
          else
            subscriber.control = nil
            ready!(subscriber)
          end
        end

        def writable(subscriber)
          subscriber.blocked = false
          ready!(subscriber)
        end

        private

        def hand_out(subscriber, max_bytes, now)
          if subscriber.closing
            yield subscriber, nil
          elsif (bytes = take(subscriber, max_bytes))
            wrote(subscriber, yield(subscriber, bytes), now: now)
          end
        end

        # To those who scan the log with costly patterns, one after the other, as long as the allowance of this turn lasts.
        def go_on_scanning(limit, max_bytes, now, &block)
          return limit if @scanning.empty?
          subscriber = next_to_scan
          while subscriber
            limit -= 1
            hand_out(subscriber, max_bytes, now, &block)
            subscriber = (first_of(@scanning) if limit > 0 && @scan_allowance > 0)
          end
          limit
        end

        def next_to_scan
          @scan_allowance = TopicSurvey::PIECE
          first_of(@scanning)
        end

        def first_of(list)
          while (subscriber = list.shift)
            subscriber.ready = false
            next if subscriber.closed
            return subscriber if subscriber.closing || !subscriber.blocked
          end
        end

        def next_to_serve
          subscriber = first_of(@ready) and return subscriber
          while @feed || next_feed
            subscriber = next_of_feed and return subscriber
          end
        end

        # Serves the caught-up subscribers of the current feed as long as one batch suits them. Those that it does not suit
        # are left to `next_to_serve`, which goes down the same list from the same place.
        def fan_out(limit, max_bytes, now)
          subscribers = @feed.subscribers
          place = [@place, subscribers.size].min
          return limit if place.zero? || !(batch = batch_for(subscribers[place - 1], max_bytes))
          bytes, after, first, to = batch.bytes, batch.after, batch.first, batch.to
          size = bytes.bytesize
          left = limit
          whole = 0
          while place > 0 && left > 0
            subscriber = subscribers[place - 1]
            if subscriber
              cursor = subscriber.cursor
              if cursor < first
                break unless cursor >= after && subscriber.idle
                @place = place - 1
                left -= 1
                written = yield subscriber, bytes
                if written == size
                  subscriber.cursor = to
                  subscriber.active_at = now
                  whole += 1
                else
                  subscriber.taken = bytes
                  subscriber.taken_to = to
                  wrote(subscriber, written, now: now)
                end
              elsif cursor < to
                break
              end
            end
            place -= 1
          end
          @place = place
          @deliveries += whole * batch.count
          @delivered_bytes += whole * size
          left
        end

        # The feed's batch, if it can serve whoever stands where this subscriber does, of whatever grant, without more behind.
        def batch_for(subscriber, max_bytes)
          return unless subscriber.idle?
          batch = @feed.batch
          unless batch&.serves?(@feed, subscriber, @log.first)
            batch = Batch.gather(@log, @feed, subscriber, max_bytes) or return
            @feed.batch = batch
          end
          batch if batch.bytes && !batch.more? && batch.for_all?
        end

        # A feed that grows while it is gone through is dirty again and gets another turn after the others.
        def next_feed
          feed = @dirty.shift or return
          feed.dirty = false
          @place = feed.subscribers.size
          @feed = feed
        end

        # Goes down the list, so that a subscription moved by a removal into a place not yet visited is at worst visited
        # twice, never left out.
        def next_of_feed
          newest = @feed.newest
          subscribers = @feed.subscribers
          place = @place
          while place > 0
            place -= 1
            subscriber = subscribers[place] or next
            next if subscriber.cursor >= newest || subscriber.blocked || subscriber.ready || subscriber.closing
            @place = place
            return subscriber
          end
          @feed.batch = nil
          @feed = nil
        end

        def ready!(subscriber, list = @ready)
          return if subscriber.ready
          subscriber.ready = true
          list << subscriber
        end
      end

      private_constant :Delivery
    end
  end
end
