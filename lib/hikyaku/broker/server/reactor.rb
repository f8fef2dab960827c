# frozen_string_literal: true

require "nio"
require "socket"
require_relative "../../log/journal/errors"
require_relative "../errors"
require_relative "connection"
require_relative "errand"
require_relative "reactor/arrivals"
require_relative "reactor/departures"

module Hikyaku
  module Broker
    class Server
      # Carries the bytes of the engine in Ruby: one thread for the engine and all its sockets. A turn reads what has come, commits it
      # with one write to the journal, and sends what there is to say. What waits for the disk is done by a thread of
      # its own: while one fdatasync runs, what comes gathers for the next.
      #
      #     select ─► read, receive ─► decisions, time ─► commit ─► slow work out and back ─► take, write ─┐
      #        ▲                                                                                              │
      #        └──────────────────────────────────────────────────────────────────────────────────────────────┘
      class Reactor
        READ_BYTES = 65_536
        WRITE_BYTES = 131_072
        # Seconds for a client's HELLO, and for the answer to it.
        HELLO_SECONDS = 10
        # Seconds between two looks at who is late, and for which nothing need happen at all.
        SWEEP = 0.5
        PATIENCE = 60
        private_constant :READ_BYTES, :WRITE_BYTES, :HELLO_SECONDS, :SWEEP, :PATIENCE

        include Arrivals
        include Departures

        def initialize(engine, logger:, doorkeeper: nil, write_timeout: 60, hello_timeout: HELLO_SECONDS)
          @engine = engine
          @logger = logger
          @doorkeeper = doorkeeper
          @write_timeout = write_timeout
          @hello_timeout = hello_timeout
          @selector = NIO::Selector.new
          @listeners = {}
          @connections = {}.compare_by_identity
          @blocked = {}.compare_by_identity
          @strangers = {}.compare_by_identity
          @full = {}.compare_by_identity
          @gone = []
          @inbox = Thread::Queue.new
          @errands = errands
          @buffer = String.new(capacity: READ_BYTES)
          @next_sweep = 0.0
          look_at_the_clock
        end

        # Begins. The thread's value is what has ended it: nil where it was told to stop.
        def start
          @thread = Thread.new { run }
          @thread.name = "hikyaku-broker"
          @thread
        end

        # Has the reactor's thread do something with the engine, between two turns.
        def ask(&block)
          answers = Thread::Queue.new
          answers.pop if tell(answers) { answers << block.call(@engine) }
        end

        def stats = ask(&:stats)

        def queues = ask { |engine| engine.queues(wall: @wall) }

        def inspect = "#<#{self.class.name} #{@connections.size} connections>"

        private

        # A sync never waits for a segment that is being filled with zeros.
        def errands
          [Errand.new("hikyaku-sync", wanted: -> { @engine.sync_wanted? }, piece: -> { @engine.sync }, done: -> { rouse }),
            Errand.new("hikyaku-space", wanted: -> { @engine.space_wanted? }, piece: -> { @engine.make_space }, done: -> { rouse })]
        end

        # Whoever waits for an answer gets one, also when there will be none.
        def tell(answers = nil, &block)
          @inbox << [block, answers]
          rouse
          true
        rescue ClosedQueueError
          false
        end

        def rouse
          @selector.wakeup
        rescue IOError
          nil # it has just ended
        end

        def run
          turn until @finished
          @errands.each(&:settle)
          @engine.close(now: @now, wall: @wall)
          nil
        rescue Exception => error # standard:disable Lint/RescueException
          # Also when there is no memory left: a process that lives on without its thread would serve nobody.
          say_last_words(error)
          @engine.drop_dead
          error
        ensure
          clear_up
        end

        # What has failed is said to those who can still be told it.
        def say_last_words(error)
          have_it_heard if error.is_a?(Log::Journal::Failed)
          speak
        rescue
          nil
        end

        # What failed in a thread of its own the engine hears of when it needs its journal next.
        def have_it_heard
          @engine.commit(wall: @wall)
        rescue StorageFailed
          nil
        end

        def turn
          wait
          @errands.each(&:take_back)
          hear_inbox
          leave
          have_decided if @doorkeeper
          pass_time
          commit
          speak
          look_at_the_end if @deadline
        end

        def wait
          ready = @selector.select(@gone.any? ? 0 : patience)
          look_at_the_clock
          ready&.each { |monitor| monitor.value.is_a?(Connection) ? attend(monitor.value) : accept(monitor.value) }
        end

        # Until something is to be done, whoever speaks.
        def patience
          return 0 unless @inbox.empty?
          now = monotonic
          at = now + PATIENCE
          at = @next_tick if @next_tick && @next_tick < at
          at = @next_sweep if @next_sweep < at && watched?
          at = @deadline if @deadline && @deadline < at
          (at > now) ? at - now : 0
        end

        # For what follows: to ask for the time costs as much as a small frame.
        def look_at_the_clock
          @now = monotonic
          @wall = wall
        end

        # Somebody may be late.
        def watched? = @strangers.any? || @blocked.any? || @paused_until

        def attend(connection)
          monitor = connection.monitor
          sparing_others(connection) do
            if connection.blocked_since && monitor.writable?
              unblock(connection)
              @engine.writable(connection.session)
            end
            read(connection) if connection.reads? && monitor.readable?
          end
        end

        # What goes wrong with one connection ends that one.
        def sparing_others(connection)
          yield
        rescue IOError, SystemCallError
          @gone << connection
        rescue StorageFailed
          raise
        rescue => error
          complain(error)
          @gone << connection
        end

        def read(connection)
          bytes = connection.socket.read_nonblock(READ_BYTES, @buffer, exception: false)
          return if bytes.equal?(:wait_readable)
          return @gone << connection unless bytes
          end_reading(connection) unless @engine.receive(connection.session, bytes, now: @now, wall: @wall)
          settle(connection)
        end

        def end_reading(connection)
          connection.ending = true
          watch(connection)
        end

        # What the engine wants of it from now on.
        def settle(connection)
          session = connection.session
          return @gone << connection if connection.ending && @engine.over?(session)
          full = @engine.full?(session)
          return if full == connection.full
          connection.full = full
          full ? @full[connection] = true : @full.delete(connection)
          watch(connection)
        end

        # The selector refuses to watch for nothing: who may neither speak nor has anything to hear is watched when that changes.
        def watch(connection)
          waits = connection.blocked_since
          wanted = (waits ? :rw : :r) if connection.reads?
          wanted ||= :w if waits
          monitor = connection.monitor
          monitor.interests = wanted unless monitor.interests == wanted
        end

        def hear_inbox
          until @inbox.empty?
            block, answers = @inbox.pop(true)
            begin
              block.call
            rescue StorageFailed
              raise
            rescue => error
              complain(error)
            ensure
              answers&.push(nil) # behind the answer, if there is one
            end
          end
        end

        def have_decided
          while (hello = @engine.asking)
            have_decided_of(hello)
          end
        end

        # A method of its own: a variable of the loop would be the same for all who ask in one turn.
        def have_decided_of(hello)
          @doorkeeper.decide(hello) { |decision| tell { carry_out(hello.serial, decision) } }
        end

        def carry_out(serial, decision)
          return @engine.refuse(serial, decision.sentence) unless decision.permitted?
          @engine.permit(serial, decision.permissions, until_ms: decision.until_ms, now: @now, wall: @wall)
        end

        def pass_time
          @engine.tick(now: @now, wall: @wall) if @next_tick.nil? || @now >= @next_tick
          sweep if @now >= @next_sweep
        end

        # Who is late goes.
        def sweep
          @next_sweep = @now + SWEEP
          resume if @paused_until && @now >= @paused_until
          @strangers.each { |connection, deadline| (deadline > @now) ? break : @gone << connection }
          @blocked.each_key { |connection| @gone << connection if connection.blocked_since + @write_timeout <= @now }
        end

        def commit
          @engine.commit(wall: @wall)
          @errands.each(&:send_out)
          @next_tick = @engine.next_tick
        end

        def speak
          while (session = @engine.next_ready)
            connection = @connections[session]
            connection ? sparing_others(connection) { write(connection) } : @engine.wrote(session, 0)
          end
          @full.each_key { |connection| settle(connection) } unless @full.empty?
        end

        def write(connection)
          session = connection.session
          bytes = @engine.take(session, WRITE_BYTES)
          written = bytes.empty? ? 0 : connection.socket.write_nonblock(bytes, exception: false)
          written = 0 if written.equal?(:wait_writable)
          @engine.wrote(session, written)
          @strangers.delete(connection) if written > 0 && !@strangers.empty?
          block(connection) if written < bytes.bytesize
          @gone << connection if @engine.over?(session)
        end

        def block(connection)
          connection.blocked_since = @now
          @blocked[connection] = true
          watch(connection)
        end

        def unblock(connection)
          connection.blocked_since = nil
          @blocked.delete(connection)
          watch(connection)
        end

        def complain(error) = @logger.error("broker: #{error.class}: #{error.message} (#{error.backtrace&.first})")

        def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        def wall = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
      end
    end
  end
end
