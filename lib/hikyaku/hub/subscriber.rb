# frozen_string_literal: true

require "securerandom"

module Hikyaku
  class Hub
    # One connection, as the engine sees it: a grant, a cursor into the log, and no queue.
    class Subscriber
      # @return [Grant]
      attr_reader :grant
      # @return [String, nil] the client's address, for limits
      attr_reader :address
      # @return [Array<Subscription>]
      attr_reader :subscriptions
      # @return [Feed, nil] the only feed, when there is only one: the short way
      attr_reader :feed
      # @return [String, nil] what `Mercure-Last-Event-ID` answers; nil when the request named no event
      attr_accessor :last_event_id

      # @return [Integer] everything up to this position was sent, or is not for it
      attr_accessor :cursor
      # @return [Integer] bytes already sent of the event after the cursor
      attr_accessor :offset
      # @return [Integer, nil] the cursor that it began with, if that was the oldest there was
      attr_accessor :began_at
      # @return [String, nil] bytes for it alone (a heartbeat, a gap) that go out at the next event boundary
      attr_accessor :control
      # @return [Boolean] its socket is full
      attr_reader :blocked
      # @return [Boolean] it waits in the engine's ready list
      attr_reader :ready
      # @return [Float] seconds on the engine's clock when bytes were last accepted
      attr_accessor :active_at
      # @return [Symbol, nil] why it has to be closed, once it has to be
      attr_reader :closing
      # @return [Boolean] it is no longer registered
      attr_accessor :closed

      # What was taken and not yet reported as written, where it leads, how many events it holds; the engine's own.
      attr_accessor :taken, :taken_to, :taken_count
      # The position of which `offset` bytes were sent, and its bytes where they are kept; the engine's own.
      attr_accessor :partial_at, :partial
      # Where the timers have it; the engine's own.
      attr_accessor :beat_slot, :deadline_slot, :deadline_reason

      # The driver's own: whatever it needs to reach the client.
      # @return [Object, nil]
      attr_accessor :connection
      # @return [Integer] bytes that the client sent after its request
      attr_accessor :heard

      def initialize(grant, address: nil)
        # What each delivery looks at comes first: Ruby keeps instance variables in the order in which they were first set,
        # and these share a cache line.
        @cursor = 0
        @idle = false
        @connection = nil
        @active_at = 0.0
        @feed = nil
        @grant = grant
        @address = address
        @heard = 0
        @offset = 0
        @control = nil
        @blocked = @ready = @closed = false
        @closing = @last_event_id = @began_at = @id = nil
        @taken = @taken_to = @partial_at = @partial = @beat_slot = @deadline_slot = @deadline_reason = nil
        @taken_count = 0
      end

      # A random id for each connection, so that it tells nothing about the user
      # (Mercure draft-08, section "Subscriber Identifier Assignment"). Made when somebody asks.
      #
      # @return [String]
      def id = @id ||= "urn:uuid:#{SecureRandom.uuid}".freeze

      # @param subscriptions [Array<Subscription>]
      def subscriptions=(subscriptions)
        @subscriptions = subscriptions
        @feed = subscriptions.first.feed if subscriptions.one?
        settle
      end

      # Whether it has one feed and nothing of its own pending: no bytes, no part of an event, no end. Kept, not computed: this is
      # asked for each delivery.
      #
      # @return [Boolean]
      attr_reader :idle
      alias_method :idle?, :idle

      def blocked=(blocked)
        @blocked = blocked
        settle
      end

      def closing=(reason)
        @closing = reason
        settle
      end

      def ready=(ready)
        @ready = ready
        settle
      end

      # @return [Integer] from here on, the feeds together know what it receives; before, the log must be scanned
      def indexed_from
        return @feed.since - 1 if @feed
        since = 0
        @subscriptions.each { |subscription| since = subscription.feed.since if subscription.feed.since > since }
        since - 1
      end

      # @param record [Record]
      # @return [Boolean] one of its matchers selects it
      def selects?(record) = @subscriptions.any? { |subscription| record.matched_by?(subscription.matcher) }

      # @return [String] without the token's claims
      def inspect = "#<#{self.class.name} cursor=#{@cursor} subscriptions=#{@subscriptions&.size}>"

      private

      def settle
        @idle = !@blocked && !@ready && !@closing && !@feed.nil?
      end
    end
  end
end
