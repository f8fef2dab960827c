# frozen_string_literal: true

require_relative "../log"
require_relative "admission"
require_relative "engine"
require_relative "event"
require_relative "gap"
require_relative "history"
require_relative "pattern_budget"
require_relative "stream_format"
require_relative "subscriber"
require_relative "ruby_engine/announcer"
require_relative "ruby_engine/changes"
require_relative "ruby_engine/deadlines"
require_relative "ruby_engine/dispatcher"
require_relative "ruby_engine/feeds"
require_relative "ruby_engine/gatherer"
require_relative "ruby_engine/persistence"
require_relative "ruby_engine/ready_queue"

module Hikyaku
  class Hub
    # The engine in Ruby: the twin of hk_hub, file by file.
    #
    #     publish ─► Persistence ─► History ─► Feeds ─► Dispatcher ─► socket       hk_hub_publish, hk_hub_persist, hk_log, hk_hub_serve
    #                                                       │
    #                                                    Gatherer                  hk_hub_gather: where a shared batch does not do
    #     subscribe, change ─► Changes ─► Announcer                                hk_hub_change, hk_hub_announce
    #     tick ─► Deadlines                                                        hk_hub_timing
    #
    # It writes Server-Sent Events and MessagePack. It does not compress: the engine in C does.
    class RubyEngine
      include Engine

      def initialize(topics:, documents: nil, history: 32 * 1024 * 1024, heartbeat: 15, max_lifetime: nil, gap_policy: nil,
        max_connections: nil, max_connections_per_address: nil, max_pattern_cost_total: nil, max_pattern_cost_per_address: nil,
        max_pattern_cost_per_beginning: nil, storage: nil, cipher: Log::PositionCipher.new, random: Random.new)
        @admission = Admission.new(total: max_connections, per_address: max_connections_per_address)
        @pattern_budget = PatternBudget.new(total: max_pattern_cost_total, per_address: max_pattern_cost_per_address, per_beginning: max_pattern_cost_per_beginning)
        @log = History.new(capacity: history, topics: topics, cipher: cipher)
        @feeds = Feeds.new(@log, @pattern_budget)
        @queue = ReadyQueue.new
        @gatherer = Gatherer.new(@log, @queue, gap_policy)
        @announcer = Announcer.new(topics, documents, @feeds) { |update, **options| publish(update, **options) }
        @formats = {events: StreamFormat::Events.new, message_pack: StreamFormat::MessagePack.new(@log)}
        @dispatcher = Dispatcher.new(@log, @feeds, @queue, @gatherer, @announcer, @formats.values)
        @deadlines = Deadlines.new(@queue, heartbeat: heartbeat, max_lifetime: max_lifetime, random: random)
        @changes = Changes.new(@log, @feeds, @queue, @announcer, @deadlines)
        @subscribers = {}.compare_by_identity
        @publishes = 0
        @persistence = Persistence.new(@log, topics, history, storage) if storage
      end

      def survey(topics) = (@feeds.survey(topics) if @feeds.index.patterns?)

      def prepare(matchers)
        matchers.each do |matcher|
          next if matcher.cost.zero?
          matcher.cost_in_ruby
          Thread.pass
        end
      end

      def publish(update, topics:, now:, type: nil, surveys: nil)
        type ||= update.type
        @persistence&.append(update, topics, type)
        position, id = @log.append(update, topics: topics, type: type, private: update.private?)
        @feeds.add(position, topics, surveys)
        @publishes += 1
        id
      end

      def ticket = @persistence&.ticket

      def await(ticket) = @persistence.await(ticket)

      def close_storage = @persistence&.close

      def abandon_storage
        @persistence&.abandon
        @persistence = nil
      end

      def subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil, changeable: false, naming: false, format: :events, coding: :identity)
        unless offers?(format, coding)
          raise UnsupportedStreamFormat, "the engine in Ruby does not compress streams: use the coding :identity, or the engine in C"
        end
        StreamFormat.check_naming!(format) if naming
        subscriber = Subscriber.new(grant, format: @formats.fetch(format), address: address)
        admit(subscriber)
        subscriber.format.add_stream
        subscriber.name(grant.matchers) if naming
        subscriber.active_at = now
        subscriber.blocked = true
        subscriber.subscriptions = grant.matchers.map { |matcher| @feeds.link(subscriber, matcher) }
        @subscribers[subscriber] = true
        place(subscriber, last_event_id)
        @changes.register(subscriber, last_event_id) if changeable
        @deadlines.start(subscriber, now, expires_in)
        @announcer.announce(subscriber, now, active: true)
        subscriber
      end

      def capability(subscriber) = subscriber.closed ? nil : subscriber.capability

      def find(capability) = @changes.find(capability)

      def change(subscriber, grant, now:, expires_in: nil, last_event_id: nil)
        @changes.change(subscriber, grant, now: now, expires_in: expires_in, last_event_id: last_event_id)
      end

      def unsubscribe(subscriber, now: subscriber.active_at)
        return false unless @subscribers.delete(subscriber)
        @admission.release(subscriber.address)
        @changes.forget(subscriber)
        subscriber.closed = true
        subscriber.subscriptions.each { |subscription| @feeds.unlink(subscription) }
        subscriber.format.remove_stream
        @deadlines.cancel(subscriber)
        @announcer.announce(subscriber, now, active: false)
        true
      end

      def resolve(last_event_id, grant) = @log.resolve(last_event_id, grant)

      def cursor(grant) = @log.cursor(grant)

      def serve(limit, max_bytes, now:, &block) = @dispatcher.serve(limit, max_bytes, now: now, &block)

      def next_ready = @dispatcher.next_ready

      def ready? = @dispatcher.ready?

      def take(subscriber, max_bytes) = @dispatcher.take(subscriber, max_bytes)

      def wrote(subscriber, bytes, now:) = @dispatcher.wrote(subscriber, bytes, now: now)

      def writable(subscriber) = @dispatcher.writable(subscriber)

      def notify(topic, frame)
        feed = @feeds["exact", topic] or return 0
        feed.subscriptions.each do |subscription|
          subscriber = subscription.subscriber
          next if subscriber.blocked || subscriber.control
          control(subscriber, subscriber.names? ? Event.names([feed.matcher]) + frame : frame)
        end
        feed.subscriptions.size
      end

      def watched?(topic) = !@feeds["exact", topic].nil?

      def control(subscriber, bytes) = @queue.say(subscriber, bytes)

      def close(subscriber, reason) = @queue.close(subscriber, reason)

      def disconnect(subject) = close_all(:disconnected) { |subscriber| subscriber.grant.subject == subject }

      def expel
        selected = Hash.new { |known, grant| known[grant] = yield(grant) }.compare_by_identity
        close_all(:disconnected) { |subscriber| selected[subscriber.grant] }
      end

      def shutdown
        @announcer.stop
        @subscribers.each_key { |subscriber| close(subscriber, :shutdown) }
      end

      def tick(now:)
        @persistence&.forget_old
        @deadlines.tick(now)
      end

      def next_tick = @deadlines.next_at

      def each_subscriber(&block) = @subscribers.each_key(&block)

      def each_subscription(type: nil, pattern: nil, &block)
        if pattern
          @feeds[type, pattern]&.subscriptions&.each(&block)
        else
          @subscribers.each_key { |subscriber| subscriber.subscriptions.each(&block) }
        end
      end

      def last_event_id = @log.last_event_id

      def rekey
        @log.rekey
        @changes.clear
      end

      def matcher(type, pattern) = @feeds[type, pattern]&.matcher

      def subscriber_count = @subscribers.size

      def stats
        {
          subscribers: @subscribers.size, subscriptions: @feeds.subscription_count, feeds: @feeds.size,
          publishes: @publishes, deliveries: @dispatcher.deliveries, delivered_bytes: @dispatcher.delivered_bytes,
          history_bytes: @log.bytes, history_updates: @log.size, gaps: @gatherer.gaps, overruns: @gatherer.overruns,
          refused_total: @admission.refused_total, refused_address: @admission.refused_address,
          pattern_cost: @pattern_budget.total, refused_cost: @pattern_budget.refused
        }
      end

      # Positions are counted from the newest event that each subscriber's matchers select, not from the end of the log.
      def lag
        behind = @subscribers.each_key.map do |subscriber|
          newest = subscriber.subscriptions.map { |subscription| subscription.feed.newest }.max
          [newest - subscriber.cursor, 0].max
        end.sort
        behind.empty? ? [0, 0] : [behind.last, behind[(behind.size * 0.99).ceil - 1]]
      end

      private

      def admit(subscriber)
        @admission.admit(subscriber.address)
        @feeds.charge(subscriber, subscriber.grant.matchers)
      rescue PatternsTooCostly
        @admission.release(subscriber.address)
        raise
      end

      # Puts the cursor where the subscriber wants to go on. A subscriber whose event id is unknown is told of a gap.
      def place(subscriber, last_event_id)
        subscriber.began_at, subscriber.last_event_id = resolve(last_event_id, subscriber.grant)
        subscriber.cursor = subscriber.began_at
        return if subscriber.last_event_id != "earliest" || ["", "earliest"].include?(last_event_id)
        subscriber.say(Gap.event(id: @log.id_of(subscriber.cursor), after: last_event_id, reason: "unknown"))
      end

      def close_all(reason)
        @subscribers.each_key.count do |subscriber|
          next if subscriber.closing || !yield(subscriber)
          close(subscriber, reason)
          true
        end
      end
    end
  end
end
