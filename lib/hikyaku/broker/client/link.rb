# frozen_string_literal: true

require_relative "backoff"
require_relative "deliveries"
require_relative "errors"
require_relative "outbox"
require_relative "pending"
require_relative "resend"
require_relative "rhythm"
require_relative "session"
require_relative "link/connecting"
require_relative "link/incoming"
require_relative "link/limiting"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # What stays while connections come and go: what was sent and not answered, who receives, what is out.
      #
      #     callers ── register, gather ──►┐ one lock ┌◄── frames ── the reader's thread: connects, reads, connects again
      #                                    Outbox, Deliveries, Receivers
      #     callers, the pacer's thread ── flush ──► Session ──► socket
      #
      # The pacer writes what nobody waits for, touches leases at a third of them, and gives signs of life. Nobody holds the
      # lock while it speaks to the system. A message costs a frame and an entry; its acknowledgement a look-up.
      class Link
        include Connecting
        include Incoming
        include Limiting

        # Bytes at which who gathers writes, too.
        FLUSH_BYTES = 64 * 1024
        # FREEs that are gathered at most.
        FREES = 64
        # Ids of requests other than messages, whose ids are their numbers.
        IDS = 1 << 63
        private_constant :FLUSH_BYTES, :FREES, :IDS

        def self.milliseconds(seconds)
          return (seconds * 1000).round if seconds.is_a?(Numeric) && seconds >= 0 && seconds < 4_294_967
          raise ArgumentError, "expected seconds from 0 to 4294966, got #{seconds.inspect}"
        end

        attr_reader :lock
        attr_reader :owner

        def initialize(address, hello:, max_frame:, on_error: nil)
          @address = address
          @hello = hello
          @max_frame = max_frame
          @on_error = on_error
          @owner = Process.pid
          @lock = Mutex.new
          @changed = ConditionVariable.new
          @space = ConditionVariable.new
          @work = ConditionVariable.new
          @waiting = 0
          @outbox = Outbox.new(numbered: !hello.identity.empty?, known: hello.known?)
          @resend = Resend.new
          @deliveries = Deliveries.new
          @receivers = {}
          @workers = {}.compare_by_identity
          @asked = {}
          @subscribing = {}
          @last_id = IDS
          @backoff = Backoff.new
          @rhythm = Rhythm.new
          @at_least = 0
        end

        # Connects, and waits until that has worked.
        def open(timeout)
          @reader = start("reads") { run }
          @pacer = start("paces") { pace }
          deadline = timeout && now + timeout
          @lock.synchronize do
            until @welcome
              raise_over
              left = deadline && deadline - now
              raise Failure.again(@trouble) if left && left <= 0 && @trouble
              @changed.wait(@lock, (left if left&.positive?))
            end
          end
        end

        def connected? = @lock.synchronize { !@session.nil? }

        def failure = @lock.synchronize { @failure }

        # Registers messages of one frame, and sends it.
        def post(count:, bytes:, payload: nil, wait: true, soon: true, timeout: nil, &frame)
          pending = Pending.new(@lock, count: count, bytes: bytes, &frame).before_wait { flush }
          full = @lock.synchronize do
            raise_over
            raise Refused.too_big(bytes, payload, @welcome.max_frame) if @welcome && bytes > @welcome.max_frame
            make_space(count, bytes, wait, timeout)
            # That was so when it was made, and may have changed while it waited.
            return if apart?(count)
            transmit(@outbox.add(pending))
            wake if soon
            @session && @session.gathered_bytes > FLUSH_BYTES
          end
          flush if full
          pending
        end

        def batches? = @lock.synchronize { @outbox.batches? }

        def batch_limits = @lock.synchronize { [[@outbox.window_messages, 1024].min, @welcome ? [@welcome.max_frame, @welcome.window_bytes].min : 65_536] }

        def withdraw(pending)
          @lock.synchronize { @outbox.withdraw(pending).tap { |withdrawn| @resend.delete(pending) if withdrawn } }
        end

        # Asks something that is not asked again when the connection breaks.
        def ask(timeout)
          pending = @lock.synchronize do
            await_session(timeout)
            question { |id| yield id }
          end
          flush
          pending.value(timeout)
        end

        def subscribe(receiver)
          @lock.synchronize do
            raise_over
            @receivers[receiver.number] = receiver
            ask_for(receiver) if @session && !@draining
          end
          flush
        end

        # Nothing more is delivered to it, and what it has not begun goes back.
        def unsubscribe(receiver)
          @lock.synchronize do
            next unless @receivers.delete(receiver.number)
            @session&.gather(Wire.unsubscribe(subscription: receiver.number))
            give_back(receiver)
          end
          flush
        end

        def credit(receiver)
          @lock.synchronize { say_credit(receiver) }
          flush
        end

        def free(delivery, soon: true)
          full = @lock.synchronize do
            return false unless out?(delivery)
            delivery.state = :settled
            @deliveries.free(delivery.number)
            wake if soon
            @deliveries.freed_count >= FREES
          end
          flush if full
          true
        end

        def settle(delivery, wait:, &frame)
          told(delivery, wait, frame) do
            delivery.state = :settled
            @deliveries.remove(delivery.number)
          end
        end

        def touch(delivery, lease, wait:)
          told(delivery, wait, ->(id) { Wire.touch(first: delivery.number, id: id, lease: lease) }) do
            time = now
            seconds = lease.zero? ? delivery.lease : lease / 1000.0
            delivery.renew(time, seconds)
            @workers.each_key { |worker| worker.touched(delivery, time, seconds) }
            @receivers[delivery.subscription]&.attended(time)
          end
        end

        # Somebody begins with it: if that kills this process, the broker knows what did it. Said before it begins.
        def in_hand(delivery)
          @lock.synchronize do
            return false unless out?(delivery)
            @session.gather(Wire.receipt(id: delivery.number))
          end
          flush
          true
        end

        # Writes what was gathered, unless somebody is at it.
        def flush
          @session&.flush { gather_frees }
          @lock.synchronize { done_with_draining } if @draining
        end

        # No more deliveries; what nobody has begun with goes back.
        def quiesce
          @lock.synchronize do
            @quiescent = true
            @session&.gather(Wire.drain)
            @receivers.each_value { |receiver| give_back(receiver) }
            @receivers.clear
          end
          flush
        end

        # Waits for what was sent to be answered, and ends.
        def close(deadline)
          flush
          clean = @lock.synchronize do
            @changed.wait(@lock, deadline && deadline - now) until @failure || (@outbox.empty? && @asked.empty?) || (deadline && now >= deadline)
            @outbox.empty? && @asked.empty? && @failure.nil?
          end
          clean &&= all_read?(deadline)
          finish(Closed.new("the client is closed"))
          [@reader, @pacer].each { |thread| thread.join(1) unless thread.equal?(Thread.current) }
          clean
        end

        # The process that has made it goes on with the connection; this one knows nothing of it.
        def abandon
          @session&.abandon
        end

        private

        def start(what)
          Thread.new do
            Thread.current.name = "hikyaku broker client #{what}"
            Thread.current.report_on_exception = false
            yield
          rescue Exception => error # standard:disable Lint/RescueException
            # Nobody may wait for ever for a thread that is no more.
            finish(error.is_a?(Error) ? error : Failure.new("#{error.class}: #{error.message}"))
            raise unless error.is_a?(StandardError)
          end
        end

        # --- with the lock, from anywhere ---

        def raise_over = @failure && raise(Failure.again(@failure))

        def make_space(count, bytes, wait, timeout)
          deadline = now + timeout if timeout
          until apart?(count) || @outbox.fits?(count, bytes)
            raise WindowFull unless wait
            left = deadline && deadline - now
            raise Unreachable, "it was not sent within #{timeout} seconds: #{@session ? "what was sent before is not acknowledged" : @trouble&.message}" if left && left <= 0
            wait_for_space(left)
            raise_over
          end
        end

        def apart?(count) = count > 1 && !@outbox.batches?

        def wait_for_space(left)
          @waiting += 1
          @space.wait(@lock, left)
        ensure
          @waiting -= 1
        end

        # A broker that is about to stop takes nothing more.
        def transmit(pending)
          return unless @session && !@draining
          return @resend.push(pending) if @resend.waiting?
          put(pending)
        end

        def put(pending)
          pending.held = false
          pending.transmitted = true
          @session.gather(pending.frame)
        end

        def resend
          @resend.each_due { |pending| put(pending) } unless @draining
          wake
        end

        def await_session(timeout)
          deadline = now + timeout if timeout
          until @session
            raise_over
            left = deadline && deadline - now
            raise Unreachable, @trouble&.message || "there is no connection" if left && left <= 0
            @changed.wait(@lock, left)
          end
        end

        def question
          id = (@last_id += 1)
          @session.gather(yield(id))
          @asked[id] = Pending.new(@lock)
        end

        def answered(id, value) = @asked.delete(id)&.resolve(value)

        def ask_for(receiver)
          id = (@last_id += 1)
          @subscribing[id] = receiver
          @session.gather(receiver.frame(id))
        end

        # After a fork the connection is the parent's.
        def out?(delivery) = delivery.state == :out && !@session.nil? && delivery.session.equal?(@session) && @owner == Process.pid

        def told(delivery, wait, frame)
          pending = @lock.synchronize do
            return false unless out?(delivery)
            if wait
              asked = question { |id| frame.call(id) }
            else
              @session.gather(frame.call(0))
              wake
            end
            yield
            asked
          end
          return :unconfirmed unless pending
          flush
          pending.value
          true
        rescue Stale
          @lock.synchronize { delivery.state = :stale }
          false
        end

        def give_back(receiver)
          receiver.ended.each { |delivery| hand_back(delivery) }
          wake
        end

        def hand_back(delivery)
          return unless out?(delivery)
          delivery.state = :settled
          @deliveries.remove(delivery.number)
          @session.gather(Wire.nack(delivery: delivery.number))
        end

        def gather_frees
          @deliveries.frees.each { |frame| @session.gather(frame) } if @session && @deliveries.any_freed?
        end

        # --- the pacer's thread ---

        def pace
          until @failure
            overdue = nil
            session = @lock.synchronize do
              @work.wait(@lock, idle_seconds) unless @woken || @failure
              @woken = false
              tick(now)
              overdue = look(now)
              @session
            end
            report(overdue)
            session&.flush { gather_frees }
            @lock.synchronize { done_with_draining }
          end
        end

        def wake
          return if @woken
          @woken = true
          @work.signal
        end

        def idle_seconds
          due = [(@rhythm.due(@session) if @session), @look_at].compact.min
          due && [due - now, 0.001].max
        end

        def tick(time)
          return unless @session
          if @rhythm.touch?(time)
            gather_frees
            @deliveries.keep(time).each { |frame| @session.gather(frame) }
            @rhythm.touched(time, again: !@deliveries.none?)
          end
          @session.gather(Wire.ping(id: @last_id += 1)) if @rhythm.sign_of_life?(@session, time)
        end

        # What was in hand is done, and what was sent is answered: the connection can go.
        def done_with_draining
          return unless @draining && @session && @deliveries.none? && @asked.empty? && @outbox.quiet? && !@session.busy?
          @session.finish
        end

        # --- the end ---

        # Whatever was written before it has been read when a PING is answered. Nobody else has an identity that was made up, and everything
        # that was numbered has its answer: the broker need not remember it.
        def all_read?(deadline)
          pending = @lock.synchronize do
            next unless @session
            gather_frees
            @session.gather(Wire.forget) if @hello.made_up?
            question { |id| Wire.ping(id: id) }
          end
          return @lock.synchronize { @deliveries.none? } unless pending
          flush
          pending.value(deadline && [deadline - now, 0].max)
          true
        rescue Failure
          false
        end

        def finish(error)
          session = @lock.synchronize do
            return if @failure
            @failure = error
            @outbox.fail_all { |pending| (pending.transmitted && !pending.held) ? OutcomeUnknown.new("no answer came: #{error.message}") : error }
            @asked.each_value { |pending| pending.fail(error) }
            @asked.clear
            @receivers.each_value { |receiver| receiver.refused(error) }
            [@changed, @space, @work].each(&:broadcast)
            @session || @trying
          end
          session&.sever
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
