# frozen_string_literal: true

require_relative "../batch"

module Hikyaku
  class Hub
    class RubyEngine
      # Hands out what is pending: the hot path, and the twin of hk_hub_serve. For a subscriber that has caught up and has one matcher,
      # `fan_out` compares two integers, hands out a string that its equals share, and moves the cursor. All others go through
      # `next_ready`, `take` and `wrote`.
      class Dispatcher
        attr_reader :deliveries, :delivered_bytes

        def initialize(log, feeds, queue, gatherer, announcer, formats)
          @log = log
          @feeds = feeds
          @queue = queue
          @gatherer = gatherer
          @announcer = announcer
          @formats = formats
          # The feed that is being served, and the place in its list down to which its subscribers were.
          @feed = nil
          @place = 0
          @deliveries = @delivered_bytes = 0
        end

        def serve(limit, max_bytes, now:, &block)
          @announcer.continue
          limit = serve_scanning(limit, max_bytes, now, &block)
          while limit > 0
            if @queue.empty? && (@feed || next_feed)
              limit = fan_out(limit, max_bytes, now, &block)
              break if limit.zero?
            end
            subscriber = next_subscriber or return @announcer.pending? || @queue.scanning?
            limit -= 1
            hand_out(subscriber, max_bytes, now, &block)
          end
          true
        end

        def next_ready
          subscriber = next_subscriber
          while subscriber.nil? && @announcer.pending?
            @announcer.continue
            subscriber = next_subscriber
          end
          subscriber || next_scanning
        end

        def ready? = !@queue.empty? || @feeds.grown? || !@feed.nil? || @announcer.pending? || @queue.scanning?

        def take(subscriber, max_bytes)
          feed = subscriber.feed
          return @gatherer.take(subscriber, max_bytes) if feed.nil? || subscriber.offset > 0 || subscriber.control
          batch = feed.batch(subscriber.format)
          unless batch&.covers?(feed, subscriber, @log.first)
            batch = Batch.gather(@log, feed, subscriber, max_bytes) or return @gatherer.take(subscriber, max_bytes)
            feed.store_batch(subscriber.format, batch) if feed.subscribers.size > 1
          end
          subscriber.taken_to = batch.to
          subscriber.taken_count = batch.count
          @queue << subscriber if batch.more?
          return subscriber.taken = batch.bytes if batch.bytes
          subscriber.cursor = batch.to
          nil
        end

        def wrote(subscriber, bytes, now:)
          taken = subscriber.taken
          subscriber.taken = nil
          @delivered_bytes += bytes
          subscriber.active_at = now if bytes > 0
          if bytes < taken.bytesize
            subscriber.blocked = true
            @deliveries += @gatherer.keep_rest(subscriber, taken, bytes)
          elsif subscriber.taken_to
            wrote_events(subscriber)
          else
            subscriber.control = nil
            @queue << subscriber
          end
        end

        def writable(subscriber)
          subscriber.blocked = false
          @queue << subscriber
        end

        private

        def wrote_events(subscriber)
          subscriber.cursor = subscriber.taken_to
          if subscriber.offset > 0
            subscriber.offset = 0
            subscriber.partial = nil
            subscriber.replay_filter.resumes_at = nil if subscriber.replay_filter
          end
          @deliveries += subscriber.taken_count
          @queue << subscriber if subscriber.control
        end

        def hand_out(subscriber, max_bytes, now)
          if subscriber.closing
            yield subscriber, nil
          elsif (bytes = take(subscriber, max_bytes))
            wrote(subscriber, yield(subscriber, bytes), now: now)
          end
        end

        # Serves those that scan the log with costly patterns, one after the other, as long as the allowance of this turn lasts.
        def serve_scanning(limit, max_bytes, now, &block)
          return limit unless @queue.scanning?
          subscriber = next_scanning
          while subscriber
            limit -= 1
            hand_out(subscriber, max_bytes, now, &block)
            subscriber = (@queue.shift_scanning if limit > 0 && @gatherer.scan_allowed?)
          end
          limit
        end

        def next_scanning
          @gatherer.begin_turn
          @queue.shift_scanning
        end

        def next_subscriber
          subscriber = @queue.shift and return subscriber
          while @feed || next_feed
            subscriber = next_of_feed and return subscriber
          end
        end

        def next_feed
          feed = @feeds.shift_grown or return
          @place = feed.subscribers.size
          @feed = feed
        end

        # Serves the subscribers of the current feed as long as one batch suits them. The others are left to `next_of_feed`, which goes
        # down the same list from the same place.
        def fan_out(limit, max_bytes, now)
          subscribers = @feed.subscribers
          place = [@place, subscribers.size].min
          return limit if place.zero? || !(batch = batch_for(subscribers[place - 1], max_bytes))
          format = subscribers[place - 1].format
          # To compare formats costs time for each delivery.
          same_format = @formats.one?(&:used?)
          bytes, after, first, to = batch.bytes, batch.after, batch.first, batch.to
          size = bytes.bytesize
          left = limit
          whole = 0
          while place > 0 && left > 0
            subscriber = subscribers[place - 1]
            if subscriber
              cursor = subscriber.cursor
              if cursor < first
                break if cursor < after || !subscriber.idle || !(same_format || subscriber.idle == format)
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

        # The feed's batch, if it suits every grant and nothing is pending after it.
        def batch_for(subscriber, max_bytes)
          return unless subscriber.idle
          batch = @feed.batch(subscriber.format)
          unless batch&.covers?(@feed, subscriber, @log.first)
            batch = Batch.gather(@log, @feed, subscriber, max_bytes) or return
            @feed.store_batch(subscriber.format, batch)
          end
          batch if batch.bytes && !batch.more? && batch.public?
        end

        # Goes down the list, so that a subscription that a removal moves is at worst visited twice, never left out.
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
          @feed.drop_batches
          @feed = nil
        end
      end
      private_constant :Dispatcher
    end
  end
end
