# frozen_string_literal: true

require_relative "../log"
require_relative "batch"
require_relative "engine"
require_relative "event"
require_relative "feed"
require_relative "gap"
require_relative "record"
require_relative "subscriber"
require_relative "subscription"
require_relative "timers"
require_relative "topic_index"

module Hikyaku
  class Hub
    # The engine in Ruby. Its hot path is `fan_out`: for a caught-up subscriber with one matcher it compares two integers,
    # hands out a string that all its equals share, and moves the cursor. Everything else goes through `next_ready`, `take`
    # and `wrote`.
    class RubyEngine
      include Engine

      # Records that one `take` looks at before others get their turn.
      SCAN_BUDGET = 256
      # Seconds by which a stream ends before its token does, so that it never ends after it.
      EXPIRY_MARGIN = 0.25
      # Seconds in which heartbeats are gathered.
      BEAT_SLOT = 0.25
      private_constant :SCAN_BUDGET, :EXPIRY_MARGIN, :BEAT_SLOT

      # @param history [Integer] bytes of the log's ring
      # @param heartbeat [Numeric, nil] seconds of silence before a comment is sent; nil or 0: never
      # @param max_lifetime [Numeric, nil] seconds after which a stream is closed; nil or 0: never
      # @param gap_policy [#call, nil] asked with a matcher, says `:gap` or `:close` for a reader that the ring passed
      # @param cipher [Log::PositionCipher]
      # @param random [Random]
      def initialize(history: 32 * 1024 * 1024, heartbeat: 15, max_lifetime: nil, gap_policy: nil,
        cipher: Log::PositionCipher.new, random: Random.new)
        @log = Log::Ring.new(capacity: history)
        @ids = Log::IdIndex.new
        @cipher = cipher
        @index = TopicIndex.new
        @feeds = {}
        @subscribers = {}.compare_by_identity
        @ready = []
        @dirty = []
        @heartbeat = heartbeat if heartbeat&.positive?
        @max_lifetime = max_lifetime if max_lifetime&.positive?
        @gap_policy = gap_policy
        @random = random
        @beats = Timers.new(granularity: BEAT_SLOT)
        @deadlines = Timers.new(granularity: 0.05)
        @subscription_count = @publishes = @deliveries = 0
        @feed = nil
        @place = 0
      end

      def publish(update, topics:, now:, type: nil)
        position = @log.head + 1
        id = update.id || @cipher.seal(position)
        frame = Event.encode(id: id, data: update.data, type: type || update.type, retry_after: update.retry_after)
        @log.append(Record.new(frame: frame, topics: topics, id: id, private: update.private?)) do |evicted, at|
          @ids.remove(evicted.id, at)
        end
        @ids.add(id, position) if update.id
        topics.each { |topic| @index.each_match(topic) { |feed| grow(feed, position) } }
        @publishes += 1
        id
      end

      def subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil)
        subscriber = Subscriber.new(grant, address: address)
        subscriber.active_at = now
        subscriber.blocked = true
        subscriber.subscriptions = grant.matchers.each_with_index.map do |matcher, i|
          subscription = Subscription.new(subscriber, feed_for(matcher), grant.payloads[i])
          subscription.feed.link(subscription)
          subscription
        end
        @subscription_count += subscriber.subscriptions.size
        @subscribers[subscriber] = true
        place(subscriber, last_event_id)
        time(subscriber, now, expires_in)
        subscriber
      end

      def unsubscribe(subscriber)
        return false unless @subscribers.delete(subscriber)
        subscriber.closed = true
        subscriber.subscriptions.each do |subscription|
          feed = subscription.feed
          feed.unlink(subscription)
          drop(feed) if feed.subscriptions.empty?
        end
        @subscription_count -= subscriber.subscriptions.size
        @beats.cancel(subscriber.beat_slot, subscriber)
        @deadlines.cancel(subscriber.deadline_slot, subscriber)
        true
      end

      # Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing".
      def resolve(last_event_id, grant)
        if last_event_id.nil?
          [@log.head, nil]
        elsif last_event_id.empty?
          [@log.head, readable_id(grant)]
        elsif last_event_id != "earliest" && (position = position_of(last_event_id))
          [position, last_event_id]
        else
          [@log.first - 1, "earliest"]
        end
      end

      def serve(limit, max_bytes, now:, &block)
        while limit > 0
          if @ready.empty? && (@feed || next_feed)
            limit = fan_out(limit, max_bytes, now, &block)
            break if limit.zero?
          end
          subscriber = next_ready or return false
          limit -= 1
          if subscriber.closing
            yield subscriber, nil
          elsif (bytes = take(subscriber, max_bytes))
            wrote(subscriber, yield(subscriber, bytes), now: now)
          end
        end
        true
      end

      def next_ready
        while (subscriber = @ready.shift)
          subscriber.ready = false
          return subscriber unless subscriber.closed || (subscriber.blocked && !subscriber.closing)
        end
        while @feed || next_feed
          subscriber = next_of_feed and return subscriber
        end
      end

      def ready? = !(@ready.empty? && @dirty.empty? && @feed.nil?)

      def take(subscriber, max_bytes)
        feed = subscriber.feed
        if feed && subscriber.offset == 0 && !subscriber.control
          batch = feed.batch
          unless batch&.serves?(feed, subscriber)
            batch = Batch.gather(@log, feed, subscriber, max_bytes) or return take_slowly(subscriber, max_bytes)
            feed.batch = batch
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
        subscriber.active_at = now if bytes > 0
        if bytes < taken.bytesize
          subscriber.blocked = true
          wrote_part(subscriber, taken, bytes)
        elsif subscriber.taken_to
          subscriber.cursor = subscriber.taken_to
          subscriber.offset = 0
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

      def notify(topic, frame)
        feed = @feeds[["exact", topic]] or return 0
        feed.subscriptions.each do |subscription|
          subscriber = subscription.subscriber
          control(subscriber, frame) unless subscriber.blocked || subscriber.control
        end
        feed.subscriptions.size
      end

      # Whether anybody subscribes to exactly this topic.
      #
      # @param topic [String]
      # @return [Boolean]
      def watched?(topic) = @feeds.key?(["exact", topic])

      # Sends bytes to one subscriber at the next event boundary.
      #
      # @param subscriber [Subscriber]
      # @param bytes [String]
      # @return [void]
      def control(subscriber, bytes)
        subscriber.control = subscriber.control ? subscriber.control + bytes : bytes
        ready!(subscriber)
      end

      # Marks a subscriber to be closed by the driver.
      #
      # @param subscriber [Subscriber]
      # @param reason [Symbol]
      # @return [void]
      def close(subscriber, reason)
        return if subscriber.closing || subscriber.closed
        subscriber.closing = reason
        ready!(subscriber)
      end

      def tick(now:)
        @deadlines.expire(now) do |subscriber|
          subscriber.deadline_slot = nil
          close(subscriber, subscriber.deadline_reason)
        end
        @beats.expire(now) do |subscriber|
          silent_at = subscriber.active_at + @heartbeat
          if silent_at <= now
            control(subscriber, Event::HEARTBEAT) unless subscriber.blocked || subscriber.control
            silent_at = now + @heartbeat
          end
          subscriber.beat_slot = @beats.add(silent_at + BEAT_SLOT, subscriber)
        end
      end

      def next_tick = [@deadlines.next_at, @beats.next_at].compact.min

      def each_subscriber(&block) = @subscribers.each_key(&block)

      def each_subscription(type: nil, pattern: nil, &block)
        if pattern
          @feeds[[type, pattern]]&.subscriptions&.each(&block)
        else
          @subscribers.each_key { |subscriber| subscriber.subscriptions.each(&block) }
        end
      end

      def last_event_id = @log[@log.head]&.id

      # @return [Integer]
      def subscriber_count = @subscribers.size

      def stats
        {
          subscribers: @subscribers.size, subscriptions: @subscription_count, feeds: @feeds.size,
          publishes: @publishes, deliveries: @deliveries,
          history_bytes: @log.bytes, history_updates: @log.size
        }
      end

      # The matcher that is in use for this type and pattern, so that a pattern is compiled once however many use it.
      #
      # @return [Matcher, nil]
      def matcher(type, pattern) = @feeds[[type, pattern]]&.matcher

      private

      def grow(feed, position)
        return unless feed.append(position)
        return if feed.dirty
        feed.dirty = true
        @dirty << feed
      end

      # Serves the caught-up subscribers of the current feed as long as one batch suits them. Those that it does not suit
      # are left to `next_ready`, which goes down the same list from the same place.
      #
      # @return [Integer] what is left of the limit
      def fan_out(limit, max_bytes, now)
        subscriptions = @feed.subscriptions
        place = @place
        subscription = nil
        place -= 1 until place.zero? || (subscription = subscriptions[place - 1])
        return limit if place.zero? || !(batch = batch_for(subscription.subscriber, max_bytes))
        bytes, after, first, to = batch.bytes, batch.after, batch.first, batch.to
        size = bytes.bytesize
        left = limit
        while place > 0 && left > 0
          subscription = subscriptions[place - 1]
          if subscription
            subscriber = subscription.subscriber
            cursor = subscriber.cursor
            if cursor < first
              break unless cursor >= after && subscriber.idle?
              @place = place - 1
              left -= 1
              written = yield subscriber, bytes
              if written == size
                subscriber.cursor = to
                subscriber.active_at = now
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
        @deliveries += (limit - left) * batch.count
        left
      end

      # The feed's batch, if it can serve whoever stands where this subscriber does, of whatever grant, without more behind.
      def batch_for(subscriber, max_bytes)
        return unless subscriber.idle?
        batch = @feed.batch
        unless batch&.serves?(@feed, subscriber)
          batch = Batch.gather(@log, @feed, subscriber, max_bytes) or return
          @feed.batch = batch
        end
        batch if batch.bytes && !batch.more? && batch.for_all?
      end

      # A feed that grows while it is gone through is dirty again and gets another turn after the others.
      def next_feed
        feed = @dirty.shift or return
        feed.dirty = false
        @place = feed.subscriptions.size
        @feed = feed
      end

      # Goes down the list, so that a subscription moved by a removal into a place not yet visited is at worst visited
      # twice, never left out.
      def next_of_feed
        newest = @feed.newest
        subscriptions = @feed.subscriptions
        place = @place
        while place > 0
          place -= 1
          subscription = subscriptions[place] or next
          subscriber = subscription.subscriber
          next if subscriber.cursor >= newest || subscriber.blocked || subscriber.ready || subscriber.closing
          @place = place
          return subscriber
        end
        @feed.batch = nil
        @feed = nil
      end

      def ready!(subscriber)
        return if subscriber.ready
        subscriber.ready = true
        @ready << subscriber
      end

      def feed_for(matcher)
        @feeds[[matcher.type, matcher.pattern]] ||= Feed.new(matcher, since: @log.head + 1).tap { |feed| @index.add(feed) }
      end

      def drop(feed)
        @index.remove(feed)
        @feeds.delete([feed.matcher.type, feed.matcher.pattern])
      end

      def place(subscriber, last_event_id)
        subscriber.cursor, subscriber.last_event_id = resolve(last_event_id, subscriber.grant)
        return unless subscriber.last_event_id == "earliest"
        subscriber.began_at = subscriber.cursor
        unless ["", "earliest"].include?(last_event_id)
          subscriber.control = Gap.event(id: @cipher.seal(subscriber.cursor), after: last_event_id, reason: "unknown")
        end
      end

      # The position of an event from which nothing has been lost since.
      def position_of(id)
        position = @ids[id] || @cipher.open(id)
        position if position && position >= @log.first - 1 && position <= @log.head
      end

      # The newest event's id, unless it would tell of a private event: then the alias that its position has.
      def readable_id(grant)
        record = @log[@log.head] or return "earliest"
        grant.admits?(record) ? record.id : @cipher.seal(@log.head)
      end

      def time(subscriber, now, expires_in)
        subscriber.beat_slot = @beats.add(now + @heartbeat + BEAT_SLOT, subscriber) if @heartbeat
        deadline = now + expires_in - EXPIRY_MARGIN if expires_in
        subscriber.deadline_reason = :expired if deadline
        if @max_lifetime
          lifetime = now + @max_lifetime * (1 - @random.rand(0.1))
          if deadline.nil? || lifetime < deadline
            deadline = lifetime
            subscriber.deadline_reason = :lifetime
          end
        end
        subscriber.deadline_slot = @deadlines.add(deadline, subscriber) if deadline
      end

      # Everything but the hot path: control bytes, events in pieces, several feeds, private records, scans, gaps.
      def take_slowly(subscriber, max_bytes)
        return take_rest(subscriber) if subscriber.offset > 0
        return nil if overrun!(subscriber)
        if (control = subscriber.control)
          subscriber.taken_to = nil
          return subscriber.taken = control
        end
        gather(subscriber, max_bytes)
      end

      def take_rest(subscriber)
        record = @log[subscriber.partial_at]
        unless record
          close(subscriber, :overrun)
          return
        end
        ready!(subscriber)
        subscriber.taken_count = 1
        subscriber.taken_to = subscriber.partial_at
        subscriber.taken = record.frame.byteslice(subscriber.offset, record.frame.bytesize)
      end

      def gather(subscriber, max_bytes)
        @budget = SCAN_BUDGET
        bytes = nil
        count = 0
        to = subscriber.cursor
        while (position = following(subscriber, to))
          frame = @log[position].frame
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
        ready!(subscriber) if position || @reached < @log.head
        to = @reached unless position
        if bytes
          subscriber.taken_to = to
          subscriber.taken_count = count
          return subscriber.taken = bytes
        end
        subscriber.cursor = to
        nil
      end

      # The next position after the cursor that the subscriber receives. When there is none, or the budget is used up,
      # nil, and everything up to @reached is done with.
      def following(subscriber, cursor)
        indexed_from = subscriber.indexed_from
        grant = subscriber.grant
        while cursor < indexed_from && cursor < @log.head
          return stop_at(cursor) if (@budget -= 1) < 0
          cursor += 1
          record = @log[cursor] or next
          return cursor if subscriber.selects?(record) && grant.admits?(record)
        end
        while (position = nearest(subscriber, cursor))
          return stop_at(cursor) if (@budget -= 1) < 0
          record = @log[position]
          return position if record && grant.admits?(record)
          cursor = position
        end
        stop_at(@log.head)
      end

      def stop_at(position)
        @reached = position
        nil
      end

      def nearest(subscriber, cursor)
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
          size = @log[position].frame.bytesize
          if bytes < size
            subscriber.offset = bytes
            subscriber.partial_at = position
            return
          end
          bytes -= size
          @deliveries += 1
          subscriber.cursor = position
        end
      end

      # Tells a reader that the ring has passed it, and moves it on or closes it. Who has asked for all that is retained and
      # has got nothing yet begins where the ring begins now: it misses nothing of what it asked for.
      #
      # @return [Boolean] whether it is to be closed
      def overrun!(subscriber)
        oldest = @log.first
        return false if subscriber.cursor >= oldest - 1
        lost = subscriber.subscriptions.select { |subscription| lost?(subscription.feed, subscriber.cursor, oldest) }
        return false if lost.empty?
        matchers = lost.map(&:matcher)
        if subscriber.cursor == subscriber.began_at
          subscriber.cursor = subscriber.began_at = oldest - 1
          return false
        end
        if @gap_policy && matchers.any? { |matcher| @gap_policy.call(matcher) == :close }
          close(subscriber, :overrun)
          return true
        end
        id = @cipher.seal(oldest - 1)
        gap = Gap.event(id: id, after: @cipher.seal(subscriber.cursor), reason: "overrun", matchers: matchers)
        # Behind what is pending: that may be the rest of something of which a part was written.
        subscriber.control = subscriber.control ? subscriber.control + gap : gap
        subscriber.cursor = oldest - 1
        false
      end

      def lost?(feed, cursor, oldest)
        return true unless feed.covers?(cursor)
        position = feed.next_after(cursor)
        !position.nil? && position < oldest
      end
    end
  end
end
