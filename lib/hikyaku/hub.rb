# frozen_string_literal: true

require_relative "error"
require_relative "hub/admission"
require_relative "hub/event"
require_relative "hub/grant"
require_relative "hub/idempotency"
require_relative "hub/matcher"
require_relative "hub/revocations"
require_relative "hub/ruby_engine"
require_relative "hub/subscription_document"
require_relative "hub/topics"
require_relative "hub/update"

module Hikyaku
  # Takes updates, keeps them in a log, and knows who receives which. No I/O and no HTTP: a driver (see Hub::Engine)
  # carries the bytes, the Web application decides who may do what. Thread-safe.
  #
  #     hub = Hikyaku::Hub.new(hub_url: "https://example.com/.well-known/mercure")
  #     hub.publish(Hikyaku::Hub::Update.new(topics: "https://example.com/books/1", data: "{}"))
  class Hub
    # @return [Topics] the topics that were seen lately, resolved against the hub's URL
    attr_reader :topics
    # @return [SubscriptionDocument]
    attr_reader :documents
    # What carries the bytes; told with `wake` that somebody is ready, with `stop` to close everybody.
    # @return [#wake, #stop, nil]
    attr_accessor :driver

    # @param hub_url [String] the hub's public URL: relative topics and patterns are resolved against it
    # @param engine [Engine]
    # @param subscriptions [Boolean] whether subscription events are published
    # @param max_connections [Integer, nil] subscribers in total
    # @param max_connections_per_address [Integer, nil] subscribers of one client address
    # @param clock [#call] seconds since 1970, for the expiry of tokens
    # @param monotonic [#call] seconds that only go forward
    # @param random [Random] for jitter
    def initialize(hub_url:, engine: RubyEngine.new, subscriptions: false, max_connections: nil, max_connections_per_address: nil,
      clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME) }, monotonic: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) },
      random: Random.new)
      @topics = Topics.new(hub_url: hub_url)
      @documents = SubscriptionDocument.new(@topics.hub_path)
      @engine = engine
      @subscriptions = subscriptions
      @admission = Admission.new(total: max_connections, per_address: max_connections_per_address)
      @clock = clock
      @monotonic = monotonic
      @random = random
      @mutex = Mutex.new
      @idempotency = Idempotency.new
      @revocations = Revocations.new
      @driver = nil
      @stopped = false
    end

    # @return [String]
    def hub_url = @topics.hub_url

    # @return [String]
    def hub_path = @topics.hub_path

    # @return [Boolean] whether subscription events are published
    def subscriptions? = @subscriptions

    # Publishes an update to all whom it concerns.
    #
    # Mercure draft-08, section "Publication".
    #
    # @param update [Update]
    # @param idempotency_key [Object, nil] the same key again publishes nothing and returns the first id
    # @return [String] the event id
    # @raise [InvalidTopic] a topic lies in the hub's reserved namespace
    # @raise [KeyReused] the key came with another update before
    def publish(update, idempotency_key: nil)
      topics = update.topics.map { |topic| @topics[topic] }
      if (reserved = topics.find(&:reserved?))
        raise InvalidTopic, "topic #{reserved.value.inspect} lies in the reserved namespace #{hub_path}"
      end
      id = @mutex.synchronize do
        now = @monotonic.call
        next @engine.publish(update, topics: topics, now: now) unless idempotency_key
        fingerprint = [update.topics, update.data, update.private?, update.id, update.type, update.retry_after].hash
        @idempotency.fetch(idempotency_key, fingerprint, now: now) { @engine.publish(update, topics: topics, now: now) }
      end
      @driver&.wake
      id
    end

    # Registers a subscriber and announces its subscriptions. The driver gives it a connection afterwards.
    #
    # Mercure draft-08, sections "Subscription" and "Subscription Events".
    #
    # @param grant [Grant]
    # @param last_event_id [String, nil] the event that the client has, or "earliest"
    # @param address [String, nil] the client's address
    # @return [Subscriber]
    # @raise [TooManyConnections]
    def subscribe(grant, last_event_id: nil, address: nil)
      subscriber = @mutex.synchronize do
        @admission.admit(address)
        expires_in = grant.expires_at && grant.expires_at - @clock.call
        subscriber = @engine.subscribe(grant, now: @monotonic.call, expires_in: expires_in, last_event_id: last_event_id, address: address)
        announce(subscriber, active: true) if @subscriptions
        subscriber
      end
      @driver&.wake if @subscriptions
      subscriber
    end

    # What a cursor would be answered, without subscribing.
    #
    # @param last_event_id [String]
    # @param grant [Grant]
    # @return [String] for `Mercure-Last-Event-ID`
    def resolve(last_event_id, grant) = @mutex.synchronize { @engine.resolve(last_event_id, grant).last }

    # Forgets a subscriber and announces the end of its subscriptions. Harmless when it is already gone.
    #
    # @param subscriber [Subscriber]
    # @return [void]
    def unsubscribe(subscriber)
      gone = @mutex.synchronize { forget(subscriber) }
      @driver&.wake if gone && @subscriptions
    end

    # Closes all streams of a subject and, if asked, refuses the tokens that it got before now.
    #
    # @param subject [String] the `sub` of its tokens
    # @param revoke [Boolean] also refuse tokens of this subject that were issued before now
    # @return [Integer] how many streams are closed
    def disconnect(subject:, revoke: false)
      count = 0
      @mutex.synchronize do
        @revocations.add(subject, @clock.call) if revoke
        @engine.each_subscriber do |subscriber|
          next if subscriber.closing || subscriber.grant.subject != subject
          @engine.close(subscriber, :disconnected)
          count += 1
        end
      end
      @driver&.wake
      count
    end

    # @param subject [String, nil]
    # @param issued_at [Float, nil] seconds since 1970
    # @return [Boolean] the token is older than a revocation of its subject
    def revoked?(subject, issued_at) = @revocations.cover?(subject, issued_at)

    # Sends bytes that are not kept to the exact subscribers of a topic.
    #
    # @param topic [String]
    # @param frame [String] an event without id, see Event.transient
    # @return [Integer] how many subscribers there are
    def notify(topic, frame)
      count = @mutex.synchronize { @engine.notify(topic, frame) }
      @driver&.wake if count > 0
      count
    end

    # @param topic [String]
    # @return [Boolean] somebody subscribes to exactly this topic
    def watched?(topic) = @mutex.synchronize { @engine.watched?(topic) }

    # @return [String, nil] the id of the newest event; nil when there was none
    def last_event_id = @mutex.synchronize { @engine.last_event_id }

    # The active subscriptions as documents, with the cursor that belongs to them.
    #
    # Mercure draft-08, section "Subscription API".
    #
    # @param type [String, nil] only of this matcher type
    # @param pattern [String, nil] only of this matcher
    # @param subscriber [String, nil] only of this subscriber
    # @param limit [Integer] at most so many
    # @return [Array(String, Array<Hash>)] the last event id or nil, and the documents
    def subscriptions(type: nil, pattern: nil, subscriber: nil, limit: 10_000)
      @mutex.synchronize do
        found = []
        @engine.each_subscription(type: type, pattern: pattern) do |subscription|
          next if subscriber && subscription.subscriber.id != subscriber
          break if found.size >= limit
          found << @documents.document(subscription)
        end
        [@engine.last_event_id, found]
      end
    end

    # A matcher, compiled once however many subscribers use it.
    #
    # @param type [String] "exact", "urlpattern" or "uri_template"
    # @param pattern [String]
    # @param max_bytes [Integer]
    # @return [Matcher]
    # @raise [InvalidMatcher] with the reason
    def matcher(type, pattern, max_bytes: 4096)
      @mutex.synchronize { @engine.matcher(type, pattern) } ||
        Matcher.build(type: type, pattern: pattern, base: hub_url, max_bytes: max_bytes)
    end

    # @return [Hash{Symbol => Integer}] see Engine#stats
    def stats = @mutex.synchronize { @engine.stats }

    # Runs a block with the engine, alone. For drivers.
    #
    # @yieldparam engine [Engine]
    # @return [Object] what the block returned
    def drive
      @mutex.synchronize { yield @engine }
    end

    # Closes every stream with a time to come back, and accepts no more. Harmless when repeated.
    #
    # @return [void]
    def shutdown
      @stopped = true
      @driver&.stop
      @mutex.synchronize { @engine.each_subscriber { |subscriber| @engine.close(subscriber, :shutdown) } }
    end

    # @return [Boolean]
    def stopped? = @stopped

    # @return [Integer] milliseconds after which a closed client should come back: more, the more there are, so that
    #   they do not come all at once
    def reconnection_delay
      spread = 1_000 + [@engine.subscriber_count / 2, 20_000].min
      500 + @random.rand(spread)
    end

    # @return [String] without the engine's contents
    def inspect = "#<#{self.class.name} #{hub_url}>"

    private

    def forget(subscriber)
      return false unless @engine.unsubscribe(subscriber)
      @admission.release(subscriber.address)
      announce(subscriber, active: false) if @subscriptions && !@stopped
      true
    end

    def announce(subscriber, active:)
      now = @monotonic.call
      subscriber.subscriptions.each do |subscription|
        data = JSON.generate(@documents.document(subscription, active: active))
        topic = @topics[@documents.topic(subscription)]
        update = Update.new(topics: topic.value, data: data, private: true, max_topic_bytes: 65_536)
        @engine.publish(update, topics: [topic], now: now, type: @documents.event_type(subscription))
      end
    end
  end
end
