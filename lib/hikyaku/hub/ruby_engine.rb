# frozen_string_literal: true

require_relative "../log"
require_relative "engine"
require_relative "event"
require_relative "feed"
require_relative "gap"
require_relative "record"
require_relative "subscriber"
require_relative "subscription"
require_relative "topic_index"
require_relative "ruby_engine/delivery"
require_relative "ruby_engine/gathering"
require_relative "ruby_engine/timing"

module Hikyaku
  class Hub
    # The engine in Ruby: the log, who listens to what, and who has got how far. How bytes are handed out is Delivery and
    # Gathering; what time brings is Timing.
    class RubyEngine
      include Engine
      include Delivery
      include Gathering
      include Timing

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
        @gap_policy = gap_policy
        @random = random
        start_timing(heartbeat, max_lifetime)
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
        subscriber.subscriptions = grant.matchers.map do |matcher|
          subscription = Subscription.new(subscriber, feed_for(matcher))
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
        cancel_timing(subscriber)
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
    end
  end
end
