# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "errors"
require_relative "worker"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # A subscription from which deliveries are taken, one at a time, by any thread or fibre. docs/protocol.md, section 7.
      #
      # The broker delivers as many messages in advance as the credit permits, and the client renews their leases. The lease of a delivery
      # that was taken runs: touch it, or let {#work} renew it. When no delivery was taken for the time of `timeout:`, because blocks hang or
      # the program does not ask, the client returns those that wait, and the broker delivers nothing until the program asks again.
      class Receiver
        include Support::Clock
        include Enumerable

        # Seconds before the message of a failed block is delivered again: 1, 2, 4 … 600.
        DEFAULT_RETRY_DELAY = ->(delivery) { [2**[delivery.failures, 10].min, 600].min }
        # Seconds that a block may run: half an hour.
        DEFAULT_TIMEOUT = 1800
        # Seconds between two reports of ended leases, doubled each time up to the limit.
        FIRST_REPORT = 0.05
        MAX_REPORT = 60
        private_constant :FIRST_REPORT, :MAX_REPORT

        # @return [String] name of the queue, or the identity of the client whose own queue it is
        attr_reader :queue
        # @return [Integer] of the subscription
        # @api private
        attr_reader :number
        # @return [Integer] messages that may be unsettled at once
        attr_reader :credit
        # @return [Integer] bytes that may be unsettled at once; 0: any number
        attr_reader :credit_bytes

        # @param own [Boolean] it is the client's own queue
        # @param lease [Integer] milliseconds; 0: the broker's default
        # @param report_start [Boolean] the broker is told when work on a message begins
        # @param timeout [Numeric, nil, false] seconds that a block of {#work} may run; nil or false: any number
        # @api private
        def initialize(consumer, number:, queue:, own:, credit:, credit_bytes:, lease:, report_start:, timeout:)
          @consumer = consumer
          @number = number
          @queue = queue
          @own = own
          @credit = credit
          @credit_bytes = credit_bytes
          @lease = lease
          @report_start = report_start
          @timeout = timeout || nil
          @ready = []
          @pulled = []
          @arrived = ConditionVariable.new
          @waiting = 0
          @attended_at = now
        end

        # Takes the next delivery. The caller has to settle it before its lease ends.
        #
        # @param timeout [Numeric, nil] seconds; nil: as long as it takes
        # @return [Delivery, nil] nil: none came in time, or the receiver is closed
        # @raise [Refused, Failure] the subscription has ended
        def receive(timeout: nil) = take(timeout)

        # Takes one delivery after the other, until the receiver is closed.
        #
        # @yieldparam delivery [Delivery]
        # @return [self, Enumerator]
        # @raise [Refused, Failure] the subscription has ended
        def each
          return to_enum unless block_given?
          while (delivery = receive)
            yield delivery
          end
          self
        end

        # Takes one delivery after the other, until the receiver is closed, and acknowledges each when the block returns. When the block
        # raises an error, the message is rejected with the class and message of the error. When the block is left in another way (`throw`,
        # a killed thread, the end of the process), the message is released. The client renews the lease while the block runs. A delivery
        # that the block settles itself stays so.
        #
        # When a block runs longer than the receiver's `timeout:`, the message is rejected, so that another receiver gets it, and `on_error` gets a
        # {BlockTimeout}. The block is not interrupted. When it ends later, it acknowledges nothing, and `on_error` gets a {Stale}. Each
        # {Delivery#touch} starts the time again.
        #
        # @param retry_in [Numeric, #call] seconds before a rejected message is delivered again, or a callable that returns them for a delivery
        # @param on_error [#call, nil] gets each error of the block, and the delivery; a {BlockTimeout} in a thread of its own. Without it, a
        #   {BlockTimeout} or {Stale} goes to the client's `on_error`, or becomes a warning
        # @param idle [Numeric, nil] seconds without a delivery after which it returns; nil: it does not
        # @yieldparam delivery [Delivery]
        # @return [self]
        # @raise [Refused, Failure] the subscription has ended
        def work(retry_in: DEFAULT_RETRY_DELAY, on_error: nil, idle: nil, &block)
          worker = Worker.new(@consumer, timeout: @timeout, retry_in: retry_in, on_error: on_error)
          @consumer.attach(worker)
          while (delivery = take(idle, worker))
            worker.process(delivery, &block)
          end
          self
        ensure
          @consumer.detach(worker) if worker
        end

        # @param messages [Integer] how many may be unsettled at once from now on; 0: a pause
        # @return [Integer]
        def credit=(messages)
          raise ArgumentError, "credit is a whole number of messages, not #{messages.inspect}" unless messages.is_a?(Integer) && messages.between?(0, 0xFFFF_FFFF)
          @consumer.lock.synchronize do
            @credit = messages
            @consumer.send_credit(self)
          end
          @consumer.flush
        end

        # Ends the subscription: the broker delivers nothing more, deliveries that were not taken are released, and calls that wait return.
        #
        # @return [void]
        def close = @consumer.unsubscribe(self)

        # @return [Boolean]
        def closed? = !!(@closed || @error)

        # @return [String]
        def inspect = "#<#{self.class.name} #{@queue.inspect}#{" closed" if closed?}>"

        # Waits until the broker has accepted the subscription.
        #
        # @param timeout [Numeric, nil] seconds
        # @raise [Refused, Unreachable]
        # @api private
        def await(timeout)
          deadline = now + timeout if timeout
          @consumer.lock.synchronize do
            until @opened
              raise Failure.again(@error) if @error
              left = deadline && deadline - now
              raise Unreachable, "the broker did not answer within #{timeout} seconds" if left && left <= 0
              @arrived.wait(@consumer.lock, left)
            end
          end
          self
        end

        # The methods below are called with the connection's lock.

        # @api private
        def frame(id)
          Wire.subscribe(subscription: @number, name: @own ? "" : @queue, id: id, kind: @own ? 1 : 0, credit: offered_credit,
            credit_bytes: @credit_bytes, lease: @lease)
        end

        # @api private
        def opened
          @opened = true
          attended(now)
          @arrived.broadcast
        end

        # @param paused [Boolean] nothing is delivered until the program asks again
        # @api private
        attr_writer :paused

        # @api private
        def paused? = !!@paused

        # @return [Integer] the credit that the broker is given
        # @api private
        def offered_credit = @paused ? 0 : @credit

        # The program takes deliveries, or touches one that it works on.
        #
        # @api private
        def attended(time)
          @attended_at = time
          @consumer.watch(limit_at)
        end

        # @return [Float, nil] when the program will have taken nothing for too long
        # @api private
        def limit_at = (@attended_at + @timeout if @timeout && @waiting.zero? && !@paused)

        # @api private
        def arrived(delivery)
          @ready << delivery
          @arrived.signal
        end

        # The deliveries of a broken connection are void.
        #
        # @api private
        def disconnected = @ready.clear

        # @return [Array<Delivery>] those that were not taken
        # @api private
        def withdraw_waiting = @ready.slice!(0..)

        # @return [Array<Delivery>] those that were not taken
        # @api private
        def finish
          @closed = true
          @arrived.broadcast
          withdraw_waiting
        end

        # @api private
        def fail(error)
          @error = error
          @arrived.broadcast
        end

        private

        def take(timeout, worker = nil)
          raise Closed, "this receiver belongs to the process that this one was forked from" unless @consumer.owner == Process.pid
          deadline = now + timeout if timeout
          loop do
            delivery = ready(worker)
            if delivery.nil?
              # The broker gets the acknowledgements before this thread waits.
              @consumer.flush
              return unless wait(deadline)
            elsif !@report_start || @consumer.start(delivery)
              return delivery
            end
          end
        end

        def ready(worker)
          @consumer.lock.synchronize do
            resume if @paused
            delivery = @ready.shift or next
            time = now
            attended(time)
            if worker
              worker.begin(delivery, time)
              @consumer.watch(worker.limit_at)
            else
              delivery.kept = false
              @pulled << delivery
            end
            delivery
          end
        end

        def resume
          @paused = false
          attended(now)
          @consumer.send_credit(self)
        end

        # @return [Boolean] false: none came in time, or the receiver is closed
        def wait(deadline)
          @consumer.lock.synchronize do
            @waiting += 1
            while @ready.empty?
              return false if @closed
              raise Failure.again(@error) if @error
              time = now
              # Before the deadline counts, so that a caller who never waits reports it as well.
              next_report = report_ended_leases(time)
              return false if deadline && deadline <= time
              soonest = [deadline, next_report].compact.min
              @arrived.wait(@consumer.lock, soonest && soonest - time)
            end
          ensure
            @waiting -= 1
            attended(now)
          end
          true
        end

        # The broker passes over a receiver that lets a lease end, until it hears from it. CREDIT tells it of a delivery that the program dropped.
        # A CREDIT before the end of the lease has no effect, and the broker's timers are coarser: therefore CREDIT is repeated.
        #
        # @return [Float, nil] when there may be something to report
        def report_ended_leases(time)
          @pulled.delete_if(&:settled?)
          if @pulled.reject! { |delivery| delivery.lease_until < time }
            report_again(time, FIRST_REPORT)
          elsif @report_at && @report_at <= time
            report_again(time, @report_interval * 2)
          end
          [@pulled.map(&:lease_until).min&.then { |at| at + 0.001 }, @report_at].compact.min
        end

        def report_again(time, interval)
          @consumer.send_credit(self)
          @report_interval = interval
          @report_at = (time + interval if interval < MAX_REPORT)
        end
      end
    end
  end
end
