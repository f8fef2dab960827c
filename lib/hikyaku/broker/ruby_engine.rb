# frozen_string_literal: true

require_relative "engine"
require_relative "errors"
require_relative "hello"
require_relative "level"
require_relative "permission"
require_relative "wire"
require_relative "ruby_engine/answering"
require_relative "ruby_engine/carrying"
require_relative "ruby_engine/dispatching"
require_relative "ruby_engine/greeting"
require_relative "ruby_engine/identifying"
require_relative "ruby_engine/keeping"
require_relative "ruby_engine/limits"
require_relative "ruby_engine/querying"
require_relative "ruby_engine/receiving"
require_relative "ruby_engine/remembering"
require_relative "ruby_engine/sending"
require_relative "ruby_engine/timetable"
require_relative "ruby_engine/timing"

module Hikyaku
  module Broker
    # The engine in Ruby: which messages there are, who has them, and who is told what. Carrying takes bytes and gives them; what comes
    # is carried out by Greeting, Sending, Receiving and Querying; Keeping says what becomes of messages, Dispatching who gets them, Timing what time brings,
    # Answering who is told, Remembering what a restart finds.
    #
    #     receive ─► frames ─► Sending ──► queues ─► Dispatching ─► take
    #                  │                     ▲            ▲
    #                  └─────► Receiving ────┴────────────┘
    #
    # Cost of a message: a few look-ups for each of SEND, PUSH and FREE, however many messages, queues and sessions there are;
    # O(log n) where it comes back, or waits for its time.
    #
    # Memory of a message that waits, with 100 bytes of content: about 320 bytes, 60 more with a journal (the Message, its String, and its
    # entries in the tables of messages, of its queue's lane and of its segment), and of the process 500 and 550 with Ruby's own; a delay
    # or a time to live costs another entry. A restart reads what stands in the journal twice, once to verify it.
    class RubyEngine
      include Engine
      include Answering
      include Carrying
      include Dispatching
      include Greeting
      include Identifying
      include Keeping
      include Querying
      include Receiving
      include Remembering
      include Sending
      include Timing

      # @param storage [String, nil] the journal's folder, which exists; nil: level memory alone
      # @param segment_bytes [Integer, nil] of new segments; nil: the usual
      # @param level [Integer, nil] of SENDs that leave it to the broker; nil: written, or memory without storage
      # @param open [Boolean] whoever says HELLO may do everything, nobody is asked
      # @param files [Log::Journal::Files, nil] the system calls of the journal
      # @param report [#call, nil] is given a level of a logger, and a sentence: how far the reading of the journal is
      # @param now [Float] seconds of a clock that only goes forward
      # @param wall [Integer] ms since 1970
      # @param limits [Hash{Symbol => Integer}] see {Limits}
      # @raise [ArgumentError] a limit is not known, or does not fit into a segment
      # @raise [Log::Journal::Corrupt, Log::Journal::Locked, Log::Journal::Full, Log::Journal::Interrupted]
      def initialize(storage: nil, segment_bytes: nil, level: nil, open: false, files: nil, report: nil,
        now: Process.clock_gettime(Process::CLOCK_MONOTONIC), wall: Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond), **limits)
        @limits = Limits.new(**limits)
        Engine.check_identities(limits[:max_identities], segment_bytes) if storage
        @max_identities = [@limits.max_identities, (Engine.identities_most(segment_bytes) if storage)].compact.min
        @kept_most = Engine.message_most(segment_bytes, @max_identities) if storage
        @open = open
        @now = now
        @wall = wall
        @highest_level = storage ? Level::SYNCED : Level::MEMORY
        @level = [level || Level::WRITTEN, @highest_level].min
        @sessions = {}
        @identities = {}
        @producers = {}
        @idle_producers = {}.compare_by_identity
        @queues = {}
        @idle_queues = {}.compare_by_identity
        @messages = {}
        @ready = []
        @asking = []
        @answers = []
        @unwritten = []
        @unsynced = []
        @next_message = @next_session = @next_queue = @next_producer = 1
        @reserved_messages = @reserved_sessions = 0
        @draining = @closed = @failed = @sync_asked = nil
        start_counting
        start_timing
        open_storage(storage, segment_bytes, files, report) if storage
      end

      def close(now:, wall:)
        at(now, wall)
        @closed = true
        @sessions.each_value { |session| finish_session(session, vanished: false) unless session.ended? }
        @ledger&.abandon if @failed
        if @ledger && !@failed
          guarded do
            write_all_down
            @ledger.close
          end
        end
      ensure
        forget_all
      end

      def drop_dead
        @closed = true
        @ledger&.abandon
        forget_all
      end

      def asking = @asking.shift

      def permit(serial, permissions, now:, wall:, until_ms: nil)
        at(now, wall)
        session = @sessions[serial]
        return false unless session && session.state == :asking
        if until_ms && until_ms <= wall
          end_with(session, Wire::Code::UNAUTHORIZED, "the token has expired", id: session.hello.id)
        elsif @draining
          end_with(session, Wire::Code::DRAINING, "the broker is about to stop", id: session.hello.id, retry_after: @draining)
        else
          guarded { welcome(session, permissions) }
          session.permit_slot = @permits.add(now + (until_ms - wall) / 1000.0, session) if until_ms && session.open?
        end
        true
      end

      def refuse(serial, sentence)
        session = @sessions[serial]
        return false unless session && session.state == :asking
        end_with(session, Wire::Code::UNAUTHORIZED, sentence, id: session.hello.id)
        true
      end

      def tick(now:, wall:)
        at(now, wall)
        guarded do
          pass_time
          next unless @ledger
          evacuate
          try_again
        end
      end

      def next_tick = earliest

      def commit(wall:)
        @wall = wall
        guarded do
          position = @ledger&.commit
          file_answers(position)
          tell_reached if @ledger
        end
      end

      # @return [Boolean] whether `sync` has something to do
      def sync_wanted? = !@ledger.nil? && @ledger.sync_wanted?

      # Brings to the disk what was committed. Any thread; the next `commit` acknowledges it.
      #
      # @return [void]
      def sync = @ledger.sync

      # @return [Boolean] whether `make_space` has something to do
      def space_wanted? = !@ledger.nil? && @ledger.space_wanted?

      # Makes segments, and removes those that are not needed. Any thread, which may be another than that of `sync`.
      #
      # @return [void]
      def make_space = @ledger.make_space

      def work
        return unless @ledger
        guarded do
          while @ledger.sync_wanted? || @ledger.space_wanted? || @ledger.pending?
            @ledger.sync if @ledger.sync_wanted?
            @ledger.make_space if @ledger.space_wanted?
            @ledger.commit
            tell_reached
          end
        end
      end

      def drain(retry_after_ms)
        return if @draining
        @draining = retry_after_ms
        @sessions.each_value do |session|
          next unless session.open?
          session.outbox << Wire.draining(retry_after: retry_after_ms)
          speak(session)
        end
      end

      def drained? = !@draining.nil? && @answers.empty? && @unwritten.empty? && @unsynced.empty? && @sessions.each_value.all? { |session| session.deliveries.empty? }

      def stats
        {sessions: @sessions.size, queues: @queues.size, identities: @remembered, identities_evicted: @evicted, messages: @messages.size, messages_lost: @messages_lost, bytes: @bytes,
         memory_bytes: memory_bytes, index_bytes: index_bytes,
         ready: @messages.size - @delayed - @dead - (out = @queues.each_value.sum(&:out)), delayed: @delayed, out: out, dead: @dead,
         received: @received.dup, delivered: @delivered, freed: @freed, redelivered: @redelivered, failed: @failures, crashed: @crashed,
         released: @released, expired: @expired, duplicates: @duplicates, stale: @stale, copied: @copied, refused: @refused.dup, journal: @ledger&.stats}
      end

      def queues(wall:)
        @wall = wall
        @queues.each_value.map { |queue| figures_of(queue) }
      end

      # @return [String] without what it keeps
      def inspect = "#<#{self.class} #{@messages.size} messages, #{@queues.size} queues, #{@sessions.size} sessions>"

      private

      def at(now, wall)
        @now = now if now > @now
        @wall = wall
      end

      def start_counting
        @bytes = @content_bytes = @delayed = @dead = @remembered = @evicted = @messages_lost = 0
        @delivered = @freed = @redelivered = @failures = @crashed = @released = @expired = @duplicates = @stale = @copied = 0
        @received = [0, 0, 0]
        @refused = Array.new(24, 0)
      end

      def carry_out(session, frame, size)
        unless session.open?
          return greet(session, frame) if session.state == :strange && frame.is_a?(Wire::Frames::Hello)
          return end_with(session, Wire::Code::UNEXPECTED, "nothing but HELLO comes before HELLO was acknowledged", id: frame.id)
        end
        case frame
        when Wire::Frames::Send then take_message(session, frame, size)
        when Wire::Frames::Free then free(session, frame)
        when Wire::Frames::Receipt then receipt(session, frame)
        when Wire::Frames::SendBatch then take_batch(session, frame, size)
        when Wire::Frames::Nack then nack(session, frame)
        when Wire::Frames::Touch then touch(session, frame)
        when Wire::Frames::Credit then credit(session, frame)
        when Wire::Frames::Ping then pong(session, frame)
        when Wire::Frames::Subscribe then subscribe(session, frame)
        when Wire::Frames::Unsubscribe then unsubscribe(session, frame)
        when Wire::Frames::Query then query(session, frame)
        when Wire::Frames::Drain then stop_deliveries(session)
        when Wire::Frames::Forget then stop_deliveries(session, forgets: true)
        else end_with(session, Wire::Code::UNEXPECTED, "HELLO is said once", id: frame.id)
        end
      end

      def pong(session, frame)
        return if frame.id.zero?
        session.outbox << Wire.receipt(id: frame.id)
        speak(session)
      end

      # It finishes what it has, and goes.
      def stop_deliveries(session, forgets: false)
        session.drains = true
        session.forgets ||= forgets
        session.subscriptions.each_value do |subscription|
          subscription.queue.rotation.delete(subscription)
          subscription.queue.look = true
          dispatch(subscription.queue)
        end
      end

      # What the disk does not take is said to everybody: what was not acknowledged is in doubt.
      def guarded
        raise @failed if @failed
        yield
      rescue Log::Journal::Failed, Log::Journal::Corrupt, Log::Journal::Full => error
        @failed = StorageFailed.new(error.message)
        @closed = true
        @sessions.each_value { |session| end_with(session, Wire::Code::FAILED, "the broker's storage has failed: what was not acknowledged is in doubt") }
        raise @failed
      end

      def forget_all
        @ledger = nil
        [@sessions, @identities, @producers, @idle_producers, @queues, @idle_queues, @messages, @ready, @asking, @answers, @unwritten, @unsynced].each(&:clear)
      end
    end
  end
end
