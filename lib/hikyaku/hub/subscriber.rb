# frozen_string_literal: true

require "securerandom"
require_relative "form/member"

module Hikyaku
  class Hub
    # One connection, as the engine sees it: a grant, a cursor into the log, and no queue.
    class Subscriber
      include Form::Member

      attr_accessor :grant
      attr_reader :address
      attr_reader :subscriptions
      attr_reader :feed
      attr_accessor :last_event_id

      attr_accessor :cursor
      attr_accessor :offset
      attr_accessor :began_at
      attr_accessor :past
      attr_accessor :capability
      attr_reader :naming
      attr_accessor :partial_names
      attr_accessor :form
      attr_reader :idle_formed
      attr_reader :catching_up
      attr_accessor :control
      attr_reader :blocked
      attr_reader :ready
      attr_accessor :active_at
      attr_reader :closing
      attr_accessor :closed

      # What was taken and not yet reported as written (a Form::Portion where there is a form, but for the rest of an event), where it
      # leads, how many events it holds; the engine's own.
      attr_accessor :taken, :taken_to, :taken_count
      # The position of which `offset` bytes were sent, and its bytes where they are kept; the engine's own.
      attr_accessor :partial_at, :partial
      # Where the timers have it, and when its longest lifetime is over; the engine's own.
      attr_accessor :beat_slot, :deadline_slot, :lifetime_at

      # The driver's own: whatever it needs to reach the client.
      attr_accessor :connection
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
      def id = @id ||= "urn:uuid:#{SecureRandom.uuid}".freeze

      def subscriptions=(subscriptions)
        @subscriptions = subscriptions
        choose_way
      end

      # Before its subscriptions are set.
      def name(matchers)
        @naming = (@naming || matchers.size > 1) ? :now : :later
      end

      def names? = @naming == :now

      def catching_up=(catching_up)
        @catching_up = catching_up
        choose_way
      end

      # Forgets what it has passed of its past, and takes the short way again if that does for it.
      def leave_past_behind
        @past.pass(@cursor)
        choose_way unless @feed
      end

      def before_oldest? = @cursor == @began_at && @last_event_id == "earliest"

      def restricted? = !@past.nil? && @past.restricts?(@cursor)

      def position = (@offset > 0) ? leads_to : @cursor

      def leads_to = @past&.resumes_at || @partial_at

      def sent_until = (@offset > 0) ? @partial_at : @cursor

      # Goes back to a position, behind the rest of the event of which it has a part.
      def go_back_to(position)
        (@offset > 0) ? @past.resumes_at = position : @cursor = position
      end

      # Forgets what it was told of what was to be said to it alone.
      def was_told(frame)
        @control = (@control.bytesize > frame.bytesize) ? @control.byteslice(frame.bytesize, @control.bytesize) : nil
      end

      # What is written to it before its stream is closed between two events: what was still to be said to it alone, and this.
      def last_words(frame)
        words = "#{@control}#{frame}"
        @form ? @form.ending(self, words) : words
      end

      # Whether it has one feed and nothing of its own pending: no bytes, no part of an event, no end. Kept, not computed: this is
      # asked for each delivery.
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

      def indexed_from
        return @feed.since - 1 if @feed
        return @past.indexed_from(@subscriptions) if restricted?
        since = 0
        @subscriptions.each { |subscription| since = subscription.feed.since if subscription.feed.since > since }
        since - 1
      end

      def selects?(record, position)
        return @past.selects?(@subscriptions, record, position) if @past
        @subscriptions.any? { |subscription| record.matched_by?(subscription.matcher) }
      end

      def had?(record, position) = !@past.nil? && @past.had?(record, position)

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
