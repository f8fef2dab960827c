# frozen_string_literal: true

require "nio"
require "socket"
require_relative "../support/clock"
require_relative "../error"
require_relative "../hub/event"

module Hikyaku
  class Server
    # Carries a hub's bytes: one thread for all subscribers, however many there are. It starts when the first one comes
    # and belongs to the process that started it; a forked child begins anew.
    class Reactor
      include Support::Clock

      # Deliveries between two looks at the other sockets, and at the other threads.
      SLICE = 128
      # Bytes that are gathered for one write to a reader that is behind.
      MAX_WRITE = 64 * 1024
      # What the kernel may hold for a reader that does not read.
      SEND_BUFFER = 64 * 1024
      # Bytes that a subscriber may send after its request before it is closed: it has nothing to say.
      MAX_CHATTER = 64 * 1024
      # Seconds of a stop that remain for closing streams, however much there is still to send.
      PARTING = 2
      private_constant :SLICE, :MAX_WRITE, :SEND_BUFFER, :MAX_CHATTER, :PARTING

      def initialize(hub, write_timeout: 30, logger: nil)
        @hub = hub
        @write_timeout = write_timeout if write_timeout&.positive?
        @logger = logger
        @start = Mutex.new
        @tasks = []
        reset
        hub.driver = self
      end

      # Takes over a connection. What the subscriber has missed is sent at once.
      def attach(subscriber, connection)
        own!
        @incoming << [subscriber, connection]
        rouse
      end

      # Somebody may be ready. While the reactor sleeps, the calling thread carries the first slice itself: to hand over to
      # another thread costs more than to write to a dozen sockets. What is left then wakes the reactor.
      def wake
        return unless @sleeping && @pid == Process.pid
        more = @hub.drive { |engine| serve(engine) }
        rouse if more || !@closing.empty? || !@stalled.empty?
      end

      # Decisions are remembered elsewhere.
      def forget(_subject) = nil

      # Calls a block regularly on the reactor's thread.
      def every(seconds, &block)
        @tasks << [seconds, now + seconds, block]
        rouse
      end

      # Sends what is pending, closes every stream and ends the thread.
      def stop(seconds: 5)
        thread = @thread
        return unless thread&.alive? && @pid == Process.pid
        @stopping = now + seconds
        @sleeping = true
        rouse
        thread.join(seconds + 1) unless thread == Thread.current
      end

      def running? = @thread&.alive? ? @pid == Process.pid : false

      def inspect = "#<#{self.class.name} #{running? ? "running" : "idle"}>"

      private

      def reset
        @incoming = []
        @closing = []
        @stalled = []
        @monitors = {}.compare_by_identity
        @blocked = {}.compare_by_identity
        @sleeping = false
        @stopping = nil
        @parting = false
        @pid = nil
        @thread = nil
        @next_tick = @next_second = 0.0
      end

      # Ends the reactor's sleep.
      def rouse
        return unless @sleeping
        @sleeping = false
        @selector.wakeup
      rescue IOError
        nil # it was just stopped
      end

      # Starts the thread in this process. What a parent process left behind is forgotten, none of its sockets touched.
      def own!
        return if @pid == Process.pid && @thread&.alive?
        @start.synchronize do
          next if @pid == Process.pid && @thread&.alive?
          abandon if @pid && @pid != Process.pid
          reset
          @selector = NIO::Selector.new
          @pid = Process.pid
          @thread = Thread.new { run }
          @thread.name = "hikyaku-reactor"
        end
      end

      # Who has a connection got it in the parent.
      def abandon
        inherited = []
        @hub.drive { |engine| engine.each_subscriber { |subscriber| inherited << subscriber if subscriber.connection } }
        inherited.each { |subscriber| @hub.unsubscribe(subscriber) }
      end

      def run
        until @stopping && finished?
          begin
            turn
          rescue => error
            @logger&.error("reactor: #{error.class}: #{error.message} (#{error.backtrace&.first})")
            sleep 0.01
          end
        end
      ensure
        @monitors.each_key.to_a.each { |subscriber| release(subscriber) }
        @selector.close
      end

      def turn
        adopt
        more = @hub.drive { |engine| serve(engine) }
        now = self.now
        part if @stopping && !@parting && ((!more && @blocked.empty?) || now > @stopping - PARTING)
        pass_time(now) if now >= @next_tick
        look(more, now)
        Thread.pass if more
      end

      # Everybody has got what is pending, also who was slow to take it, or the time for that is over.
      def part
        @parting = true
        @hub.drive(&:shutdown)
      end

      def finished?
        (@monitors.empty? && @incoming.empty?) || now > @stopping
      end

      def adopt
        while (subscriber, connection = @incoming.shift)
          begin
            take_over(subscriber, connection)
          rescue IOError, SystemCallError
            @monitors[subscriber] = nil
            release(subscriber)
          end
        end
      end

      def take_over(subscriber, connection)
        return refuse(subscriber, connection) if subscriber.closed
        subscriber.connection = connection
        @monitors[subscriber] = nil
        prepare(connection)
        monitor = @selector.register(connection, :r)
        monitor.value = subscriber
        @monitors[subscriber] = monitor
        @hub.drive do |engine|
          engine.control(subscriber, Hub::Event::HEARTBEAT) unless subscriber.control
          engine.writable(subscriber)
        end
      end

      # A client that vanished without a word confirms nothing of what the kernel has taken for it: where the kernel can be
      # told, that counts as no progress, too.
      def prepare(socket)
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_SNDBUF, SEND_BUFFER)
        return unless @write_timeout && socket.is_a?(TCPSocket) && Socket.const_defined?(:TCP_USER_TIMEOUT)
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_USER_TIMEOUT, (@write_timeout * 1000).ceil)
      end

      # The hot path. Under the hub's lock, a slice at a time.
      def serve(engine)
        now = self.now
        engine.serve(SLICE, MAX_WRITE, now: now) do |subscriber, bytes|
          if bytes
            written = subscriber.connection.write_nonblock(bytes, exception: false)
            (written == bytes.bytesize) ? written : block(subscriber, written, now)
          else
            @closing << subscriber
            0
          end
        rescue IOError, SystemCallError
          engine.close(subscriber, :hung_up)
          0
        end
      end

      def block(subscriber, written, now)
        @blocked[subscriber] = now
        @stalled << subscriber
        (written == :wait_writable) ? 0 : written
      end

      def look(more, now)
        close_closing
        watch_stalled
        timeout = more ? 0 : [@next_tick - now, 0].max
        unless more
          @sleeping = true
          timeout = 0 if pending?
        end
        @selector.select(timeout) do |monitor|
          @sleeping = false
          attend(monitor)
        end
        @sleeping = false
      end

      def pending?
        !@incoming.empty? || !@closing.empty? || !@stalled.empty? || @hub.drive(&:ready?) || (@stopping && finished?)
      end

      def attend(monitor)
        subscriber = monitor.value
        unless monitor.writable? && @blocked.key?(subscriber)
          return listen(subscriber) if monitor.readable?
          return
        end
        @blocked.delete(subscriber)
        monitor.interests = :r
        @hub.drive { |engine| engine.writable(subscriber) }
        listen(subscriber) if monitor.readable?
      end

      # A subscriber has nothing to say; what is read is the end of the connection.
      def listen(subscriber)
        data = subscriber.connection.read_nonblock(4096, exception: false)
        return if data == :wait_readable
        heard = data ? subscriber.heard += data.bytesize : nil
        release(subscriber) if heard.nil? || heard > MAX_CHATTER
      rescue IOError, SystemCallError
        release(subscriber)
      end

      def pass_time(now)
        @hub.drive do |engine|
          engine.tick(now: now)
          @next_tick = [engine.next_tick || now + 1, now + 1].min
        end
        return if now < @next_second
        @next_second = now + 0.5
        time_out(now) if @write_timeout
        @tasks.each do |repeat|
          seconds, at, block = repeat
          next if now < at
          repeat[1] = now + seconds
          block.call
        end
      end

      # Monitors are the reactor thread's own, whoever found that a socket was full.
      def watch_stalled
        while (subscriber = @stalled.shift)
          monitor = @monitors[subscriber]
          monitor.interests = :rw if monitor && !monitor.closed? && @blocked.key?(subscriber)
        end
      end

      def time_out(now)
        late = @blocked.select { |_, since| since + @write_timeout <= now }
        late.each_key { |subscriber| release(subscriber) }
      end

      def close_closing
        until @closing.empty?
          subscriber = @closing.shift
          bid_farewell(subscriber)
          release(subscriber)
        end
      end

      # Between two events a client is told when to come back, behind what is on its way to it alone; within one nothing can
      # be said.
      def bid_farewell(subscriber)
        return if subscriber.offset > 0 || subscriber.blocked || subscriber.closing == :hung_up
        subscriber.connection&.write_nonblock(last_words(subscriber), exception: false)
      rescue IOError, SystemCallError
        nil
      end

      # Its end came before its connection.
      def refuse(subscriber, connection)
        connection.write_nonblock(last_words(subscriber), exception: false)
      ensure
        connection.close
      end

      # Under the hub's lock: what compresses them is shared.
      def last_words(subscriber)
        farewell = Hub::Event.retry_after(@hub.reconnection_delay)
        @hub.drive { subscriber.last_words(farewell) }
      end

      def release(subscriber)
        @blocked.delete(subscriber)
        @monitors.delete(subscriber)&.close
        subscriber.connection&.close
      rescue IOError, SystemCallError
        nil
      ensure
        @hub.unsubscribe(subscriber)
      end
    end
  end
end
