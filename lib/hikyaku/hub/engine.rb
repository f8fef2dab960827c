# frozen_string_literal: true

module Hikyaku
  class Hub
    # The contract of a hub engine: the log, the feeds and the cursors, free of I/O. A driver (the Reactor, a pump, a
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
      # @!method publish(update, topics:, now:, type: nil)
      #   Appends an update to the log and marks whom it concerns.
      #   @param update [Update]
      #   @param topics [Array<Topic>] the update's topics, resolved
      #   @param type [String, nil] an event type that overrides the update's (the hub's own events)
      #   @return [String] the event id

      # @!method subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil)
      #   Registers a subscriber behind everything that it asked to see again. It is blocked until the driver has a socket
      #   for it and says `writable`.
      #   @param grant [Grant]
      #   @param expires_in [Float, nil] seconds until its grant ends
      #   @param last_event_id [String, nil] the event that it has; "earliest" for all that is retained
      #   @return [Subscriber] its `last_event_id` is the answer for `Mercure-Last-Event-ID`

      # @!method resolve(last_event_id, grant)
      #   @param last_event_id [String, nil]
      #   @return [Array(Integer, String)] the cursor that it stands for, and the answer for `Mercure-Last-Event-ID`: the
      #     id itself where nothing was lost since, else "earliest"; nil for nil

      # @!method unsubscribe(subscriber)
      #   Forgets a subscriber. O(matchers of the subscriber).
      #   @return [Boolean] false when it was already gone

      # Hands out what is pending, to at most so many subscribers.
      #
      # @param limit [Integer] subscribers
      # @param max_bytes [Integer] see #take
      # @param now [Float] seconds on the engine's clock
      # @yieldparam subscriber [Subscriber]
      # @yieldparam bytes [String, nil] nil when the subscriber has to be closed: see `subscriber.closing`
      # @yieldreturn [Integer] how many bytes were accepted; fewer than given: it is blocked until `writable`
      # @return [Boolean] whether the limit was reached
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

      # @!method tick(now:)
      #   Files heartbeats and marks subscribers whose time is over.

      # @!method next_tick
      #   @return [Float, nil] seconds on the engine's clock when `tick` has work

      # @!method each_subscriber
      #   @yieldparam subscriber [Subscriber]

      # @!method each_subscription(type: nil, pattern: nil)
      #   @yieldparam subscription [Subscription]

      # @!method last_event_id
      #   @return [String, nil] id of the newest event; nil when there was none

      # @!method stats
      #   @return [Hash{Symbol => Integer}] subscribers, subscriptions, feeds, publishes, deliveries, history_bytes, history_updates
    end
  end
end
