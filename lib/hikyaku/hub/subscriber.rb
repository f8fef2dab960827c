# frozen_string_literal: true

require "securerandom"
require_relative "form/member"

module Hikyaku
  class Hub
    # One connection, as the engine sees it: a grant, a cursor into the log, and no queue.
    class Subscriber
      include Form::Member

      # @return [Grant]
      attr_accessor :grant
      # @return [String, nil] the client's address, for limits
      attr_reader :address
      # @return [Array<Subscription>]
      attr_reader :subscriptions
      # @return [Feed, nil] the only feed, when there is only one: the short way
      attr_reader :feed
      # @return [String, nil] what `Mercure-Last-Event-ID` answers; nil when the request named no event, or it is forgotten
      attr_accessor :last_event_id

      # @return [Integer] everything up to this position was sent, or is not for it
      attr_accessor :cursor
      # @return [Integer] bytes already sent of the event after the cursor
      attr_accessor :offset
      # @return [Integer] the cursor that it began with
      attr_accessor :began_at
      # @return [Past, nil] what it knows of before, once it was changed; not set at all in those that never were
      attr_accessor :past
      # @return [String, nil] what whoever changes it must know; not set in those that nobody may change
      attr_accessor :capability
      # @return [Symbol, nil] whether its events name the matchers that selected them: `:now`; `:later`, as soon as it has had another
      #   matcher than the one that it began with; not set in streams that did not ask for it
      attr_reader :naming
      # @return [String, nil] with which the event begins of which it has a part; not set in others
      attr_accessor :partial_names
      # @return [Form, nil] how it is written; not set in streams of Server-Sent Events as they are, nor is what follows
      attr_accessor :form
      # @return [Boolean, nil] as `idle`, of a stream with a form
      attr_reader :idle_formed
      # @return [Boolean, nil] it is to be told when nothing is pending for it; not set in those that never are
      attr_reader :catching_up
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

      # What was taken and not yet reported as written (a Form::Portion where there is a form, but for the rest of an event), where it
      # leads, how many events it holds; the engine's own.
      attr_accessor :taken, :taken_to, :taken_count
      # The position of which `offset` bytes were sent, and its bytes where they are kept; the engine's own.
      attr_accessor :partial_at, :partial
      # Where the timers have it, and when its longest lifetime is over; the engine's own.
      attr_accessor :beat_slot, :deadline_slot, :lifetime_at

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
        @closing = @last_event_id = @id = nil
        @began_at = 0
        @taken = @taken_to = @partial_at = @partial = @beat_slot = @deadline_slot = @lifetime_at = nil
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
        choose_way
      end

      # Before its subscriptions are set.
      #
      # @param matchers [Array<Matcher>]
      # @return [void]
      def name(matchers)
        @naming = (@naming || matchers.size > 1) ? :now : :later
      end

      # @return [Boolean]
      def names? = @naming == :now

      def catching_up=(catching_up)
        @catching_up = catching_up
        choose_way
      end

      # Forgets what it has passed of its past, and takes the short way again if that does for it.
      #
      # @return [void]
      def leave_past_behind
        @past.pass(@cursor)
        choose_way unless @feed
      end

      # @return [Boolean] it asked for all that is retained, and has got nothing of it yet
      def before_oldest? = @cursor == @began_at && @last_event_id == "earliest"

      # @return [Boolean] not everything that is selected behind its cursor is for it: it was changed
      def restricted? = !@past.nil? && @past.restricts?(@cursor)

      # @return [Integer] everything up to here was sent, or is about to be as the rest of an event, or is not for it
      def position = (@offset > 0) ? leads_to : @cursor

      # @return [Integer] where it stands when the rest of the event is sent of which it has a part
      def leads_to = @past&.resumes_at || @partial_at

      # @return [Integer] everything up to here was sent, or is as good as sent, or is not for it
      def sent_until = (@offset > 0) ? @partial_at : @cursor

      # Goes back to a position, behind the rest of the event of which it has a part.
      #
      # @param position [Integer]
      # @return [void]
      def go_back_to(position)
        (@offset > 0) ? @past.resumes_at = position : @cursor = position
      end

      # Forgets what it was told of what was to be said to it alone.
      #
      # @param frame [String] with which `control` begins
      # @return [void]
      def was_told(frame)
        @control = (@control.bytesize > frame.bytesize) ? @control.byteslice(frame.bytesize, @control.bytesize) : nil
      end

      # What is written to it before its stream is closed between two events: what was still to be said to it alone, and this.
      #
      # @param frame [String] as Server-Sent Events
      # @return [String]
      def last_words(frame)
        words = "#{@control}#{frame}"
        @form ? @form.ending(self, words) : words
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
        return @past.indexed_from(@subscriptions) if restricted?
        since = 0
        @subscriptions.each { |subscription| since = subscription.feed.since if subscription.feed.since > since }
        since - 1
      end

      # @param record [Record]
      # @param position [Integer] of the record
      # @return [Boolean] one of its matchers selects it
      def selects?(record, position)
        return @past.selects?(@subscriptions, record, position) if @past
        @subscriptions.any? { |subscription| record.matched_by?(subscription.matcher) }
      end

      # @param record [Record]
      # @param position [Integer] of the record
      # @return [Boolean] it was sent before the stream went back
      def had?(record, position) = !@past.nil? && @past.had?(record, position)

      # @return [String] without the token's claims
      def inspect = "#<#{self.class.name} cursor=#{@cursor} subscriptions=#{@subscriptions&.size}>"

      private

      # The short way, unless it has more than one feed, or more to be seen to.
      def choose_way
        @feed = (@subscriptions.one? && !restricted? && !@catching_up && !names?) ? @subscriptions.first.feed : nil
        settle
      end

      # A form has a short way of its own.
      def settle
        idle = !@blocked && !@ready && !@closing && !@feed.nil?
        @form ? @idle_formed = idle : @idle = idle
      end
    end
  end
end
