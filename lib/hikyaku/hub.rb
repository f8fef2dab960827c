# frozen_string_literal: true

require_relative "support/clock"
require_relative "error"
require_relative "hub/event"
require_relative "hub/grant"
require_relative "hub/idempotency"
require_relative "hub/matcher"
require_relative "hub/revocations"
require_relative "hub/ruby_engine"
require_relative "hub/subscription_document"
require_relative "hub/topics"
require_relative "hub/update"
require_relative "hub/update_limits"

module Hikyaku
  # A client tried to change a stream that belongs to another subject.
  class AnotherSubject < StandardError
    include Error
  end

  # Takes updates, appends them to a log, and selects the subscribers of each. No I/O and no HTTP: a driver (see Hub::Engine)
  # carries the bytes, and the Web application authorises. Thread-safe.
  #
  #     hub = Hikyaku::Hub.new(hub_url: "https://example.com/.well-known/mercure")
  #     hub.publish(Hikyaku::Hub::Update.new(topics: "https://example.com/books/1", data: "{}"))
  class Hub
    # @return [Topics] a cache of topics, resolved against the hub's URL
    attr_reader :topics
    # @return [SubscriptionDocument]
    attr_reader :documents
    # Carries the bytes. The hub calls `wake` when subscribers are ready, `forget` with the subject whose cached decisions are void
    # (nil: all decisions), and `stop` to close all streams.
    # @return [#wake, #forget, #stop, nil]
    attr_accessor :driver

    # @param hub_url [String] the hub's public URL: relative topics and patterns are resolved against it
    # @param engine [Class] an Engine
    # @param subscriptions [Boolean] whether subscription events are published
    # @param clock [#call] seconds since 1970, for the expiry of tokens
    # @param monotonic [#call] seconds that only go forward
    # @param random [Random] for jitter
    # @param limits [UpdateLimits] how large an update may be
    # @param options [Hash] of the engine: see RubyEngine#initialize
    def initialize(hub_url:, engine: RubyEngine, subscriptions: false,
      clock: Support::Clock::WALL, monotonic: Support::Clock::MONOTONIC,
      random: Random.new, limits: UpdateLimits.new, **options)
      @topics = Topics.new(hub_url: hub_url)
      @documents = SubscriptionDocument.new(@topics.hub_path)
      @engine = engine.new(topics: @topics, documents: subscriptions ? @documents : nil, **options)
      @subscriptions = subscriptions
      @clock = clock
      @monotonic = monotonic
      @random = random
      @limits = limits
      @mutex = Mutex.new
      @idempotency = Idempotency.new
      @revocations = Revocations.new(path: options[:storage]&.then { |storage| File.join(storage.fetch(:folder), "revocations") })
      @driver = nil
      @stopped = false
      @pid = Process.pid
    end

    # @return [String]
    def hub_url = @topics.hub_url

    # @return [String]
    def hub_path = @topics.hub_path

    # @return [Boolean] whether subscription events are published
    def subscriptions? = @subscriptions

    # Publishes an update to its subscribers.
    #
    # Mercure draft-08, section "Publication".
    #
    # @param update [Update]
    # @param idempotency_key [Object, nil] the same key again publishes nothing and returns the first id
    # @return [String] the event id, when the update is as safe as the hub's storage promises
    # @raise [InvalidTopic] a topic lies in the hub's reserved namespace
    # @raise [LimitExceeded] the update is larger than the hub takes
    # @raise [KeyReused] the key came with another update before
    # @raise [StorageFailed] it could not be stored, and was not published; or it was published, and whether it is stored is in doubt
    def publish(update, idempotency_key: nil)
      @limits.check(update)
      topics = update.topics.map { |topic| @topics[topic] }
      refuse_reserved(topics)
      surveys = survey(topics)
      id, ticket = alone do
        now = @monotonic.call
        id = if idempotency_key
          fingerprint = [update.topics, update.data, update.private?, update.id, update.type, update.retry_after].hash
          @idempotency.fetch(idempotency_key, fingerprint, now: now) { @engine.publish(update, topics: topics, now: now, surveys: surveys) }
        else
          @engine.publish(update, topics: topics, now: now, surveys: surveys)
        end
        [id, @engine.ticket]
      end
      @driver&.wake
      @engine.await(ticket) if ticket
      id
    end

    # Mercure draft-08, section "Reserved Hub Namespace".
    #
    # @param topics [Array<Topic>]
    # @return [void]
    # @raise [InvalidTopic] one of them lies in the hub's reserved namespace
    def refuse_reserved(topics)
      reserved = topics.find(&:reserved?) or return
      raise InvalidTopic, "topic #{reserved.value.inspect} lies in the reserved namespace #{hub_path}"
    end

    # Registers a subscriber and announces its subscriptions. The driver gives it a connection afterwards.
    #
    # Mercure draft-08, sections "Subscription" and "Subscription Events".
    #
    # @param grant [Grant]
    # @param last_event_id [String, nil] the event that the client has, or "earliest"
    # @param address [String, nil] the client's address
    # @param changeable [Boolean] whether it has a `capability`
    # @param naming [Boolean] whether its events name the matchers that selected them, see Engine#subscribe
    # @param format [Symbol] see Engine#subscribe
    # @param coding [Symbol] see Engine#subscribe
    # @return [Subscriber]
    # @raise [TooManyConnections]
    # @raise [PatternsTooCostly]
    # @raise [InvalidToken] the grant's subject was revoked after it was decided
    # @raise [UnknownStreamFormat, UnsupportedStreamFormat]
    def subscribe(grant, last_event_id: nil, address: nil, changeable: false, naming: false, format: :events, coding: :identity)
      @engine.prepare(grant.matchers)
      subscriber = alone do
        @engine.subscribe(grant, now: @monotonic.call, expires_in: rest_of(grant), last_event_id: last_event_id, address: address, changeable: changeable,
          naming: naming, format: format, coding: coding)
      end
      @driver&.wake if @subscriptions
      subscriber
    end

    # Whether the engine writes streams in a format, with a coding.
    #
    # @param format [Symbol] see Engine#subscribe
    # @param coding [Symbol] see Engine#subscribe
    # @return [Boolean]
    # @raise [UnknownStreamFormat]
    def offers?(format, coding) = @engine.offers?(format, coding)

    # The secret that allows a client to change its stream.
    #
    # @param subscriber [Subscriber]
    # @return [String, nil] see Engine#capability
    def capability(subscriber) = alone { @engine.capability(subscriber) }

    # Gives a stream another grant while it lasts: other matchers, another token, or both. Not part of the Mercure protocol.
    #
    # @param capability [String]
    # @param grant [Grant]
    # @param last_event_id [String, nil] the event after which added matchers begin; nil: they begin with the next update
    # @return [String, nil] see Engine#change; nil when the stream does not exist any more
    # @raise [InvalidToken] the grant's subject was revoked after it was decided
    # @raise [AnotherSubject] the stream belongs to another subject
    # @raise [PatternsTooCostly]
    # @raise [TooManyRewinds]
    def change(capability, grant, last_event_id: nil)
      @engine.prepare(grant.matchers)
      answer = alone do
        rest = rest_of(grant)
        subscriber = @engine.find(capability) or next
        subjects = [subscriber.grant.subject, grant.subject].compact.uniq
        raise AnotherSubject, "the stream is of another subject than the token" if subjects.size > 1
        @engine.change(subscriber, grant, now: @monotonic.call, expires_in: rest, last_event_id: last_event_id)
      end
      @driver&.wake
      answer
    end

    # The answer that a subscribe with this event id would get.
    #
    # @param last_event_id [String]
    # @param grant [Grant]
    # @return [String] for `Mercure-Last-Event-ID`
    def resolve(last_event_id, grant) = alone { @engine.resolve(last_event_id, grant).last }

    # The end of the log, as a `last_event_id` to begin from later: then the stream misses nothing, or is told of a gap. It works before
    # the first event too, when `resolve("", grant)` returns "earliest", as Mercure requires.
    #
    # @param grant [Grant]
    # @return [String] see Engine#cursor
    def cursor(grant) = alone { @engine.cursor(grant) }

    # Removes a subscriber and announces the end of its subscriptions. Harmless when it is already gone.
    #
    # @param subscriber [Subscriber]
    # @return [void]
    def unsubscribe(subscriber)
      gone = @mutex.synchronize { @engine.unsubscribe(subscriber, now: @monotonic.call) }
      @driver&.wake if gone && @subscriptions
    end

    # Closes all streams of a subject and, with `revoke`, refuses its older tokens.
    #
    # @param subject [String] the `sub` of its tokens
    # @param revoke [Boolean] also refuse tokens of this subject that were issued before now
    # @return [Integer] how many streams are closed
    # @raise [StorageFailed] streams are closed and tokens refused, but only until the hub is restarted
    def disconnect(subject:, revoke: false)
      count = @mutex.synchronize do
        @revocations.add(subject, @clock.call) if revoke
        @driver&.forget(subject)
        @engine.disconnect(subject)
      end
      @driver&.wake
      @revocations.keep(subject) if revoke
      count
    end

    # Closes all streams whose grants are not valid any more, because a signing key was withdrawn for example, and drops all cached
    # decisions.
    #
    # @return [Integer] how many streams are closed
    def expel
      count = @mutex.synchronize do
        @driver&.forget(nil)
        @engine.expel { |grant| !grant.good? }
      end
      @driver&.wake
      count
    end

    # @param subject [String, nil]
    # @param issued_at [Float, nil] seconds since 1970
    # @return [Boolean] the token is older than a revocation of its subject
    def revoked?(subject, issued_at) = @revocations.cover?(subject, issued_at)

    # Sends an event that is not appended to the log to the exact subscribers of a topic.
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
    # @return [Boolean] whether a subscriber has an exact matcher for the topic
    def watched?(topic) = @mutex.synchronize { @engine.watched?(topic) }

    # @return [String, nil] the id of the newest event; nil when there was none
    def last_event_id = @mutex.synchronize { @engine.last_event_id }

    # The active subscriptions as documents, and the id of the newest event at that moment.
    #
    # Mercure draft-08, section "Subscription API".
    #
    # @param type [String, nil] only of this matcher type
    # @param pattern [String, nil] only of this matcher
    # @param subscriber [String, nil] only of this subscriber
    # @param limit [Integer] the largest number of documents
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

    # A matcher, compiled once for all subscribers that use it.
    #
    # @param type [String] "exact", "urlpattern" or "uri_template"
    # @param pattern [String]
    # @param limits [Hash] see Matcher.build
    # @return [Matcher]
    # @raise [InvalidMatcher] with the reason
    # @raise [LimitExceeded] with the reason
    def matcher(type, pattern, **limits)
      matcher_in_use(type, pattern) || Matcher.build(type: type, pattern: pattern, base: hub_url, **limits)
    end

    # @param type [String]
    # @param pattern [String]
    # @return [Matcher, nil]
    def matcher_in_use(type, pattern) = @mutex.synchronize { @engine.matcher(type, pattern) }

    # @return [Hash{Symbol => Integer}] see Engine#stats
    def stats = @mutex.synchronize { @engine.stats }

    # How far behind readers are.
    #
    # @return [Array(Integer, Integer)] see Engine#lag
    def lag = @mutex.synchronize { @engine.lag }

    # Runs a block with the engine, alone. For drivers.
    #
    # @yieldparam engine [Engine]
    # @return [Object] what the block returned
    def drive
      @mutex.synchronize { yield @engine }
    end

    # Closes every stream, telling each client when to reconnect, and accepts no more. Harmless when repeated.
    #
    # @return [void]
    def shutdown
      @stopped = true
      @driver&.stop
      @mutex.synchronize { @engine.shutdown }
    end

    # Closes the storage in order; after that, publishing fails. Harmless when repeated.
    #
    # @return [void]
    # @raise [StorageFailed]
    def close
      @mutex.synchronize { @engine.close_storage }
    ensure
      @revocations.close
    end

    # @return [Boolean]
    def stopped? = @stopped

    # @return [Integer] milliseconds after which a client should reconnect: random, and longer the more clients there are, so that they
    #   do not reconnect all at once
    def reconnection_delay
      spread = 1_000 + [@engine.subscriber_count / 2, 20_000].min
      500 + @random.rand(spread)
    end

    # Identifies the store of idempotency keys. It changes with a restart and in a forked process, which do not know the keys of
    # earlier publishes.
    #
    # @return [String]
    def memory = alone { @idempotency.name }

    # Sets a block that is called when the hub is first used in a forked process.
    #
    # @return [void]
    def on_fork(&block) = @on_fork = block

    # @return [String] without the engine's contents
    def inspect = "#<#{self.class.name} #{hub_url}>"

    private

    # Steps through the patterns that take long to match without the lock, so that other threads run in between.
    def survey(topics)
      surveys = @mutex.synchronize { @engine.survey(topics) } or return
      surveys.each do |one|
        Thread.pass until one.step(TopicSurvey::STEPS_PER_TURN) > 0
      end
    end

    # @return [Float, nil] seconds until the grant ends
    def rest_of(grant)
      raise InvalidToken, "tokens of this subject were revoked a moment ago" if revoked?(grant.subject, grant.issued_at)
      raise InvalidToken, "the key that signed the token was withdrawn a moment ago" unless grant.good?
      grant.expires_at && grant.expires_at - @clock.call
    end

    # Holds the lock for calls that depend on ids, which change in a forked process.
    def alone
      @mutex.synchronize do
        reset_after_fork unless @pid == Process.pid
        yield
      end
    end

    # In each process the same positions become other events, so their ids must differ.
    def reset_after_fork
      @pid = Process.pid
      @engine.abandon_storage
      @revocations.close
      @engine.rekey
      @idempotency = Idempotency.new
      @on_fork&.call
    end
  end
end
