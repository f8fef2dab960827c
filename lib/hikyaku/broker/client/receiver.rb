# frozen_string_literal: true

require_relative "errors"
require_relative "worker"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # A subscription from which deliveries are taken, one at a time, by any thread or fibre. docs/protocol.md, section 7.
      #
      # As many as the credit permits are here before they are asked for; the client keeps their leases. Once one was
      # taken, its lease runs: touch it, or let {#work} do so. When nobody has taken one for the time of `timeout:`, because blocks hang or nobody
      # asks, what waits here goes back, and nothing more is delivered until somebody asks again.
      class Receiver
        include Enumerable

        # Seconds before a message is delivered again whose block has failed: 1, 2, 4 … 600.
        USUAL_DELAY = ->(delivery) { [2**[delivery.failures, 10].min, 600].min }
        # Seconds that a block may run: half an hour.
        USUAL_TIMEOUT = 1800
        # Seconds until it is said again that somebody is there, doubled each time, and those after which it is not.
        FIRST_PAUSE = 0.05
        LAST_PAUSE = 60
        private_constant :FIRST_PAUSE, :LAST_PAUSE

        # @return [String] name of the queue, or identity of the client whose own it is
        attr_reader :queue
        # @return [Integer] of the subscription
        # @api private
        attr_reader :number
        # @return [Integer] messages that may be out
        attr_reader :credit
        # @return [Integer] bytes that may be out; 0: any number
        attr_reader :credit_bytes

        # @param link [Link]
        # @param number [Integer]
        # @param queue [String]
        # @param own [Boolean] it is the client's own queue
        # @param credit [Integer]
        # @param credit_bytes [Integer]
        # @param lease [Integer] milliseconds; 0: the broker's usual
        # @param in_hand [Boolean] the broker is told when work on a message begins
        # @param timeout [Numeric, nil, false] seconds that a block of {#work} may run; nil or false: any number
        # @api private
        def initialize(link, number:, queue:, own:, credit:, credit_bytes:, lease:, in_hand:, timeout:)
          @link = link
          @number = number
          @queue = queue
          @own = own
          @credit = credit
          @credit_bytes = credit_bytes
          @lease = lease
          @in_hand = in_hand
          @timeout = timeout || nil
          @ready = []
          @pulled = []
          @arrived = ConditionVariable.new
          @waiting = 0
          @attended_at = now
        end

        # Takes the next delivery. What becomes of it is the caller's to say before its lease ends.
        #
        # @param timeout [Numeric, nil] seconds; nil: as long as it takes
        # @return [Delivery, nil] nil: the time is over, or the receiver is closed
        # @raise [Refused, Failure] there is no subscription any more
        def receive(timeout: nil) = take(timeout)

        # Takes one delivery after the other, until the receiver is closed.
        #
        # @yieldparam delivery [Delivery]
        # @return [self, Enumerator]
        # @raise [Refused, Failure] there is no subscription any more
        def each
          return to_enum unless block_given?
          while (delivery = receive)
            yield delivery
          end
          self
        end

        # Takes one delivery after the other, until the receiver is closed, and frees each when the block has done with it. When it
        # raises an error the message is rejected with class and message of that; when it is left in another way (`throw`,
        # a thread that is killed, the end of the process) the message is released. While it runs its lease is kept.
        # What the block says of a delivery itself counts.
        #
        # When a block runs longer than the receiver's `timeout:`, the message is rejected, so that another receiver gets it, and a {BlockTimeout} is
        # told. The block is not interrupted. When it ends later it frees nothing, and a {Stale} is told. A block that calls {Delivery#touch} has the time
        # anew.
        #
        # @param retry_in [Numeric, #call] seconds before a rejected message is delivered again, or what says so for a delivery
        # @param on_error [#call, nil] is told of errors of the block, with the delivery; of a {BlockTimeout} in a thread of its own. Where there is none,
        #   a {BlockTimeout} or {Stale} is told to the client's `on_error`, or else as a warning
        # @param idle [Numeric, nil] seconds without a delivery after which it returns; nil: it does not
        # @yieldparam delivery [Delivery]
        # @return [self]
        # @raise [Refused, Failure] there is no subscription any more
        def work(retry_in: USUAL_DELAY, on_error: nil, idle: nil, &block)
          worker = Worker.new(@link, timeout: @timeout, retry_in: retry_in, on_error: on_error)
          @link.attach(worker)
          while (delivery = take(idle, worker))
            worker.attend(delivery, &block)
          end
          self
        ensure
          @link.detach(worker) if worker
        end

        # @param messages [Integer] how many may be out from now on; 0: a pause
        # @return [Integer]
        def credit=(messages)
          raise ArgumentError, "credit is a whole number of messages, not #{messages.inspect}" unless messages.is_a?(Integer) && messages.between?(0, 0xFFFF_FFFF)
          @link.lock.synchronize { @credit = messages }
          @link.credit(self)
        end

        # Ends the subscription: nothing more is delivered, what nobody has taken goes back, and whoever waits is told.
        #
        # @return [void]
        def close = @link.unsubscribe(self)

        # @return [Boolean]
        def closed? = !!(@closed || @error)

        # @return [String]
        def inspect = "#<#{self.class.name} #{@queue.inspect}#{" closed" if closed?}>"

        # Waits until the broker has accepted the subscription.
        #
        # @param timeout [Numeric, nil] seconds
        # @return [self]
        # @raise [Refused, Unreachable]
        # @api private
        def await(timeout)
          deadline = now + timeout if timeout
          @link.lock.synchronize do
            until @opened
              raise Failure.again(@error) if @error
              left = deadline && deadline - now
              raise Unreachable, "the broker did not answer within #{timeout} seconds" if left && left <= 0
              @arrived.wait(@link.lock, left)
            end
          end
          self
        end

        # The methods below are called with the link's lock.

        # @return [String]
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

        # @param paused [Boolean] nothing is to be delivered until somebody asks
        # @api private
        attr_writer :paused

        # @return [Boolean]
        # @api private
        def paused? = !!@paused

        # @return [Integer] messages that may be out for the moment
        # @api private
        def offered_credit = @paused ? 0 : @credit

        # Somebody takes deliveries, or works on one and says so.
        #
        # @param time [Float]
        # @api private
        def attended(time)
          @attended_at = time
          @link.watch(limit_at)
        end

        # @return [Float, nil] when nobody will have taken anything for too long
        # @api private
        def limit_at = (@attended_at + @timeout if @timeout && @waiting.zero? && !@paused)

        # @api private
        def arrived(delivery)
          @ready << delivery
          @arrived.signal
        end

        # The connection is gone, and what it brought.
        #
        # @api private
        def lost = @ready.clear

        # @return [Array<Delivery>] that nobody has begun with
        # @api private
        def emptied = @ready.slice!(0..)

        # @return [Array<Delivery>] that nobody has begun with
        # @api private
        def ended
          @closed = true
          @arrived.broadcast
          emptied
        end

        # @api private
        def refused(error)
          @error = error
          @arrived.broadcast
        end

        private

        def take(timeout, worker = nil)
          raise Closed, "this receiver belongs to the process that this one was forked from" unless @link.owner == Process.pid
          deadline = now + timeout if timeout
          loop do
            delivery = ready(worker)
            if delivery.nil?
              # Before one waits, others are told what is done.
              @link.flush
              return unless wait(deadline)
            elsif !@in_hand || @link.in_hand(delivery)
              return delivery
            end
          end
        end

        def ready(worker)
          @link.lock.synchronize do
            resume if @paused
            delivery = @ready.shift or next
            time = now
            attended(time)
            if worker
              worker.begin(delivery, time)
              @link.watch(worker.limit_at)
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
          @link.say_credit(self)
        end

        # @return [Boolean] false: there will be nothing, or not in time
        def wait(deadline)
          @link.lock.synchronize do
            @waiting += 1
            while @ready.empty?
              return false if @closed
              raise Failure.again(@error) if @error
              time = now
              # First, so that it is said for one who never waits, too.
              ending = say_that_leases_ended(time)
              return false if deadline && deadline <= time
              soonest = [deadline, ending].compact.min
              @arrived.wait(@link.lock, soonest && soonest - time)
            end
          ensure
            @waiting -= 1
            attended(now)
          end
          true
        end

        # The broker passes over a receiver that lets a lease end, until it hears from it. Of a delivery that its taker has dropped it hears nothing.
        # By the broker's clock a lease may end a little later, and what is said before counts for nothing: so it is said again, ever later.
        #
        # @return [Float, nil] when there may be something to say
        def say_that_leases_ended(time)
          @pulled.delete_if(&:settled?)
          if @pulled.reject! { |delivery| delivery.lease_until < time }
            say_again(time, FIRST_PAUSE)
          elsif @say_at && @say_at <= time
            say_again(time, @pause * 2)
          end
          [@pulled.map(&:lease_until).min&.then { |at| at + 0.001 }, @say_at].compact.min
        end

        def say_again(time, pause)
          @link.say_credit(self)
          @pause = pause
          @say_at = (time + pause if pause < LAST_PAUSE)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
