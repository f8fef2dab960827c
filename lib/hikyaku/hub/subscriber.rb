# frozen_string_literal: true

require "securerandom"
require_relative "event"

module Hikyaku
  class Hub
    # One connection, as the Ruby engine sees it: a grant, a cursor into the log, and no queue. The twin of hk_subscriber.
    class Subscriber
      attr_accessor :grant
      attr_reader :address, :subscriptions
      # The only feed, for a stream that can be served from a shared batch; nil otherwise.
      attr_reader :feed
      attr_reader :format
      attr_accessor :last_event_id

      attr_accessor :cursor, :offset, :began_at, :replay_filter, :capability
      attr_reader :naming, :catching_up
      # Bytes for this stream alone, in its format: a heartbeat, a gap.
      attr_accessor :control
      attr_reader :blocked, :ready
      attr_accessor :active_at
      attr_reader :closing
      attr_accessor :closed

      # The bytes that were taken and not yet reported as written, the position up to which they lead (nil: they are `control`), and
      # the number of events in them.
      attr_accessor :taken, :taken_to, :taken_count
      # The position of the event of which `offset` bytes were sent, its bytes if they are retained, and the names before it.
      attr_accessor :partial_at, :partial, :partial_names
      # The slots of the timers, and when its longest lifetime is over.
      attr_accessor :beat_slot, :deadline_slot, :lifetime_at

      # The driver's own: what it needs to reach the client.
      attr_accessor :connection
      attr_accessor :heard

      def initialize(grant, format:, address: nil)
        # What each delivery reads comes first: Ruby lays instance variables out in the order in which they are first set,
        # and these share a cache line.
        @cursor = 0
        @idle = nil
        @connection = nil
        @active_at = 0.0
        @feed = nil
        @format = format
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

      # Random for each connection, so that it tells nothing about the user (Mercure draft-08, section "Subscriber Identifier
      # Assignment"). Generated on first use.
      def id = @id ||= "urn:uuid:#{SecureRandom.uuid}".freeze

      def subscriptions=(subscriptions)
        @subscriptions = subscriptions
        choose_path
      end

      # Makes its events name the matchers that selected them, once it has had more than one. Call it before `subscriptions=`.
      def name(matchers)
        @naming = (@naming || matchers.size > 1) ? :now : :later
      end

      def names? = @naming == :now

      def catching_up=(catching_up)
        @catching_up = catching_up
        choose_path
      end

      # Drops the parts of the replay filter that it has passed, and takes the fast path again if nothing restricts it any more.
      def pass_replayed
        @replay_filter.pass(@cursor)
        choose_path unless @feed
      end

      # Whether it asked for all that is retained, and has received nothing yet.
      def before_oldest? = @cursor == @began_at && @last_event_id == "earliest"

      def restricted? = !@replay_filter.nil? && @replay_filter.restricts?(@cursor)

      # The position up to which it will have been sent everything when the rest of an event of which it has a part is written.
      def position = (@offset > 0) ? leads_to : @cursor

      def leads_to = @replay_filter&.resumes_at || @partial_at

      # Goes back to a position, after the rest of an event of which a part was sent.
      def rewind(position)
        (@offset > 0) ? @replay_filter.resumes_at = position : @cursor = position
      end

      # Appends bytes that are written before the next event. Their format is Server-Sent Events.
      def say(frame)
        bytes = @format.encode_frame(frame)
        @control = @control ? @control + bytes : bytes
      end

      # The bytes that are written before the stream is closed between two events: what was pending for it alone, and this.
      def last_words(frame) = "#{@control}#{@format.encode_frame(frame)}"

      # The stream format if a shared batch is all that the subscriber waits for: it has one feed, and no control bytes, no part of an
      # event, no end pending. Stored, not computed, because every delivery asks for it.
      attr_reader :idle

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

      # From this position on the feeds' indices are complete.
      def indexed_from
        return @feed.since - 1 if @feed
        return @replay_filter.indexed_from(@subscriptions) if restricted?
        since = 0
        @subscriptions.each { |subscription| since = subscription.feed.since if subscription.feed.since > since }
        since - 1
      end

      def selects?(record, position)
        return @replay_filter.selects?(@subscriptions, record, position) if @replay_filter
        @subscriptions.any? { |subscription| record.matched_by?(subscription.matcher) }
      end

      # Whether the stream was sent an event before it went back. A stream whose events name matchers is sent it again for a new one.
      def sent?(record, position)
        (record.topics.empty? || !names?) && !@replay_filter.nil? && @replay_filter.sent?(record, position)
      end

      def encode(record, position)
        bytes = @format.encode(position, record)
        names = names_of(record, position)
        names ? names + bytes : bytes
      end

      # The fields that name the matchers that selected an event. Where the stream goes back for a matcher, the event names those
      # alone for which it is new.
      #
      #     match: /books/1
      #     match_urlpattern: /books/:id
      #     id: #PGzYTzR-0Sg
      #     data: …
      def names_of(record, position)
        return unless names?
        return "" if record.topics.empty?
        restricted = restricted?
        Event.names(@subscriptions.filter_map do |subscription|
          next if restricted && subscription.from >= position
          subscription.matcher if subscription.feed.selects?(record, position)
        end)
      end

      def inspect = "#<#{self.class.name} cursor=#{@cursor} subscriptions=#{@subscriptions&.size}>"

      private

      def choose_path
        @feed = (@subscriptions.one? && !restricted? && !@catching_up && !names?) ? @subscriptions.first.feed : nil
        settle
      end

      def settle
        @idle = (@blocked || @ready || @closing || @feed.nil?) ? nil : @format
      end
    end
  end
end
