# frozen_string_literal: true

require_relative "stream_format"

module Hikyaku
  class Hub
    # The contract of a hub engine: the log, the feeds and the cursors, free of I/O. A driver (the Server::Reactor, a pump, a
    # test) owns the sockets and the clock and moves the bytes:
    #
    #     engine.publish(update, …)                     appends an update
    #     engine.serve(128, 65_536, now:) do |subscriber, bytes|
    #       socket_of(subscriber).write(bytes)            returns how many bytes the socket accepted
    #     end
    #     engine.tick(now:)                             heartbeats, deadlines
    #
    # `serve` consists of three steps that can also be taken one by one: `next_ready`, `take`, `wrote`.
    #
    # Time is an argument: seconds of a clock that never goes back.
    #
    # A publish costs O(matchers that match + deliveries). A subscriber is a cursor; it has no queue. Engines are not
    # thread-safe: the Hub holds one lock round them. `test/contracts/engine_contract.rb` runs over every engine.
    module Engine
      # @!method initialize(topics:, documents: nil, history:, heartbeat:, max_lifetime:, gap_policy: nil, max_connections: nil, max_connections_per_address: nil, max_pattern_cost_total: nil, max_pattern_cost_per_address: nil, max_pattern_cost_per_beginning: nil, storage: nil)
      #   @param documents [SubscriptionDocument, nil] describes subscriptions in events; nil to announce none
      #   @param history [Integer] bytes of memory that the log may take
      #   @param heartbeat [Float, nil] seconds of silence before a comment is sent
      #   @param max_lifetime [Float, nil] seconds after which a stream is closed
      #   @param gap_policy [#call, nil] given a matcher, `:close` to close a subscriber that the log has passed
      #   @param storage [Hash, nil] `folder`, and options of Storage

      # @!method survey(topics)
      #   Begins to match topics against the patterns that take long.
      #   @param topics [Array<Topic>]
      #   @return [Array<TopicSurvey>, nil] for `publish`, when they were stepped through without any lock; nil: not needed

      # @!method prepare(matchers)
      #   Computes what matchers need before they are used, where that takes long. Needs no lock.
      #   @param matchers [Array<Matcher>]

      # @!method publish(update, topics:, now:, type: nil, surveys: nil)
      #   Appends an update to the log and marks the subscribers that receive it.
      #   @param update [Update]
      #   @param topics [Array<Topic>] the update's topics, resolved
      #   @param type [String, nil] an event type that overrides the update's (the hub's own events)
      #   @param surveys [Array<TopicSurvey>, nil] of the topics, from `survey`
      #   @return [String] the event id
      #   @raise [StorageFailed] it could not be stored, and was not published

      # @!method ticket
      #   @return [Integer, nil] the argument of `await` for the newest update; nil when that is as safe as the storage promises

      # @!method await(ticket)
      #   Waits until an update is as safe as the storage promises. Any thread may call it, without the lock.
      #   @raise [StorageFailed] whether the update is stored is in doubt

      # @!method close_storage
      #   Closes the storage in order. Harmless when repeated, or without storage.

      # @!method abandon_storage
      #   Releases the storage, which belongs to the parent process. For a process that was forked.

      # @!method subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil, changeable: false, naming: false, format: :events, coding: :identity)
      #   Registers a subscriber and announces its subscriptions where the engine has `documents`. The subscriber is blocked until the
      #   driver has a socket for it and calls `writable`.
      #   @param grant [Grant]
      #   @param expires_in [Float, nil] seconds until its grant ends
      #   @param last_event_id [String, nil] the last event that it received; "earliest" for all that is retained
      #   @param changeable [Boolean] it gets a `capability`. When it has been sent the missed events that `last_event_id` asks for, a
      #     comment says so (Event::CAUGHT_UP)
      #   @param naming [Boolean] its events begin with fields that name the matchers that selected them (Event.names), once it has had
      #     more than one matcher. When it goes back for a matcher it is sent all events that the matcher selects, also those that it
      #     was sent for another; they name the new matcher alone. Events for every subscriber, such as gaps, name none
      #   @param format [Symbol] `:events`, Server-Sent Events; or `:message_pack`, see StreamFormat::MessagePack
      #   @param coding [Symbol] `:identity`; or `:gzip`, one member (RFC 1952) in which each event can be decoded as soon as it arrives.
      #     Streams that receive the same events, and may read nothing private, share what is compressed
      #   @return [Subscriber] its `last_event_id` is the answer for `Mercure-Last-Event-ID`
      #   @raise [TooManyConnections]
      #   @raise [PatternsTooCostly] together with those in use; the subscriber was not registered
      #   @raise [UnknownStreamFormat] there is no such format or coding
      #   @raise [UnsupportedStreamFormat] this engine does not write it, see `offers?`; or it cannot be combined with `naming`

      # @param format [Symbol] as of `subscribe`
      # @param coding [Symbol] as of `subscribe`
      # @return [Boolean] whether the engine writes streams in this format, with this coding
      # @raise [UnknownStreamFormat]
      def offers?(format, coding)
        StreamFormat.check!(format, coding)
        coding == :identity
      end

      # @!method capability(subscriber)
      #   The secret that allows a client to change its stream.
      #   @param subscriber [Subscriber]
      #   @return [String, nil] at least 128 random bits as base64url; nil when the subscriber is not `changeable`, or gone

      # @!method find(capability)
      #   @param capability [String]
      #   @return [Subscriber, nil] nil when there is none, or it is gone

      # @!method change(subscriber, grant, now:, expires_in: nil, last_event_id: nil)
      #   Gives a subscriber another grant: its matchers, what it may read, until when. Matchers that stay go on where they are:
      #   none of their events is lost or repeated. Those that are removed end at once. Those that are added begin with the next update, or
      #   after `last_event_id`: then the subscriber goes back, and events that it was sent for its former matchers are left out. Where the
      #   engine has `documents`, it announces both. The longest lifetime still counts from the beginning.
      #
      #   The engine knows what was sent as long as the matcher stays and the private topics are the same; after that events may repeat.
      #
      #   Not between `take` and `wrote` of the same subscriber. O(matchers).
      #   @param subscriber [Subscriber]
      #   @param grant [Grant] with matchers
      #   @param expires_in [Float, nil] seconds until the grant ends
      #   @param last_event_id [String, nil] for the matchers that are added; as of `subscribe`
      #   @return [String, nil] the answer for `Mercure-Last-Event-ID`: the log's `cursor` when the change took effect, or "earliest"
      #     where events may be missing; nil when the subscriber is gone, or about to be
      #   @raise [PatternsTooCostly] together with those in use; nothing was changed
      #   @raise [TooManyRewinds] it still catches up for too many changes; nothing was changed

      # @!method resolve(last_event_id, grant)
      #   @param last_event_id [String, nil]
      #   @return [Array(Integer, String)] the cursor that it stands for, and the answer for `Mercure-Last-Event-ID`: the
      #     id itself where nothing was lost since, else "earliest"; nil for nil

      # @!method cursor(grant)
      #   An id for the end of the log, from which a client can go on later. Unlike "earliest" it tells of a gap when events were lost.
      #   @param grant [Grant]
      #   @return [String] the newest event's id; the alias of its position if the event is private to others, or there is none

      # @!method unsubscribe(subscriber, now:)
      #   Removes a subscriber and announces the end of its subscriptions. O(matchers of the subscriber).
      #   @return [Boolean] false when it was already gone

      # Hands out what is pending, to at most so many subscribers.
      #
      # @param limit [Integer] subscribers
      # @param max_bytes [Integer] see #take
      # @param now [Float] seconds on the engine's clock
      # @yieldparam subscriber [Subscriber]
      # @yieldparam bytes [String, nil] nil when the subscriber has to be closed: see `subscriber.closing`
      # @yieldreturn [Integer] how many bytes were accepted; fewer than given: it is blocked until `writable`
      # @return [Boolean] whether the limit was reached, or announcements are pending
      def serve(limit, max_bytes, now:)
        count = 0
        while count < limit
          subscriber = next_ready or return false
          count += 1
          if subscriber.closing
            yield subscriber, nil
          elsif (bytes = take(subscriber, max_bytes))
            wrote(subscriber, yield(subscriber, bytes), now: now)
          end
        end
        true
      end

      # @!method next_ready
      #   @return [Subscriber, nil] one that has bytes pending and is not blocked, or has to be closed

      # @!method ready?
      #   @return [Boolean] false if `next_ready` would return nil

      # @!method take(subscriber, max_bytes)
      #   What the subscriber receives next: whole events where they fit, in order, each position once. It stays taken until
      #   `wrote` is called.
      #   @param max_bytes [Integer] about how many; a single larger event comes in pieces
      #   @return [String, nil] frozen or not to be changed; nil when nothing is pending (or `subscriber.closing` is set)

      # @!method wrote(subscriber, bytes, now:)
      #   @param bytes [Integer] how many of the taken bytes the socket accepted

      # @!method writable(subscriber)
      #   The socket of a blocked subscriber accepts bytes again.

      # @!method notify(topic, frame)
      #   Sends an event that is not appended to the log to the exact subscribers of a topic that are not behind.
      #   @param topic [String]
      #   @param frame [String] an event without id, as Server-Sent Events; each stream gets it in its own format

      # @!method control(subscriber, bytes)
      #   Sends a frame to one subscriber at the next event boundary.
      #   @param bytes [String] Server-Sent Events; the stream gets them in its own format

      # @!method close(subscriber, reason)
      #   Marks a subscriber to be closed by the driver, which unsubscribes it.

      # @!method disconnect(subject)
      #   Marks all subscribers of a subject to be closed.
      #   @return [Integer] how many

      # @!method expel
      #   Marks all subscribers to be closed whose grants the block selects; each grant is yielded once.
      #   @yieldparam grant [Grant]
      #   @yieldreturn [Boolean]
      #   @return [Integer] how many

      # @!method shutdown
      #   Marks all subscribers to be closed, and announces no end any more.

      # @!method tick(now:)
      #   Sends heartbeats and marks subscribers whose time is over.

      # @!method next_tick
      #   @return [Float, nil] seconds on the engine's clock when `tick` has work

      # @!method each_subscriber
      #   @yieldparam subscriber [Subscriber]

      # @!method each_subscription(type: nil, pattern: nil)
      #   @yieldparam subscription [Subscription]

      # @!method rekey
      #   Makes event ids with another key from now on: those made before are unknown. For a process that was forked, in which the
      #   same positions become other events.
      #   @return [void]

      # @!method last_event_id
      #   @return [String, nil] id of the newest event; nil when there was none

      # @!method matcher(type, pattern)
      #   @return [Matcher, nil] the one in use, so that a pattern is compiled once for all its subscribers

      # @!method watched?(topic)
      #   @return [Boolean] whether a subscriber has an exact matcher for the topic

      # @!method subscriber_count
      #   @return [Integer]

      # @!method lag
      #   @return [Array(Integer, Integer)] how many positions the slowest reader is behind the newest event for it, and the 99th
      #     percentile. O(subscribers).

      # @!method stats
      #   @return [Hash{Symbol => Integer}] subscribers, subscriptions, feeds, publishes, deliveries, delivered_bytes, history_bytes,
      #     history_updates; gaps and overruns, readers that were told or closed because the ring had passed them;
      #     refused_total and refused_address, subscribers that were not admitted; pattern_cost, what matching the patterns in use
      #     costs, and refused_cost, subscribers and changes that were refused for it
    end
  end
end
