# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "../errors"
require_relative "fetch"

module Hikyaku
  module HTTP
    class Client
      # Moves everything that is under way, in the threads of those who wait for it: there is none of its own. The first that waits drives for all; when it
      # has what it waits for, another goes on. Under a fiber scheduler a thread drives, so that the fibers' own does not stand still.
      class Driver
        # Waits for all that is under way, so that it goes on though nobody waits for it.
        Everything = Struct.new(:servers, :news) do
          def satisfied? = servers.all?(&:idle?)

          def deadline = nil

          def expire = nil
        end

        # So long at most without looking at everything.
        LONGEST = 60.0 # seconds
        # Not more often is it looked for connections that nobody uses.
        BETWEEN_CLEARANCES = 1.0 # seconds
        # A thread that is interrupted (Timeout.timeout, Thread#raise, Thread#kill) is so where it waits: not between what it read and what it made of it.
        # (Ruby makes no copy of such hashes as these.)
        WHERE_IT_WAITS = {Object => :on_blocking}.compare_by_identity.freeze
        NEVER = {Object => :never}.compare_by_identity.freeze
        private_constant :LONGEST, :BETWEEN_CLEARANCES, :WHERE_IT_WAITS, :NEVER, :Everything

        def initialize(attended: false, clock: Support::Clock::MONOTONIC)
          @clock = clock
          @lock = Mutex.new
          @servers = []
          @waiting = []
          @driving = @asleep = @untended = @gathering = false
          @pid = Process.pid
          @reader, @writer = IO.pipe
          @work = Queue.new if attended
          @attendant = nil
          @clear_at = -Float::INFINITY
        end

        def now = @clock.call

        attr_reader :servers

        # Nothing moves while the block runs.
        def synchronize(&block) = @lock.owned? ? yield : @lock.synchronize(&block)

        # Whoever drives looks again. Any thread may call it.
        def wake
          @writer.write_nonblock(".", exception: false)
        rescue IOError, SystemCallError
          nil
        end

        # What is begun in the block is asked for together.
        def together
          synchronize do
            outer, @gathering = @gathering, true
            yield
          ensure
            @gathering = outer
            nudge unless outer
          end
        end

        # Has what is new begin at once, if nobody drives.
        def nudge
          return if @gathering || !own?
          attend if @work
          return wake if @asleep
          go_on { look } unless @driving
        end

        # Until the fetch has what is waited for.
        def wait(fetch)
          return if fetch.satisfied?
          abroad(fetch) unless own?
          return Thread.new { drive(fetch) }.join if Fiber.current_scheduler
          drive(fetch)
        end

        # The thread of its own ends by itself: where one is killed that waits for the lock, Ruby 3.1 has nobody else wake up who waits for it.
        def close
          @work&.close
          wake
        end

        def own? = @pid == Process.pid

        private

        # What comes on the connections of another process is that one's.
        def abroad(fetch)
          url = fetch.url if fetch.is_a?(Fetch)
          raise Canceled.new("#{url || "what is waited for"} was asked for by another process, and comes there; ask for it anew in this one", url: url)
        end

        def attend
          return if @work.closed?
          @attendant = nil unless @attendant&.alive?
          @attendant ||= Thread.new do
            while @work.pop
              @work.clear
              drive(Everything.new(@servers, ConditionVariable.new))
            end
          end
          @work << true if @work.empty?
        end

        def drive(fetch)
          synchronize do
            @waiting << fetch
            @untended = true
            until fetch.satisfied?
              @driving ? wait_for_driver(fetch) : go_on { look_or_sleep }
            end
          ensure
            @waiting.delete_at(@waiting.index(fetch))
            @waiting.first.news.broadcast if !@driving && @waiting.any?
          end
        end

        # Who drives may be asleep, and does not know of what is new.
        def wait_for_driver(fetch)
          wake if @asleep
          fetch.news.wait(@lock)
        end

        # One turn. What has come is taken before anything is found to be late: this program may have been busy with something else, and the other side
        # have been in time.
        def go_on(&look) = Thread.handle_interrupt(WHERE_IT_WAITS) { turn(&look) }

        def turn
          @driving = true
          ready = yield
          moment = now
          @servers.each { |server| server.step(moment, ready) }
          @untended = false
          @waiting.each { |fetch| fetch.expire if fetch.deadline && fetch.deadline <= moment }
          @servers.each { |server| server.tend(moment) }
          clear(moment) if moment >= @clear_at
        ensure
          @driving = false
        end

        # What is idle for too long, at whatever origin.
        def clear(moment)
          @servers.each { |server| server.clear(moment) }
          @clear_at = moment + BETWEEN_CLEARANCES
        end

        def deadline
          soonest = now + LONGEST
          [@waiting, @servers].each do |all|
            all.each do |one|
              limit = one.deadline
              soonest = limit if limit && limit < soonest
            end
          end
          soonest
        end

        def look_or_sleep = @untended ? look : sleep_until(deadline)

        # What is ready already. Where nothing is under way nothing is.
        def look = @servers.any?(&:under_way?) ? selected { |reading, writing| IO.select(reading, writing, nil, 0) } : {}

        # What becomes ready.
        def sleep_until(deadline)
          pending = @servers.any? { |server| server.connections.any? { |connection| connection.open? && connection.pending? } }
          seconds = pending ? 0 : [deadline - now, 0].max
          selected { |reading, writing| unlocked { IO.select(reading, writing, nil, seconds) } }
        end

        def selected
          reading, writing = [@reader], []
          @servers.each do |server|
            server.connections.each do |connection|
              reading.concat(connection.reading)
              writing.concat(connection.writing)
            end
          end
          ready = {}
          yield(reading, writing)&.each { |ios| ios.each { |io| ready[io] = true } }
          @reader.read_nonblock(64, exception: false) if ready.key?(@reader)
          ready
        rescue IOError, Errno::EBADF # closed by another thread meanwhile
          {}
        end

        def unlocked
          @asleep = true
          @lock.unlock
          yield
        ensure
          # Interrupted here, whoever comes next would find a lock that nobody has.
          Thread.handle_interrupt(NEVER) { @lock.lock }
          @asleep = false
        end
      end
    end
  end
end
