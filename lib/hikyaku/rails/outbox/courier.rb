# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "../../error"
require_relative "../../client/event_source/backoff"
require_relative "../../client/publisher/errors"

module Hikyaku
  class Outbox
    # A thread that takes rows to the hub: at once when this process has committed some, else when it finds those of others.
    # It begins with the first commit, or with the server; a forked process has its own.
    #
    #     idle ── woken, or after poll_seconds ──► a pass ── there may be more ──► a pass …
    #       ▲                                        │ the hub is away
    #       └──────────────────────────────────── pause, longer each time
    class Courier
      include Support::Clock

      # Pauses while the hub is away, in seconds.
      PAUSES = {retry_seconds: 0.5, max_seconds: 5}.freeze
      # For a pass to end when the process stops.
      STOP_SECONDS = 5
      private_constant :PAUSES, :STOP_SECONDS

      def initialize(poll_seconds: 1, logger: nil, waiting: -> { true }, &pass)
        @poll_seconds = poll_seconds
        @logger = logger
        @waiting = waiting
        @pass = pass
        @lock = Mutex.new
        @condition = ConditionVariable.new
        @backoff = EventSource::Backoff.new(**PAUSES)
        @stopping = @woken = @serving = @away = false
      end

      # Begins to look for rows, in this process and in those that it forks.
      def serve(here: true)
        @serving = true
        begin_work if here
      end

      # Goes on in a process that was forked from one that serves.
      def forked
        @homeless = nil
        begin_work if @serving
      end

      # There are new rows. Does not wait.
      def wake
        return if @homeless
        @lock.synchronize do
          @woken = true
          @condition.signal
        end
        begin_work
      end

      # Works in the thread of the caller, until {#stop}.
      def run
        @serving = true
        @lock.synchronize { @thread = Thread.current }
        work
      end

      # Ends the work after the pass that is going on; what was committed before is taken along if the hub is there.
      def stop(seconds: STOP_SECONDS)
        thread = @lock.synchronize do
          @stopping = true
          @condition.broadcast
          @thread
        end
        thread&.join(seconds) unless thread == Thread.current
      end

      def alive? = @lock.synchronize { @thread&.alive? || false }

      private

      def begin_work
        @lock.synchronize do
          return if @stopping || @thread&.alive?
          @thread = Thread.new { work }
          @thread.name = "hikyaku outbox"
          # For Puma: who forks has it again in the child.
          @thread.thread_variable_set(:fork_safe, true)
        end
      end

      def work
        until @stopping || @homeless
          pause = turn
          rest(pause)
        end
        turn if @woken && !@away && !@homeless
      end

      def turn
        woken = @lock.synchronize { @woken.tap { @woken = false } }
        return [@poll_seconds, true] unless woken || @away || @waiting.call
        outcome = @pass.call
        return back(outcome) unless outcome.error
        away(outcome.error)
      rescue => error
        away(error)
      end

      def back(outcome)
        @logger&.info("Hikyaku: the outbox is being emptied again") if @away
        @away = false
        @backoff.reset
        [outcome.more ? 0 : @poll_seconds, true]
      end

      # Said once, not with every attempt.
      def away(error)
        return go_home(error) if nobody?(error) && !@serving
        @logger&.warn("Hikyaku: updates wait in the outbox (#{error.class}: #{error.message})") unless @away
        @away = true
        [@backoff.next_pause(at_least: (error.retry_after if error.respond_to?(:retry_after))), false]
      end

      # A console or a job that knows no hub: what it has committed is for the couriers of others.
      def go_home(error)
        @logger&.debug { "Hikyaku: rows of the outbox are left to other processes (#{error.message})" }
        @homeless = true
        [0, true]
      end

      def nobody?(error) = defined?(NoHub) && error.is_a?(NoHub)

      def rest(pause)
        seconds, wakeable = pause
        deadline = now + seconds
        @lock.synchronize do
          until @stopping || (wakeable && @woken) || (left = deadline - now) <= 0
            @condition.wait(@lock, left)
          end
        end
      end
    end
  end
end
