# frozen_string_literal: true

require "nio"
require "socket"
require_relative "../../log/journal/errors"
require_relative "../../support/clock"
require_relative "../errors"
require_relative "../wire"
require_relative "acceptor"
require_relative "background_task"
require_relative "peer"

module Hikyaku
  module Broker
    class Server
      # Drives the engine in Ruby: one thread for the engine and all its sockets. A turn reads what has come, commits it with one write to the
      # journal, and sends the output. What waits for the disk runs in threads of its own: while one fdatasync runs, the requests that come
      # gather for the next.
      #
      #     select ─► read, receive ─► commands, timers ─► commit ─► background tasks ─► take, write ─┐
      #        ▲                                                                                       │
      #        └───────────────────────────────────────────────────────────────────────────────────────┘
      class Reactor
        include Support::Clock

        READ_BYTES = 65_536
        WRITE_BYTES = 131_072
        # Seconds for a client's HELLO and for the answer to it.
        HELLO_TIMEOUT = 10
        # Seconds between two checks of timeouts, and of a select for which nothing is due.
        SWEEP_INTERVAL = 0.5
        MAX_SELECT = 60
        # Milliseconds before a client may connect again: to a broker without room for it, and to one that stops.
        RETRY_AFTER = 1_000
        # Seconds after which a client that has not sent HELLO gives way to a new one.
        HELLO_GRACE = 1
        private_constant :READ_BYTES, :WRITE_BYTES, :HELLO_TIMEOUT, :SWEEP_INTERVAL, :MAX_SELECT, :RETRY_AFTER, :HELLO_GRACE

        def initialize(engine, logger:, auth_pool: nil, write_timeout: 60, hello_timeout: HELLO_TIMEOUT)
          @engine = engine
          @logger = logger
          @auth_pool = auth_pool
          @write_timeout = write_timeout
          @hello_timeout = hello_timeout
          @selector = NIO::Selector.new
          @acceptor = Acceptor.new(@selector, logger: logger)
          @peers = {}.compare_by_identity           # by session
          @unauthenticated = {}.compare_by_identity # peer to deadline, the earliest first
          @blocked = {}.compare_by_identity
          @full = {}.compare_by_identity
          @closing = []
          @commands = Thread::Queue.new
          @tasks = tasks
          @buffer = String.new(capacity: READ_BYTES)
          @next_sweep = 0.0
          read_clocks
        end

        def listen(listener) = @acceptor.listen(listener)

        # Starts the thread. Its value is the error that has ended it, or nil after {#stop}.
        def start
          @auth_pool&.start { |request, decision| command { decide(request.serial, decision) } }
          @thread = Thread.new { run }
          @thread.name = "hikyaku-broker"
          @thread
        end

        # Stops accepting connections and messages, waits until all deliveries are settled, and closes the engine.
        def stop(seconds: 10)
          command { drain(seconds) }
          @thread&.join
        end

        # Closes a reactor that was not started.
        def abandon
          return if @thread
          @engine.close(now: @now, wall: @wall)
          clear
        end

        def stats = ask(&:stats)

        def queues = ask { |engine| engine.queues(wall: @wall) }

        def inspect = "#<#{self.class.name} #{@peers.size} connections>"

        private

        # --- commands from other threads ---

        # @return [Object, nil] what the block returns in the engine's thread; nil: that thread has ended
        def ask(&block)
          answers = Thread::Queue.new
          answers.pop if command(answers) { answers << block.call(@engine) }
        end

        def command(answers = nil, &block)
          @commands << [block, answers]
          wake_up
          true
        rescue ClosedQueueError
          false
        end

        def wake_up
          @selector.wakeup
        rescue IOError
          nil # the thread has just ended
        end

        def run_commands
          until @commands.empty?
            block, answers = @commands.pop(true)
            begin
              block.call
            rescue StorageFailed
              raise
            rescue => error
              log(error)
            ensure
              answers&.push(nil) # behind the answer, or in its place
            end
          end
        end

        # Two tasks, so that a sync does not wait for a segment that is filled with zeros.
        def tasks
          [BackgroundTask.new("hikyaku-sync", wanted: -> { @engine.sync_wanted? }, work: -> { @engine.sync }, done: -> { wake_up }),
            BackgroundTask.new("hikyaku-space", wanted: -> { @engine.space_wanted? }, work: -> { @engine.make_space }, done: -> { wake_up })]
        end

        # --- the thread ---

        def run
          turn until @stopped
          @tasks.each(&:join)
          @engine.close(now: @now, wall: @wall)
          nil
        rescue Exception => error # standard:disable Lint/RescueException
          # NoMemoryError as well: a process without this thread would live on and serve no client.
          send_last_output(error)
          @engine.abort
          error
        ensure
          clear
        end

        # Clients that can still be reached get the error.
        def send_last_output(error)
          report_to_engine if error.is_a?(Log::Journal::Failed)
          send_output
        rescue
          nil
        end

        # The engine notices an error of a background task when it uses its journal the next time.
        def report_to_engine
          @engine.commit(wall: @wall)
        rescue StorageFailed
          nil
        end

        def turn
          wait
          @tasks.each(&:check)
          run_commands
          close_peers
          submit_auth_requests if @auth_pool
          run_timers
          commit
          send_output
          check_drained if @deadline
        end

        def wait
          ready = @selector.select(@closing.any? ? 0 : seconds_until_due)
          read_clocks
          ready&.each { |monitor| monitor.value.is_a?(Peer) ? attend(monitor.value) : accept(monitor.value) }
        end

        def seconds_until_due
          return 0 unless @commands.empty?
          now = self.now
          due = now + MAX_SELECT
          due = @next_tick if @next_tick && @next_tick < due
          due = @next_sweep if @next_sweep < due && sweep_needed?
          due = @deadline if @deadline && @deadline < due
          (due > now) ? due - now : 0
        end

        def sweep_needed? = @unauthenticated.any? || @blocked.any? || @acceptor.paused_until

        # Once a turn: reading a clock costs as much as a small frame.
        def read_clocks
          @now = now
          @wall = wall
        end

        def run_timers
          @engine.tick(now: @now, wall: @wall) if @next_tick.nil? || @now >= @next_tick
          sweep if @now >= @next_sweep
        end

        def sweep
          @next_sweep = @now + SWEEP_INTERVAL
          @acceptor.resume(@now)
          @unauthenticated.each { |peer, deadline| (deadline > @now) ? break : @closing << peer }
          @blocked.each_key { |peer| @closing << peer if peer.blocked_since + @write_timeout <= @now }
        end

        def commit
          @engine.commit(wall: @wall)
          @tasks.each(&:start)
          @next_tick = @engine.next_tick
        end

        # --- connections ---

        def accept(server) = @acceptor.accept(server, @now) { |socket| admit(socket) }

        def admit(socket)
          session = connect(Peer.address(socket))
          configure(socket)
          peer = Peer.new(socket, session, @selector.register(socket, :r))
          @peers[session] = peer
          @unauthenticated[peer] = @now + @hello_timeout
        rescue TooManyConnections => error
          reject(socket, error)
        rescue IOError, SystemCallError
          # The client has closed the connection already.
          socket.close
          @engine.disconnect(session, now: @now, wall: @wall) if session
        end

        def connect(address)
          @engine.connect(address: address, now: @now)
        rescue TooManyConnections
          raise unless evict_oldest
          @engine.connect(address: address, now: @now)
        end

        def evict_oldest
          oldest, deadline = @unauthenticated.first
          return false unless oldest && deadline - @hello_timeout + HELLO_GRACE <= @now && oldest.session.new?
          release(oldest)
          true
        end

        # A client that vanished does not acknowledge what the kernel has accepted for it.
        def configure(socket)
          return unless socket.is_a?(TCPSocket)
          socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          return unless Socket.const_defined?(:TCP_USER_TIMEOUT)
          socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_USER_TIMEOUT, (@write_timeout * 1000).ceil)
        end

        def reject(socket, error)
          socket.write_nonblock(Wire.error(code: Wire::Code::LIMIT, sentence: error.message, scope: 2, retry_after: RETRY_AFTER), exception: false)
        rescue SystemCallError
          nil
        ensure
          socket.close
        end

        def close_peers
          return if @closing.empty?
          closing = @closing.uniq
          @closing = []
          closing.each { |peer| isolate(peer) { release(peer) } }
        end

        def release(peer)
          return unless @peers.delete(peer.session)
          @blocked.delete(peer)
          @unauthenticated.delete(peer)
          @full.delete(peer)
          peer.close
          @engine.disconnect(peer.session, now: @now, wall: @wall)
        end

        # An error with one connection closes that one alone.
        def isolate(peer)
          yield
        rescue IOError, SystemCallError
          @closing << peer
        rescue StorageFailed
          raise
        rescue => error
          log(error)
          @closing << peer
        end

        # --- bytes ---

        def attend(peer)
          isolate(peer) do
            if peer.blocked_since && peer.monitor.writable?
              unblock(peer)
              @engine.writable(peer.session)
            end
            read(peer) if peer.reads? && peer.monitor.readable?
          end
        end

        def read(peer)
          bytes = peer.socket.read_nonblock(READ_BYTES, @buffer, exception: false)
          return if bytes.equal?(:wait_readable)
          return @closing << peer unless bytes
          unless @engine.receive(peer.session, bytes, now: @now, wall: @wall)
            peer.ending = true
            peer.watch
          end
          update(peer)
        end

        # Stops and resumes reading as the engine wants.
        def update(peer)
          session = peer.session
          return @closing << peer if peer.ending && @engine.finished?(session)
          full = @engine.full?(session)
          return if full == peer.full
          peer.full = full
          full ? @full[peer] = true : @full.delete(peer)
          peer.watch
        end

        def send_output
          while (session = @engine.next_ready)
            peer = @peers[session]
            peer ? isolate(peer) { write(peer) } : @engine.wrote(session, 0)
          end
          @full.each_key { |peer| update(peer) } unless @full.empty?
        end

        def write(peer)
          session = peer.session
          bytes = @engine.take(session, WRITE_BYTES)
          written = bytes.empty? ? 0 : peer.socket.write_nonblock(bytes, exception: false)
          written = 0 if written.equal?(:wait_writable)
          @engine.wrote(session, written)
          @unauthenticated.delete(peer) if written > 0 && !@unauthenticated.empty?
          block(peer) if written < bytes.bytesize
          @closing << peer if @engine.finished?(session)
        end

        def block(peer)
          peer.blocked_since = @now
          @blocked[peer] = true
          peer.watch
        end

        def unblock(peer)
          peer.blocked_since = nil
          @blocked.delete(peer)
          peer.watch
        end

        # --- authentication ---

        def submit_auth_requests
          while (request = @engine.next_auth_request)
            refusal = @auth_pool.submit(request) and decide(request.serial, refusal)
          end
        end

        def decide(serial, decision)
          return @engine.refuse(serial, decision.reason) unless decision.permitted?
          @engine.permit(serial, decision.permissions, until_ms: decision.until_ms, now: @now, wall: @wall)
        end

        # --- the end ---

        def drain(seconds)
          return if @deadline
          @deadline = @now + seconds
          @acceptor.close
          @engine.drain(RETRY_AFTER)
        end

        def check_drained
          @stopped = @now >= @deadline || (@engine.drained? && @blocked.empty? && @closing.empty?)
        end

        def clear
          @tasks.each(&:close)
          @acceptor.close
          @peers.each_value(&:close)
          @peers.clear
          @commands.close
          while (_, answers = @commands.pop)
            answers&.push(nil)
          end
          @selector.close
        end

        def log(error) = @logger.error("broker: #{error.class}: #{error.message} (#{error.backtrace&.first})")

        def wall = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
      end
    end
  end
end
