# frozen_string_literal: true

require "ipaddr"
require "securerandom"
require "socket"
require_relative "../support/clock"
require_relative "../error"
require_relative "../hub/native_engine"

module Hikyaku
  class Server
    # Carries the bytes of a hub with the native engine, or of a broker, or of both: one thread for all sockets, which needs Ruby's lock for nothing but to
    # start and to end. It starts when the first socket comes and belongs to the process that started it; a forked child
    # begins anew.
    #
    # A mounted hub uses it as it uses Reactor. A server gives it more. It listens, and answers requests from the decisions that it
    # remembers for the same values; all others it asks the server about:
    #
    #     reactor.take_requests(path: "/.well-known/mercure")
    #     reactor.listen(TCPServer.new("127.0.0.1", 3000))
    #     while (request = reactor.next_request)             on as many threads as are to answer
    #       status, headers, body = app.call(request.env)
    #       reactor.remember(request, grant, head: head)     where something was granted, before it is answered
    #       reactor.answer(request, head, body)              or answer_stream, or answer_yourself
    #     end
    #
    # The `env` of a request whose decision may be remembered holds all that the decision can depend on, so that nothing else can
    # have decided. A request that is never answered is answered with 500 when its object is collected.
    #
    # It carries the connections of a broker, too, beside those of the hub or alone:
    #
    #     reactor = NativeReactor.new(nil, broker: engine)             or reactor.carry(engine), before it has anything to do
    #     reactor.on_storage_failure { |error| … }
    #     reactor.listen_broker(UNIXServer.new(path))
    #     while (hello = reactor.next_hello)                           on a thread, unless the engine is `open`
    #       reactor.permit(hello, [Broker::Permission.all])            or refuse
    #     end
    #     reactor.stop
    #     engine.close(now: …, wall: …)
    #
    # Threads of its own, which Ruby does not see, do what may take long at the disk.
    class NativeReactor
      include Support::Clock

      # What the kernel may hold for a reader that does not read.
      SEND_BUFFER = 64 * 1024
      # Seconds that a stop takes at most.
      DRAIN_SECONDS = 5
      # Between two looks for what nobody uses any more.
      TIDY_SECONDS = 5
      # Between two looks for what the log should say of the loop.
      REPORT_SECONDS = 5
      # Seconds after which a waiting thread looks whether somebody wants it.
      PATIENCE = 1.0
      LIMITS = {max_topics: 1_000, max_topic_bytes: 4_096, max_id_bytes: 1_024, max_type_bytes: 256, max_body_bytes: 1_048_576, max_fields: 16_000}.freeze
      HTTP = {max_head_bytes: 64 * 1024, max_asks: 4_096, max_connections: nil, max_of_address: nil, head_timeout: 10, idle_timeout: 20}.freeze
      private_constant :SEND_BUFFER, :DRAIN_SECONDS, :TIDY_SECONDS, :REPORT_SECONDS, :PATIENCE, :LIMITS, :HTTP

      def initialize(hub, broker: nil, write_timeout: 30, io_uring: true, logger: nil, **limits)
        @hub = hub
        @broker = broker
        @engine = hub&.drive { |engine| engine }
        raise NativeUnavailable, "this reactor is for the native engine, not for #{@engine.class}" unless @engine.nil? || @engine.is_a?(Hub::NativeEngine)
        @logger = logger
        @options = {serves: false, write_timeout: write_timeout, io_uring: io_uring, send_buffer: SEND_BUFFER, drain_timeout: DRAIN_SECONDS, **limits}
        @start = Mutex.new
        @thread = @pid = nil
        @tasks = PeriodicTasks.new(logger)
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
        @tasks.add(seconds, block)
        @tasks.start if running?
      end

      # ---- requests

      # Prepares for requests. Once, before the reactor has anything to do.
      def take_requests(path:, cookie_names: [], legacy: false, counts_loopback: true, dates: false,
        trusted_proxies: [], max_table_bytes: 67_108_864, **limits)
        unknown = limits.keys - LIMITS.keys - HTTP.keys
        raise ArgumentError, "unknown limits: #{unknown.join(", ")}" if unknown.any?
        raise IOError, "the reactor runs already" if _open?
        networks = trusted_proxies.map { |range| [range.ipv4? ? 4 : 6, range.prefix, range.hton] }
        _gate(@engine, path: path, cookie_names: cookie_names, legacy: legacy, counts_loopback: counts_loopback, dates: dates, trusted_proxies: networks,
          max_table_bytes: max_table_bytes, secret: SecureRandom.bytes(16), **LIMITS, **limits.slice(*LIMITS.keys))
        @options = {**@options, **HTTP, **LIMITS.slice(:max_body_bytes), **limits.slice(*HTTP.keys, :max_body_bytes), serves: true}
      end

      # Accepts connections.
      def listen(socket)
        own!
        _listen(socket.fileno, socket.is_a?(TCPServer)) or raise IOError, "the reactor is stopping, or was not told to take requests"
      end

      # Takes over a connection on which a request, or its beginning, was read already.
      def adopt(socket, bytes = "")
        own!
        _adopt(socket.fileno, bytes)
      ensure
        socket.close
      end

      # Waits for a request that needs an answer.
      def next_request(timeout: nil) = wait_for(timeout) { |seconds| _next(seconds) }

      def answer(request, head, body = nil, close: false) = _answer(request, head, body, close)

      # Answers with an event stream.
      def answer_stream(request, head, subscriber)
        @engine.handed_over(subscriber)
        _answer_stream(request, head, subscriber.serial)
      end

      # Gives the connection away: the caller answers, and closes it.
      def answer_yourself(request)
        descriptor = _answer_yourself(request)
        descriptor && Socket.for_fd(descriptor)
      end

      # Remembers what was decided, for requests with the same values, until `forget` or the grant's end. Does nothing for a
      # request about which nothing may be remembered.
      def remember(request, grant, head:)
        key = request.key or return
        epoch = request.epoch
        @hub.drive { |engine| _remember(engine, key, epoch, engine.compile(grant), head) }
      end

      # ---- a broker

      # Carries a broker, too. Once, before the reactor has anything to do.
      def carry(broker, hello_timeout: 10, max_sessions: 0)
        raise IOError, "the reactor runs already" if _open?
        @broker = broker
        @options = {**@options, hello_timeout: hello_timeout, max_sessions: max_sessions}
      end

      # Accepts connections of the broker's clients.
      def listen_broker(socket)
        raise IOError, "the reactor has no broker" unless @broker
        own!
        _listen_broker(socket.fileno, socket.is_a?(TCPServer)) or raise IOError, "the reactor is stopping"
      end

      # Waits for somebody about whom it is to be decided.
      def next_hello(timeout: nil) = wait_for(timeout) { |seconds| _next_hello(seconds) }

      def permit(hello, permissions, until_ms: nil)
        _permit(hello, permissions.map { |permission| [permission.pattern, permission.rights] }, until_ms)
      end

      def refuse(hello, sentence) = _refuse(hello, sentence)

      # Calls the block, on the reactor's thread, when the broker's storage has failed: clients are told, and the broker
      # takes nothing any more, so that the process should end. It is logged in any case.
      def on_storage_failure(&block)
        @on_storage_failure = block
      end

      attr_reader :storage_failure

      def broker_stats
        @broker&.stats
      rescue IOError
        nil
      end

      def broker_queues
        @broker&.queues(wall: Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond))
      rescue IOError
        nil
      end

      # ---- the end, and figures

      # Sends what is pending, closes every stream and ends the thread.
      def stop(seconds: DRAIN_SECONDS)
        return unless _open?
        own!
        @tasks.stop
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
          @tasks.start
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

      # The loop comes back when the storage fails.
      def look_at_storage
        return if @storage_failure
        trouble = _storage_trouble or return
        @storage_failure = @broker.class.failure(trouble)
        @logger&.error("the broker's storage has failed: #{@storage_failure.message}. It takes nothing any more; what was not acknowledged is in doubt")
        @on_storage_failure&.call(@storage_failure)
      end

      # What the block has found: nil when there was nothing in its time, false when there will be nothing.
      def wait_for(timeout)
        deadline = timeout && now + timeout
        while _open?
          left = deadline ? deadline - now : PATIENCE
          found = yield left.clamp(0, PATIENCE)
          return found if found
          return if found == false || (deadline && now >= deadline)
        end
      rescue IOError
        nil # it was closed meanwhile
      end

      # A request that the engine could not answer by itself. Void as soon as it is answered: then all but
      # `answered?` raise IOError.
      class Request
        # The Rack environment, as Puma makes it. Where `key` is not nil it holds nothing but what decides: of the query
        # component and of the header fields those that a grant may depend on, of the cookies the token's, as REMOTE_ADDR
        # the client's address, whichever proxies that are trusted stand between.
        def env = _env

        def key = _key

        def epoch = _epoch

        def keep_alive? = _keep_alive

        def body_too_large? = _body_too_large

        def answered? = _answered

        def inspect = "#<#{self.class.name}#{" answered" if answered?}>"
      end

      # A client that has said HELLO to the broker, and waits for a decision. It is decided once; one that is never decided is refused.
      #
      # It has the attributes of Broker::AuthRequest.
      class Hello
        def serial = parts[0]

        def identity = parts[1]

        def credentials = parts[2]

        def kind = parts[3]

        def agent = parts[4]

        def address = parts[5]

        def decided? = _decided

        def inspect = "#<#{self.class.name}#{" decided" if decided?}>"

        private

        def parts = @parts ||= _parts
      end

      # Calls blocks regularly on one thread, which belongs to the process that started it.
      class PeriodicTasks
        include Support::Clock

        Task = Struct.new(:seconds, :block, :at)
        private_constant :Task

        def initialize(logger)
          @logger = logger
          @tasks = []
          @lock = Mutex.new
          @changed = ConditionVariable.new
          @thread = nil
        end

        def add(seconds, block)
          @lock.synchronize do
            @tasks << Task.new(seconds, block, now + seconds)
            @changed.signal
          end
        end

        # Harmless when repeated.
        def start
          @lock.synchronize do
            next if @thread&.alive? || @tasks.empty?
            @thread = Thread.new { run }
            @thread.name = "hikyaku-periodic"
          end
        end

        def stop
          thread = @lock.synchronize { @thread.tap { @thread = nil } }
          thread.kill if thread && thread != Thread.current
        end

        private

        def run
          while (task = due)
            begin
              task.block.call
            rescue => error
              @logger&.error("reactor: #{error.class}: #{error.message} (#{error.backtrace&.first})")
            end
          end
        end

        # Waits for the next one; nil when it was stopped.
        def due
          @lock.synchronize do
            loop do
              return unless @thread == Thread.current
              task = @tasks.min_by(&:at)
              wait = task.at - now
              if wait <= 0
                task.at = now + task.seconds
                return task
              end
              @changed.wait(@lock, wait)
            end
          end
        end
      end

      private_constant :PeriodicTasks
    end
  end
end
