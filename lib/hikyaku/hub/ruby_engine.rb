# frozen_string_literal: true

require_relative "../log"
require_relative "admission"
require_relative "engine"
require_relative "event"
require_relative "feed"
require_relative "gap"
require_relative "history"
require_relative "pattern_budget"
require_relative "record"
require_relative "subscriber"
require_relative "subscription"
require_relative "topic_index"
require_relative "ruby_engine/announcing"
require_relative "ruby_engine/changing"
require_relative "ruby_engine/delivery"
require_relative "ruby_engine/forming"
require_relative "ruby_engine/gathering"
require_relative "ruby_engine/keeping"
require_relative "ruby_engine/naming"
require_relative "ruby_engine/sharing"
require_relative "ruby_engine/timing"

module Hikyaku
  class Hub
    # The engine in Ruby: the log, who listens to what, and who has got how far. How bytes are handed out is Delivery and
    # Gathering, in other forms Forming and Sharing, with the matchers' names Naming; what time brings is Timing; who is told about subscriptions is Announcing; what outlives the process is Keeping;
    # streams that are changed while they last are Changing.
    class RubyEngine
      include Engine
      include Announcing
      include Changing
      include Delivery
      include Forming
      include Gathering
      include Keeping
      include Naming
      include Sharing
      include Timing

      def initialize(topics:, documents: nil, history: 32 * 1024 * 1024, heartbeat: 15, max_lifetime: nil, gap_policy: nil,
        max_connections: nil, max_connections_per_address: nil, max_pattern_cost_total: nil, max_pattern_cost_per_address: nil,
        max_pattern_cost_per_beginning: nil, storage: nil, cipher: Log::PositionCipher.new, random: Random.new)
        @topics = topics
        @documents = documents
        @admission = Admission.new(total: max_connections, per_address: max_connections_per_address)
        @pattern_budget = PatternBudget.new(total: max_pattern_cost_total, per_address: max_pattern_cost_per_address, per_beginning: max_pattern_cost_per_beginning)
        @shut_down = false
        @log = History.new(capacity: history, topics: topics)
        @ids_of_positions = Log::Generations.new(cipher)
        @index = TopicIndex.new
        @feeds = {}
        @subscribers = {}.compare_by_identity
        @capabilities = {}
        @ready = []
        @scanning = []
        @scan_allowance = 0
        @dirty = []
        @gap_policy = gap_policy
        @random = random
        start_forming
        start_announcing
        start_timing(heartbeat, max_lifetime)
        @subscription_count = @publishes = @deliveries = @delivered_bytes = @gaps = @overruns = 0
        @feed = nil
        @place = 0
        restore(storage, history) if storage
      end

      def look_at(topics) = (topics.map { |topic| TopicSurvey.new(@index, topic) } if @index.patterns?)

      def weigh(matchers)
        matchers.each do |matcher|
          next if matcher.cost.zero?
          matcher.cost_in_ruby
          Thread.pass
        end
      end

      def publish(update, topics:, now:, type: nil, surveys: nil)
        type ||= update.type
        keep(update, topics, type) if @storage
        position, id = add(update, topics: topics, type: type, private: update.private?)
        surveys ||= topics.map { |topic| TopicSurvey.new(@index, topic) }
        surveys.each { |survey| @index.each_match(survey.topic, survey) { |feed| grow(feed, position) } }
        @publishes += 1
        id
      end

      def subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil, changeable: false, naming: false, form: :events, coding: :identity)
        plain = Form.plain?(form, coding)
        Form.refuse_naming(form) if naming
        @admission.admit(address)
        subscriber = Subscriber.new(grant, address: address)
        begin
          charge(subscriber, grant.matchers)
        rescue PatternsTooCostly
          @admission.release(address)
          raise
        end
        subscriber.name(grant.matchers) if naming
        give_form(subscriber, form, coding) unless plain
        subscriber.active_at = now
        subscriber.blocked = true
        subscriber.subscriptions = grant.matchers.map { |matcher| link(subscriber, matcher) }
        @subscribers[subscriber] = true
        place(subscriber, last_event_id)
        make_changeable(subscriber, last_event_id) if changeable
        time(subscriber, now, expires_in)
        announce(subscriber, now, active: true)
        subscriber
      end

      def unsubscribe(subscriber, now: subscriber.active_at)
        return false unless @subscribers.delete(subscriber)
        @admission.release(subscriber.address)
        @capabilities.delete(subscriber.capability) if subscriber.capability
        subscriber.closed = true
        subscriber.subscriptions.each { |subscription| unlink(subscription) }
        take_form_away(subscriber) if subscriber.form
        cancel_timing(subscriber)
        announce(subscriber, now, active: false)
        true
      end

      # Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing".
      def resolve(last_event_id, grant)
        if last_event_id.nil?
          [@log.head, nil]
        elsif last_event_id.empty?
          [@log.head, @log.size.zero? ? "earliest" : cursor(grant)]
        elsif last_event_id != "earliest" && (position = position_of(last_event_id))
          [position, last_event_id]
        else
          [@log.first - 1, "earliest"]
        end
      end

      def cursor(grant)
        record = @log[@log.head]
        (record && grant.admits?(record)) ? record.id : @ids_of_positions.seal(@log.head)
      end

      def notify(topic, frame)
        feed = @feeds[["exact", topic]] or return 0
        feed.subscriptions.each do |subscription|
          subscriber = subscription.subscriber
          next if subscriber.blocked || subscriber.control
          control(subscriber, subscriber.names? ? Event.names([feed.matcher]) + frame : frame)
        end
        feed.subscriptions.size
      end

      # Whether anybody subscribes to exactly this topic.
      def watched?(topic) = @feeds.key?(["exact", topic])

      # Sends bytes to one subscriber at the next event boundary.
      def control(subscriber, bytes)
        subscriber.control = subscriber.control ? subscriber.control + bytes : bytes
        ready!(subscriber)
      end

      # Marks a subscriber to be closed by the driver.
      def close(subscriber, reason)
        return if subscriber.closing || subscriber.closed
        subscriber.closing = reason
        ready!(subscriber)
      end

      # Marks all subscribers of a subject to be closed.
      def disconnect(subject)
        @subscribers.each_key.count do |subscriber|
          next if subscriber.closing || subscriber.grant.subject != subject
          close(subscriber, :disconnected)
          true
        end
      end

      # Marks all subscribers to be closed whose grants the block selects.
      def expel
        selected = Hash.new { |known, grant| known[grant] = yield(grant) }.compare_by_identity
        @subscribers.each_key.count do |subscriber|
          next if subscriber.closing || !selected[subscriber.grant]
          close(subscriber, :disconnected)
          true
        end
      end

      # Marks all subscribers to be closed, and announces no end any more.
      def shutdown
        @shut_down = true
        @untold.clear
        @subscribers.each_key { |subscriber| close(subscriber, :shutdown) }
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

      def rekey
        @ids_of_positions = Log::Generations.new(Log::PositionCipher.new)
        @capabilities.clear
      end

      def subscriber_count = @subscribers.size

      def stats
        {
          subscribers: @subscribers.size, subscriptions: @subscription_count, feeds: @feeds.size,
          publishes: @publishes, deliveries: @deliveries, delivered_bytes: @delivered_bytes,
          history_bytes: @log.bytes, history_updates: @log.size, gaps: @gaps, overruns: @overruns,
          refused_total: @admission.refused_total, refused_address: @admission.refused_address,
          pattern_cost: @pattern_budget.total, refused_cost: @pattern_budget.refused
        }
      end

      def lag
        behind = @subscribers.each_key.map { |subscriber| lag_of(subscriber) }.sort
        behind.empty? ? [0, 0] : [behind.last, behind[(behind.size * 0.99).ceil - 1]]
      end

      # The matcher that is in use for this type and pattern, so that a pattern is compiled once however many use it.
      def matcher(type, pattern) = @feeds[[type, pattern]]&.matcher

      private

      def add(update, topics:, type:, private:)
        position = @log.head + 1
        id = update.id || @ids_of_positions.seal(position)
        frame = Event.encode(id: id, data: update.data, type: type, retry_after: update.retry_after)
        @log.append(Record.new(frame: frame, topics: topics, id: id, private: private), chosen: !update.id.nil?)
        [position, id]
      end

      # Events for it, not of the log: who has received all that is for it is not behind, whatever was published to others.
      def lag_of(subscriber)
        newest = subscriber.subscriptions.map { |subscription| subscription.feed.newest }.max
        [newest - subscriber.cursor, 0].max
      end

      def grow(feed, position)
        return unless feed.append(position)
        return if feed.dirty
        feed.dirty = true
        @dirty << feed
      end

      def link(subscriber, matcher)
        @subscription_count += 1
        Subscription.new(subscriber, feed_for(matcher, subscriber.address)).tap { |subscription| subscription.feed.link(subscription) }
      end

      def unlink(subscription)
        @subscription_count -= 1
        feed = subscription.feed
        feed.unlink(subscription)
        drop(feed) if feed.subscriptions.empty?
      end

      def charge(subscriber, matchers) = @pattern_budget.charge(without_feed(matchers), subscriber.address)

      # What was charged for feeds that were not made.
      def refund(subscriber, matchers)
        without_feed(matchers).each { |matcher| @pattern_budget.refund(matcher, subscriber.address) }
      end

      def without_feed(matchers) = matchers.reject { |matcher| @feeds.key?([matcher.type, matcher.pattern]) }

      # The matchers of new ones were charged.
      def feed_for(matcher, payer)
        @feeds[[matcher.type, matcher.pattern]] ||= Feed.new(matcher, since: @log.head + 1, payer: payer).tap { |feed| @index.add(feed) }
      end

      def drop(feed)
        @pattern_budget.refund(feed.matcher, feed.payer)
        @index.remove(feed)
        @feeds.delete([feed.matcher.type, feed.matcher.pattern])
      end

      def place(subscriber, last_event_id)
        subscriber.began_at, subscriber.last_event_id = resolve(last_event_id, subscriber.grant)
        subscriber.cursor = subscriber.began_at
        return if subscriber.last_event_id != "earliest" || ["", "earliest"].include?(last_event_id)
        subscriber.control = Gap.event(id: @ids_of_positions.seal(subscriber.cursor), after: last_event_id, reason: "unknown")
      end

      # The position of an event from which nothing has been lost since.
      def position_of(id)
        position = @log.position_of(id) || @ids_of_positions.open(id, @log.head)
        position if position && position >= @log.first - 1
      end
    end
  end
end
