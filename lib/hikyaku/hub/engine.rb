# frozen_string_literal: true

require_relative "form"

module Hikyaku
  class Hub
    # The contract of a hub engine: the log, the feeds and the cursors, free of I/O. A driver (the Server::Reactor, a pump, a
    # test) owns the sockets and the clock and moves the bytes:
    #
    #     engine.publish(update, …)                     something was published
    #     engine.serve(128, 65_536, now:) do |subscriber, bytes|
    #       socket_of(subscriber).write(bytes)            returns how many it accepted
    #     end
    #     engine.tick(now:)                             heartbeats, deadlines
    #
    # `serve` is made of three steps that can also be taken one by one: `next_ready`, `take`, `wrote`.
    #
    # Time is an argument: seconds of a clock that only goes forward.
    #
    # A publish costs O(matchers that match + deliveries). A subscriber is a cursor; it has no queue. Engines are not
    # thread-safe: the Hub holds one lock round them. `test/contracts/engine_contract.rb` runs over every engine.
    module Engine
      # @!method initialize(topics:, documents: nil, history:, heartbeat:, max_lifetime:, gap_policy: nil, max_connections: nil, max_connections_per_address: nil, max_pattern_cost_total: nil, max_pattern_cost_per_address: nil, max_pattern_cost_per_beginning: nil, storage: nil)
      #   @see RubyEngine#initialize

      # @!method look_at(topics)
      #   Begins to find out whom topics concern that take long to match.
      #   @param topics [Array<Topic>]
      #   @return [Array<TopicSurvey>, nil] for `publish`, after their pieces were done without any lock; nil: the engine sees to that

      # @!method weigh(matchers)
      #   Finds out of matchers that are to be used what takes long to find out. Without any lock.
      #   @param matchers [Array<Matcher>]

      # @!method publish(update, topics:, now:, type: nil, surveys: nil)
      #   Appends an update to the log and marks whom it concerns.
      #   @param update [Update]
      #   @param topics [Array<Topic>] the update's topics, resolved
      #   @param type [String, nil] an event type that overrides the update's (the hub's own events)
      #   @param surveys [Array<TopicSurvey>, nil] of the topics, from `look_at`
      #   @return [String] the event id
      #   @raise [StorageFailed] it could not be kept, and was not published

      # @!method ticket
      #   @return [Integer, nil] what `await` takes, for the newest update; nil when it is as safe as the storage promises, or there is none

      # @!method await(ticket)
      #   Waits until what was published is as safe as the storage promises. Without any lock: the one method that any thread may
      #   call.
      #   @raise [StorageFailed] it is in doubt

      # @!method close_storage
      #   Ends what keeps the log, in order. Harmless when repeated, or without storage.

      # @!method abandon_storage
      #   Lets go of what keeps the log, which is another process's: for a process that was forked.

      # @!method subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil, changeable: false, naming: false, form: :events, coding: :identity)
      #   Registers a subscriber behind everything that it asked to see again, and announces its subscriptions where the engine
      #   has `documents` for them: what takes long to match when `serve` comes to it, in order. It is blocked until the driver has a socket for it and says `writable`.
      #   @param grant [Grant]
      #   @param expires_in [Float, nil] seconds until its grant ends
      #   @param last_event_id [String, nil] the event that it has; "earliest" for all that is retained
      #   @param changeable [Boolean] it gets a `capability`; and when it has been sent what it missed, it is told with a comment
      #     (Event::CAUGHT_UP), if `last_event_id` says what that is
      #   @param naming [Boolean] its events begin with fields that name the matchers for which it is sent them (Event.names), from when it has
      #     had another matcher than the one that it began with. What goes back for a matcher is sent what that one selects, also where
      #     another had selected it before, and names that one alone. What is for all, as a gap is, names none
      #   @param form [Symbol] how its stream is written: `:events`, Server-Sent Events; or `:message_pack`, see Form::MessagePack
      #   @param coding [Symbol] `:identity`; or `:gzip`, one member from the first byte to the last, in which each event can be
      #     decoded as soon as it is there. What is compressed is shared by those who receive the same and may read nothing that is
      #     private, and otherwise stands alone
      #   @return [Subscriber] its `last_event_id` is the answer for `Mercure-Last-Event-ID`
      #   @raise [TooManyConnections]
      #   @raise [PatternsTooCostly] beside those that are in use; nobody was registered
      #   @raise [UnknownForm] there is no such form or coding
      #   @raise [FormNotOffered] this engine has it not: see `offers?`; or it does not go with `naming`

      # Whether streams can be had in a form, so coded. What goes through `control` and `notify` is Server-Sent Events whatever the
      # form, and is said in its way.
      #
      # @param form [Symbol] as of `subscribe`
      # @param coding [Symbol] likewise
      # @return [Boolean]
      # @raise [UnknownForm]
      def offers?(form, coding) = Form.plain?(form, coding)

      # @!method capability(subscriber)
      #   What whoever wants to change a stream must know: nobody can guess it.
      #   @param subscriber [Subscriber]
      #   @return [String, nil] at least 128 bits as base64url; nil when it is not `changeable`, or gone

      # @!method find(capability)
      #   @param capability [String]
      #   @return [Subscriber, nil] nil when there is none, or it is gone

      # @!method change(subscriber, grant, now:, expires_in: nil, last_event_id: nil)
      #   Gives a subscriber another grant: what it listens to, what it may read, until when. Matchers that stay go on where they
      #   are, and nothing of theirs is lost or repeated. Those that are added begin with what is published from now on, or behind
      #   `last_event_id`: then the subscriber goes back to it, and what one of its former matchers selected, and was sent, is left
      #   out on the way. Those that are removed end at once. Where the engine has `documents`, it announces what was removed and
      #   added. The longest lifetime still counts from the beginning. With `last_event_id` a comment tells it, as of `subscribe`, that
      #   it has caught up.
      #
      #   What was sent is known as long as its matcher stays and the private topics are the same; else it may come again.
      #
      #   Not between `take` and `wrote` of the same subscriber. O(matchers).
      #   @param subscriber [Subscriber]
      #   @param grant [Grant] with matchers
      #   @param expires_in [Float, nil] seconds until the grant ends
      #   @param last_event_id [String, nil] for the matchers that are added; as of `subscribe`
      #   @return [String, nil] the answer for `Mercure-Last-Event-ID`: the log's `cursor` when the change took effect, or "earliest"
      #     where something may be missing; nil when the subscriber is gone, or about to be
      #   @raise [PatternsTooCostly] beside those that are in use; nothing was changed
      #   @raise [TooManyRewinds] it catches up for as many changes as it may; nothing was changed

      # @!method resolve(last_event_id, grant)
      #   @param last_event_id [String, nil]
      #   @return [Array(Integer, String)] the cursor that it stands for, and the answer for `Mercure-Last-Event-ID`: the
      #     id itself where nothing was lost since, else "earliest"; nil for nil

      # @!method cursor(grant)
      #   Where the log is now, for whoever comes back later: what is published from now on is behind it. Of an empty log, too, it is
      #   known as long as nothing was lost, and then no more; "earliest" never says that something is missing.
      #   @param grant [Grant]
      #   @return [String] the newest event's id, unless it would tell of a private event, or there is none: then the alias that its
      #     position has

      # @!method unsubscribe(subscriber, now:)
      #   Forgets a subscriber and announces the end of its subscriptions. O(matchers of the subscriber).
      #   @return [Boolean] false when it was already gone

      # Hands out what is pending, to at most so many subscribers.
      #
      # @param limit [Integer] subscribers
      # @param max_bytes [Integer] see #take
      # @param now [Float] seconds on the engine's clock
      # @yieldparam subscriber [Subscriber]
      # @yieldparam bytes [String, nil] nil when the subscriber has to be closed: see `subscriber.closing`
      # @yieldreturn [Integer] how many bytes were accepted; fewer than given: it is blocked until `writable`
      # @return [Boolean] whether the limit was reached, or there is more to announce
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
      #   @return [Subscriber, nil] somebody who has bytes pending and is not blocked, or has to be closed

      # @!method ready?
      #   @return [Boolean] `next_ready` may have somebody

      # @!method take(subscriber, max_bytes)
      #   What the subscriber receives next: whole events where they fit, in order, each position once. Stays taken until
      #   `wrote` is called.
      #   @param max_bytes [Integer] about how many; a single larger event comes in pieces
      #   @return [String, nil] frozen or not to be changed; nil when nothing is pending (or `subscriber.closing` is set)

      # @!method wrote(subscriber, bytes, now:)
      #   @param bytes [Integer] how many of the taken bytes the socket accepted

      # @!method writable(subscriber)
      #   The socket of a blocked subscriber accepts bytes again.

      # @!method notify(topic, frame)
      #   Sends bytes that are not in the log to the exact subscribers of a topic that are not behind.
      #   @param topic [String]
      #   @param frame [String] whole lines of an event without id

      # @!method control(subscriber, bytes)
      #   Sends bytes to one subscriber at the next event boundary.

      # @!method close(subscriber, reason)
      #   Marks a subscriber to be closed by the driver, which unsubscribes it.

      # @!method disconnect(subject)
      #   Marks all subscribers of a subject to be closed.
      #   @return [Integer] how many

      # @!method expel
      #   Marks all subscribers to be closed whose grants the block selects; it is asked once for each grant.
      #   @yieldparam grant [Grant]
      #   @yieldreturn [Boolean]
      #   @return [Integer] how many

      # @!method shutdown
      #   Marks all subscribers to be closed, and announces no end any more.

      # @!method tick(now:)
      #   Files heartbeats and marks subscribers whose time is over.

      # @!method next_tick
      #   @return [Float, nil] seconds on the engine's clock when `tick` has work

      # @!method each_subscriber
      #   @yieldparam subscriber [Subscriber]

      # @!method each_subscription(type: nil, pattern: nil)
      #   @yieldparam subscription [Subscription]

      # @!method rekey
      #   Makes event ids with another key from now on: those made before are unknown. For a process that was forked, in which the
      #   same positions are to become other events.
      #   @return [void]

      # @!method last_event_id
      #   @return [String, nil] id of the newest event; nil when there was none

      # @!method matcher(type, pattern)
      #   @return [Matcher, nil] the one that is in use, so that a pattern is compiled once however many use it

      # @!method watched?(topic)
      #   @return [Boolean] somebody subscribes to exactly this topic

      # @!method subscriber_count
      #   @return [Integer]

      # @!method lag
      #   @return [Array(Integer, Integer)] how many positions the slowest reader is behind what there is for it, and the 99th
      #     percentile. O(subscribers).

      # @!method stats
      #   @return [Hash{Symbol => Integer}] subscribers, subscriptions, feeds, publishes, deliveries, delivered_bytes, history_bytes,
      #     history_updates; gaps and overruns, readers that were told or closed because the ring had passed them;
      #     refused_total and refused_address, subscribers that were not admitted; pattern_cost, what matching the patterns in use
      #     costs, and refused_cost, subscribers and changes that were refused for it
    end
  end
end
