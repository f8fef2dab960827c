# frozen_string_literal: true

require_relative "engine"
require_relative "errors"
require_relative "auth_request"
require_relative "level"
require_relative "permission"
require_relative "wire"
require_relative "ruby_engine/limits"
require_relative "ruby_engine/parts"

module Hikyaku
  module Broker
    # The engine in Ruby. It reads frames and gives each to one of its {Parts}.
    #
    #     receive ─► frames ─► Intake ─────► Messages, Queues ─► Deliveries ─► take
    #                  │                          ▲                  ▲
    #                  └─────► Settlement ────────┴──────────────────┘
    #
    # Cost of a message: a few look-ups for each of SEND, PUSH and FREE, however many messages, queues and sessions there are;
    # O(log n) where it comes back, or waits for its time.
    #
    # Memory of a message that waits, with 100 bytes of content: about 320 bytes, 60 more with a journal (the Message, its String, and its
    # entries in the tables of messages, of its queue and of its segment), and of the process 500 and 550 with Ruby's own; a delay
    # or a time to live costs another entry. A restart reads the journal twice, once to verify it.
    class RubyEngine
      include Engine

      # Timers of a kind that one tick runs.
      TIMERS_PER_TICK = 1000
      private_constant :TIMERS_PER_TICK

      def initialize(storage: nil, segment_bytes: nil, level: nil, open: false, files: nil, report: nil,
        now: Process.clock_gettime(Process::CLOCK_MONOTONIC), wall: Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond), **limits)
        Engine.check_identities(limits[:max_identities], segment_bytes) if storage
        @limits = Limits.new(**limits)
        @clock = Clock.new(now, wall)
        @parts = parts(storage, segment_bytes, level, open)
        @output = @parts.output
        @acks = @parts.acks
        @sessions = @parts.sessions
        @failed = nil
        open_storage(storage, {segment_bytes: (segment_bytes unless segment_bytes == 0), files: files, report: report}.compact) if storage
      end

      def close(now:, wall:)
        @clock.advance(now, wall)
        @parts.closed = true
        @sessions.each { |session| @sessions.finish(session, vanished: false) unless session.ended? }
        @store&.abandon if @failed
        if @store && !@failed
          guarded do
            @parts.recovery.write_everything
            @store.close
          end
        end
      ensure
        clear
      end

      def abort
        @parts.closed = true
        @store&.abandon
        clear
      end

      def connect(now:, address: "")
        @clock.advance(now)
        guarded { @sessions.connect(address) }
      end

      def receive(session, bytes, now:, wall:)
        @clock.advance(now, wall)
        return false if session.ended?
        session.heard_at = now
        begin
          guarded { session.reader.read(bytes) { |frame, size| carry_out(session, frame, size) } }
        rescue Wire::ProtocolError => error
          @sessions.close(session, error.code, error.message, id: error.id)
        end
        !session.ended?
      end

      def disconnect(session, now:, wall:)
        @clock.advance(now, wall)
        guarded { @sessions.disconnect(session) }
      end

      def full?(session)
        session.unacked >= @limits.window_messages || session.unacked_bytes >= @limits.window_bytes || session.answers_unread?
      end

      def finished?(session) = session.ended? && session.buffer.empty?

      def next_ready = @output.next_ready

      def take(session, max_bytes) = @output.take(session, max_bytes)

      def wrote(session, count)
        @output.wrote(session, count, @clock.now)
        guarded { @parts.deliveries.resume(session) } if session.paused && session.below_high_water?
      end

      def writable(session) = @output.writable(session)

      def next_auth_request = @parts.handshake.next_undecided

      def permit(serial, permissions, now:, wall:, until_ms: nil)
        @clock.advance(now, wall)
        session = undecided(serial) or return false
        guarded { @parts.handshake.permit(session, permissions, until_ms) }
        true
      end

      def refuse(serial, sentence)
        session = undecided(serial) or return false
        @parts.handshake.refuse(session, sentence)
        true
      end

      def tick(now:, wall:)
        @clock.advance(now, wall)
        guarded do
          @parts.deliveries.expire_leases(TIMERS_PER_TICK)
          timed.each { |part| part.run_timers(TIMERS_PER_TICK) }
          @parts.deliveries.retry_unread
          @store&.tick
        end
      end

      def next_tick = [@parts.deliveries, *timed, @store].compact.filter_map(&:next_timer).min

      def commit(wall:)
        @clock.wall = wall
        guarded do
          @acks.end_turn(@store&.commit)
          @acks.send_reached if @store
        end
      end

      def sync_wanted? = !@store.nil? && @store.sync_wanted?

      # Brings to the disk what was committed. Any thread; the next `commit` acknowledges it.
      def sync = @store.sync

      def space_wanted? = !@store.nil? && @store.space_wanted?

      # Makes segments, and removes those that are not needed. Any thread, which may be another than that of `sync`.
      def make_space = @store.make_space

      def work
        return unless @store
        guarded do
          while @store.sync_wanted? || @store.space_wanted? || @store.pending?
            @store.sync if @store.sync_wanted?
            @store.make_space if @store.space_wanted?
            @store.commit
            @acks.send_reached
          end
        end
      end

      def drain(retry_after_ms)
        return if @parts.draining
        @parts.draining = retry_after_ms
        @sessions.each { |session| @output.send_frame(session, Wire.draining(retry_after: retry_after_ms)) if session.open? }
      end

      def drained? = !@parts.draining.nil? && @acks.none? && @sessions.all? { |session| session.deliveries.empty? }

      def stats
        messages = @parts.messages
        settled = @parts.settlement
        intake = @parts.intake
        out = @parts.queues.sum(&:out)
        {sessions: @sessions.size, queues: @parts.queues.size, identities: @parts.producers.remembered, identities_evicted: @parts.producers.evicted,
         messages: messages.size, messages_lost: @parts.recovery.lost, bytes: messages.bytes, memory_bytes: messages.memory_bytes, index_bytes: messages.index_bytes,
         ready: messages.size - messages.delayed - messages.dead - out, delayed: messages.delayed, out: out, dead: messages.dead,
         received: intake.received.dup, delivered: @parts.deliveries.count, freed: messages.freed, redelivered: @parts.deliveries.redelivered,
         failed: settled.failures, crashed: settled.crashed, released: settled.released, expired: messages.expired, duplicates: intake.duplicates,
         stale: settled.stale, copied: @store ? @store.copied_count : 0, refused: @output.refused.dup, journal: @store&.stats}
      end

      def queues(wall:)
        @clock.wall = wall
        @parts.queues.map { |queue| @parts.reports.figures_of(queue) }
      end

      def inspect = "#<#{self.class} #{@parts.messages.size} messages, #{@parts.queues.size} queues, #{@sessions.size} sessions>"

      private

      def parts(storage, segment_bytes, level, open)
        highest = storage ? Level::SYNCED : Level::MEMORY
        max_identities = [@limits.max_identities, (Engine.max_identities(segment_bytes) if storage)].compact.min
        Parts.new(limits: @limits, clock: @clock, levels: Levels.new(highest, [level || Level::WRITTEN, highest].min), max_identities: max_identities,
          max_stored: (Engine.max_message_bytes(segment_bytes, max_identities) if storage), open: open)
      end

      def open_storage(folder, options)
        @store = @parts.store = Store.new(@clock, @limits.max_storage)
        @parts.recovery.open(@store, folder, **options)
      end

      def timed = @timed ||= [@parts.messages, @sessions, @parts.queues, @parts.producers]

      def undecided(serial) = @sessions[serial]&.then { |session| session if session.state == :undecided }

      def carry_out(session, frame, size)
        unless session.open?
          return @parts.handshake.hello(session, frame) if session.state == :new && frame.is_a?(Wire::Frames::Hello)
          return @sessions.close(session, Wire::Code::UNEXPECTED, "nothing but HELLO comes before HELLO was acknowledged", id: frame.id)
        end
        case frame
        when Wire::Frames::Send then @parts.intake.send_message(session, frame, size)
        when Wire::Frames::Free then @parts.settlement.free(session, frame)
        when Wire::Frames::Receipt then @parts.settlement.start(session, frame)
        when Wire::Frames::SendBatch then @parts.intake.send_batch(session, frame, size)
        when Wire::Frames::Nack then @parts.settlement.nack(session, frame)
        when Wire::Frames::Touch then @parts.settlement.touch(session, frame)
        when Wire::Frames::Credit then @parts.subscriptions.credit(session, frame)
        when Wire::Frames::Ping then pong(session, frame)
        when Wire::Frames::Subscribe then @parts.subscriptions.subscribe(session, frame)
        when Wire::Frames::Unsubscribe then @parts.subscriptions.unsubscribe(session, frame)
        when Wire::Frames::Query then @parts.reports.query(session, frame)
        when Wire::Frames::Drain then @parts.subscriptions.drain(session)
        when Wire::Frames::Forget then @parts.subscriptions.drain(session, forgets: true)
        else @sessions.close(session, Wire::Code::UNEXPECTED, "HELLO is said once", id: frame.id)
        end
      end

      def pong(session, frame)
        @output.send_frame(session, Wire.receipt(id: frame.id)) unless frame.id.zero?
      end

      # A disk that fails ends every session: what was not acknowledged is in doubt.
      def guarded
        raise @failed if @failed
        yield
      rescue Log::Journal::Failed, Log::Journal::Corrupt, Log::Journal::Full => error
        @failed = StorageFailed.new(error.message)
        @parts.closed = true
        @sessions.each { |session| @sessions.close(session, Wire::Code::FAILED, "the broker's storage has failed: what was not acknowledged is in doubt") }
        raise @failed
      end

      def clear
        @store = @parts.store = nil
        [@sessions, @parts.producers, @parts.queues, @parts.messages, @output, @parts.handshake, @acks].each(&:clear)
      end
    end
  end
end
