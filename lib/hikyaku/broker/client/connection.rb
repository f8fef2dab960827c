# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "consumer"
require_relative "errors"
require_relative "pending"
require_relative "reconnector"
require_relative "sender"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # The client's side of the protocol. A connection outlives its transports: it reconnects, and its halves go on where they were.
      #
      #     callers ────► Sender, Consumer ─── enqueue ───► Transport ── flush ──► socket
      #                        ▲                                                     │
      #                        └──────── receive ◄── Reconnector's thread ◄──────────┘
      #
      # A frame has one way out. Under the lock it is enqueued; then {#flush} writes what is enqueued, without the lock. A caller that waits
      # for the answer flushes itself. For the others {#flush_later} wakes the timer thread, which flushes after whatever gathers
      # meanwhile. That thread also renews leases, sends PING and ends blocks that run for too long.
      class Connection
        include Support::Clock

        # Buffered bytes at which a caller that does not wait flushes, too.
        FLUSH_BYTES = 64 * 1024
        # Ids above the numbers of messages, which are ids as well.
        FIRST_ID = 1 << 63
        private_constant :FLUSH_BYTES, :FIRST_ID

        attr_reader :lock, :owner, :consumer
        # The transport on which the broker has answered HELLO, and that answer; the answer stays when the transport breaks.
        attr_reader :transport, :welcome
        # Why the connection has ended for good.
        attr_reader :failure

        def initialize(address, identity:, max_frame:, on_error: nil)
          @identity = identity
          @on_error = on_error
          @owner = Process.pid
          @lock = Mutex.new
          @changed = ConditionVariable.new
          @timer = ConditionVariable.new
          @requests = {}
          @last_id = FIRST_ID
          @sender = Sender.new(self, numbered: !identity.none?, reused: identity.chosen?)
          @consumer = Consumer.new(self)
          @reconnector = Reconnector.new(self, address, identity, max_frame: max_frame)
        end

        # Starts the threads, and waits for the first connection.
        #
        # @raise [Failure] why there is none within the time
        def open(timeout)
          @reading = start("reads") { @reconnector.run }
          @timing = start("timers") { run_timers }
          deadline = timeout && now + timeout
          @lock.synchronize do
            until @welcome
              check_open
              remaining = deadline && deadline - now
              raise Failure.again(last_error) if remaining && remaining <= 0 && last_error
              @changed.wait(@lock, (remaining if remaining&.positive?))
            end
          end
        end

        def connected? = @lock.synchronize { !@transport.nil? }

        # --- the calls of a client ---

        # Enqueues messages. They are written by the next flush.
        #
        # @return [Boolean] false: the messages need numbers that are not consecutive, so each needs a request of its own
        def post(request, wait: true, timeout: nil)
          full = @lock.synchronize do
            check_open
            raise Refused.too_big(request.bytes, request.payload_bytes, @welcome.max_frame) if @welcome && request.bytes > @welcome.max_frame
            return false unless @sender.post(request, wait: wait, timeout: timeout)
            @transport && @transport.buffered_bytes > FLUSH_BYTES
          end
          flush if full
          true
        end

        def batches? = @lock.synchronize { @sender.batches? }

        def batch_limits = @lock.synchronize { @sender.batch_limits }

        # Takes back a request that was not transmitted.
        def withdraw(request) = @lock.synchronize { @sender.withdraw(request) }

        # Sends a request, and waits for the answer. It is not repeated when the transport breaks.
        #
        # @yieldreturn [String] the frame
        def request(timeout, &frame)
          pending = @lock.synchronize do
            await_transport(timeout)
            enqueue_request(&frame)
          end
          flush
          pending.value(timeout)
        end

        # Writes what is enqueued. A thread that is writing already writes this, too.
        def flush
          transport = @transport and write(transport)
          @lock.synchronize { finish_draining } if @draining
        end

        def flush_later
          @lock.synchronize { schedule_flush } unless @flush_scheduled
        end

        # Receives no more deliveries, and returns those that no block has begun with.
        def drain
          @lock.synchronize do
            @quiescent = true
            @transport&.enqueue(Wire.drain)
            @consumer.close_receivers
          end
          flush
        end

        # Waits for the answers to what was sent, and closes.
        #
        # @return [Boolean] every request has its answer, and the broker has read everything
        def close(deadline)
          flush
          answered = @lock.synchronize do
            @changed.wait(@lock, deadline && deadline - now) until @failure || idle? || (deadline && now >= deadline)
            idle? && @failure.nil?
          end
          clean = answered && all_read?(deadline)
          terminate(Closed.new("the client is closed"))
          [@reading, @timing].each { |thread| thread.join(1) unless thread.equal?(Thread.current) }
          clean
        end

        # Closes the socket in a forked child: the parent goes on with the connection.
        def abandon
          @transport&.abandon
        end

        # --- for the halves and the reconnector; with the lock, unless it says otherwise ---

        def draining? = @draining

        # Why there is no transport.
        def last_error = @reconnector.last_error

        def check_open = @failure && raise(Failure.again(@failure))

        def next_id = @last_id += 1

        def enqueue_request
          id = next_id
          @transport.enqueue(yield(id))
          @requests[id] = Pending.new(@lock)
        end

        def schedule_flush
          return if @flush_scheduled
          @flush_scheduled = true
          @timer.signal
        end

        # Reports an error that no caller waits for. Without the lock.
        def report(error) = @on_error ? @on_error.call(error) : warn("hikyaku: #{error.message}")

        # Sends HELLO. Without the lock.
        def greet(transport, hello)
          @lock.synchronize do
            @connecting = transport
            transport.enqueue(hello)
          end
          write(transport)
        end

        # Handles the frames of one read. Without the lock.
        #
        # @raise [Failure] the broker has ended the connection
        def receive(transport, frames)
          fatal = nil
          errors = []
          @lock.synchronize do
            time = now
            frames.each { |frame| fatal ||= dispatch(transport, frame, time, errors) }
            @sender.notify
            @changed.broadcast if @sender.empty?
            finish_draining
          end
          errors.each { |error| @on_error&.call(error) }
          raise fatal if fatal
        end

        # Ends what belongs to a transport that broke. Without the lock.
        #
        # @return [Boolean] the broker had answered HELLO on it
        def disconnected(transport)
          was_connected = @lock.synchronize do
            current = @transport.equal?(transport)
            @transport = @connecting = nil
            @draining = false
            @consumer.disconnected
            requests = @requests.values
            @requests.clear
            requests.each { |pending| pending.fail(OutcomeUnknown.new("the connection broke before the answer came", retryable: true)) }
            @changed.broadcast
            current
          end
          transport.close
          was_connected
        end

        # Without the lock.
        def attempt_failed(error)
          failed = @lock.synchronize do
            @changed.broadcast
            @failure
          end
          @on_error&.call(error) unless failed
        end

        # Waits, or until the connection is closed. Without the lock.
        def pause(seconds)
          deadline = now + seconds
          @lock.synchronize { @changed.wait(@lock, deadline - now) until @failure || now >= deadline }
        end

        # Ends the connection for good. Without the lock.
        def terminate(error)
          transport = @lock.synchronize do
            return if @failure
            @failure = error
            @sender.fail_all(error)
            @requests.each_value { |pending| pending.fail(error) }
            @requests.clear
            @consumer.fail_all(error)
            [@changed, @timer].each(&:broadcast)
            @transport || @connecting
          end
          transport&.abort
        end

        private

        def start(role)
          Thread.new do
            Thread.current.name = "hikyaku broker client #{role}"
            Thread.current.report_on_exception = false
            yield
          rescue Exception => error # standard:disable Lint/RescueException
            # A caller must not wait for a thread that has ended.
            terminate(error.is_a?(Error) ? error : Failure.new("#{error.class}: #{error.message}"))
            raise unless error.is_a?(StandardError)
          end
        end

        def write(transport)
          while (bytes = @lock.synchronize { take(transport) })
            transport.write(bytes)
          end
        end

        # Acknowledgements are enqueued last, so that one frame covers as many as possible.
        def take(transport)
          return if transport.writing?
          @consumer.enqueue_acks
          transport.take
        end

        def idle? = @sender.empty? && @requests.empty?

        def await_transport(timeout)
          deadline = now + timeout if timeout
          until @transport
            check_open
            remaining = deadline && deadline - now
            raise Unreachable, last_error&.message || "there is no connection" if remaining && remaining <= 0
            @changed.wait(@lock, remaining)
          end
        end

        # --- the frames of the broker, with the lock ---

        # @return [Failure, nil] why the connection has to end
        def dispatch(transport, frame, time, errors)
          case frame
          when Wire::Frames::Push then @consumer.pushed(frame, time)
          when Wire::Frames::Ack then acknowledged(frame)
          when Wire::Frames::Error then return refused(frame, errors)
          when Wire::Frames::Report then answered(frame.id, frame.document)
          when Wire::Frames::Ping
            transport.enqueue(Wire.receipt(id: frame.id))
            schedule_flush
          when Wire::Frames::Receipt then answered(frame.id, true)
          when Wire::Frames::Welcome then welcomed(transport, frame)
          when Wire::Frames::Draining then broker_drains(frame)
          end
          nil
        end

        def welcomed(transport, welcome)
          raise NotUnderstood.new("the broker has answered HELLO twice", retryable: true) if @transport
          @welcome = welcome
          @transport = transport
          @connecting = nil
          transport.heartbeat = welcome.heartbeat / 1000.0
          @reconnector.connected
          transport.enqueue(Wire.drain) if @quiescent
          @consumer.connected
          @sender.connected(welcome)
          @changed.broadcast
        end

        def acknowledged(ack)
          case ack.request
          when Wire::Type::SEND, Wire::Type::SEND_BATCH then @sender.acknowledged(ack)
          when Wire::Type::SUBSCRIBE then @consumer.subscribed(ack.id)
          else answered(ack.id, ack)
          end
        end

        def answered(id, value) = @requests.delete(id)&.resolve(value)

        def refused(frame, errors)
          error = Refused.of(frame.code, frame.sentence, retryable: frame.later?, retry_after: (frame.retry_after / 1000.0 if frame.retry_after.positive?))
          errors << stale(frame) if error.is_a?(Stale) && !@consumer.stale(frame.delivery) && frame.id.zero?
          @reconnector.fenced_by = frame.delivery if error.is_a?(Fenced)
          if (pending = @requests.delete(frame.id))
            pending.fail(error)
          elsif @consumer.refused(frame, error)
            # The threads of a subscription end with it, and the program may never join them.
            errors << error if frame.ends_subscription?
          elsif !frame.ends_connection?
            # At the end of a connection it is unknown whether the message was accepted.
            @sender.refused(frame.id, error)
          end
          error if frame.ends_connection?
        end

        # The delivery was settled without waiting for the answer.
        def stale(frame)
          Stale.new("the broker has refused to settle delivery #{frame.delivery}: #{frame.sentence.to_s.scrub("?")}; it delivers the message again", code: frame.code)
        end

        def broker_drains(frame)
          @draining = true
          @reconnector.retry_after = frame.retry_after / 1000.0
          @consumer.release_waiting
        end

        # The transport is closed when nothing is under way on it.
        def finish_draining
          return unless @draining && @transport && @consumer.empty? && @requests.empty? && @sender.quiet? && !@transport.busy?
          @transport.close_write
        end

        # --- the timer thread ---

        def run_timers
          until @failure
            overdue = @lock.synchronize do
              @timer.wait(@lock, seconds_until_due) unless @flush_scheduled || @failure
              @flush_scheduled = false
              time = now
              keep_alive(time) if @transport
              @consumer.overdue(time)
            end
            overdue.each { |worker, delivery| time_out(worker, delivery) }
            flush
          end
        end

        def seconds_until_due
          due = [@consumer.due_at, @transport&.ping_at].compact.min
          due && [due - now, 0.001].max
        end

        def keep_alive(time)
          @consumer.renew_leases(time)
          @transport.enqueue(Wire.ping(id: next_id)) if @transport.ping_at&.<=(time)
        end

        # It calls code of the program, which may block.
        def time_out(worker, delivery)
          Thread.new do
            Thread.current.name = "hikyaku block timeout"
            worker.time_out(delivery)
            flush
          end
        end

        # The broker answers PING after it has read everything before. A generated identity is not used again, and all that it has numbered
        # is answered: the broker need not remember it.
        def all_read?(deadline)
          pending = @lock.synchronize do
            next unless @transport
            @consumer.enqueue_acks
            @transport.enqueue(Wire.forget) if @identity.forgettable?
            enqueue_request { |id| Wire.ping(id: id) }
          end
          return @lock.synchronize { @consumer.empty? } unless pending
          flush
          pending.value(deadline && [deadline - now, 0].max)
          true
        rescue Failure
          false
        end
      end
    end
  end
end
