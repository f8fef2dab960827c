# frozen_string_literal: true

require "securerandom"
require "socket"
require_relative "../error"
require_relative "../hub/native_engine"

module Hikyaku
  class Server
    # Carries the bytes of a hub with the native engine, or of a broker, or of both: one thread for all sockets, which needs Ruby's lock for nothing but to
    # start and to end. It starts when the first socket comes and belongs to the process that started it; a forked child
    # begins anew.
    #
    # To those who mount a hub it is what Reactor is. A server can give it more: sockets to listen on, whose
    # requests it answers as far as it knows how, from decisions that it remembers (Requests); and a broker (Sessions).
    class NativeReactor
      # What the kernel may hold for a reader that does not read.
      SEND_BUFFER = 64 * 1024
      # Seconds that a stop takes at most.
      DRAIN_SECONDS = 5
      # Between two looks for what nobody uses any more.
      TIDY_SECONDS = 5
      # Between two looks for what the log should say of the loop.
      REPORT_SECONDS = 5
      private_constant :SEND_BUFFER, :DRAIN_SECONDS, :TIDY_SECONDS, :REPORT_SECONDS

      def initialize(hub, broker: nil, write_timeout: 30, io_uring: true, logger: nil, **limits)
        @hub = hub
        @broker = broker
        @engine = hub&.drive { |engine| engine }
        raise NativeUnavailable, "this reactor is for the native engine, not for #{@engine.class}" unless @engine.nil? || @engine.is_a?(Hub::NativeEngine)
        @logger = logger
        @options = {serves: false, write_timeout: write_timeout, io_uring: io_uring, send_buffer: SEND_BUFFER, drain_timeout: DRAIN_SECONDS, **limits}
        @start = Mutex.new
        @thread = @pid = nil
        @repeats = Repeats.new(logger)
        @reported = {}
        every(REPORT_SECONDS) { report } if logger
        return unless hub
        hub.driver = self
        every(TIDY_SECONDS) { @engine.trim if hub.drive { |engine| engine.tidy } }
      end

      # Takes over a connection. What the subscriber has missed is sent at once.
      def attach(subscriber, connection)
        own!
        @engine.handed_over(subscriber)
        @hub.unsubscribe(subscriber) unless _attach(connection, subscriber.serial)
      rescue IOError, SystemCallError => error
        @logger&.warn("reactor: #{error.class}: #{error.message}")
        @hub.unsubscribe(subscriber)
      ensure
        connection.close
      end

      # Somebody may be ready.
      def wake = _wake

      # Forgets decisions that it remembers.
      def forget(subject) = @engine && _forget(@engine, subject)

      # Calls a block regularly, on a thread of its own, while the reactor runs.
      def every(seconds, &block)
        @repeats.add(seconds, block)
        @repeats.start if running?
      end

      # Sends what is pending, closes every stream and ends the thread.
      def stop(seconds: DRAIN_SECONDS)
        return unless _open?
        own!
        @repeats.stop
        thread = @thread
        _stop
        thread.join(seconds + 1) unless thread == Thread.current
      end

      def running? = (@thread&.alive? && @pid == Process.pid) || false

      # Figures: of connections and requests while it runs, of decisions always.
      def stats
        return _loop_stats || {} unless @engine
        gate = _gate_stats(@engine)
        decided = {grant_hits: gate[:hits], grant_misses: gate[:misses], asks: gate[:asks], decisions: gate[:decisions], decision_bytes: gate[:bytes]}
        (_loop_stats || {}).merge(decided)
      end

      def inspect = "#<#{self.class.name} #{running? ? "running" : "idle"}>"

      private

      # Starts the thread in this process, also again if somebody has ended it. What a parent process left behind is
      # forgotten, none of its sockets touched.
      def own!
        return if running?
        @start.synchronize do
          next if running?
          open unless _open?
          @pid = Process.pid
          @thread = Thread.handle_interrupt(StandardError => :never) { Thread.new { run } }
          @thread.name = "hikyaku-reactor"
          @repeats.start
        end
      end

      def open
        error = _open(@engine, @broker, {secret: SecureRandom.bytes(16), **@options})
        return unless error
        @logger&.info("reactor: io_uring is not available (#{SystemCallError.new(nil, error).message}): each delivery is a send() of its own")
      end

      # What the loop goes on without, which nobody would notice else.
      def report
        figures = _loop_stats or return
        error, pauses = figures.values_at(:ring_error, :accept_pauses)
        if error > 0 && error != @reported[:ring_error]
          @logger.warn("reactor: io_uring has ended (#{SystemCallError.new(nil, error).message}): each delivery is a send() of its own from now on")
        end
        if pauses > @reported.fetch(:accept_pauses, 0)
          @logger.warn("reactor: no file or no memory was left for new connections: they wait. Raise the limit of open files (ulimit -n), or lower max_connections")
        end
        @reported = figures
      end

      def run
        nil while turn
        _close
      end

      # What others raise in this thread comes while it carries bytes, never while it deals with what came before.
      def turn
        again = Thread.handle_interrupt(StandardError => :immediate) { _run }
        look_at_storage
        again
      rescue => error
        @logger&.error("reactor: #{error.class}: #{error.message} (#{error.backtrace&.first})")
        sleep 0.1
        true
      end
    end
  end
end

require_relative "native_reactor/repeats"
require_relative "native_reactor/request"
require_relative "native_reactor/requests"
require_relative "native_reactor/hello"
require_relative "native_reactor/sessions"
