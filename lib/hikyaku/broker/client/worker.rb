# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Broker
    class Client
      # One call of {Receiver#work}: the delivery that its block has, and how long the block may run.
      #
      # When the time is over the pacer's thread calls {#give_up}, and another thread {#time_out}: the block itself is not interrupted.
      class Worker
        # What a block can fail with, and the process be none the worse: a method that is not there yet, too.
        FAILURES = [StandardError, ScriptError, SystemStackError].freeze
        # Seconds before a message is delivered again where `retry_in` fails.
        DELAY = 1
        private_constant :FAILURES, :DELAY

        def initialize(link, timeout:, retry_in:, on_error:)
          @link = link
          @timeout = timeout
          @retry_in = retry_in
          @on_error = on_error
        end

        # The methods from here to `touched` are called with the link's lock.

        attr_reader :limit_at

        def begin(delivery, time)
          @delivery = delivery
          @limit_at = (time + @timeout if @timeout)
        end

        # Lets the lease go if the block has run for too long.
        def give_up(time)
          delivery = @delivery
          return if delivery.nil? || @limit_at.nil? || time < @limit_at
          @limit_at = nil
          delivery.kept = false
          delivery
        end

        # The block has renewed the lease itself: it makes progress.
        def touched(delivery, time, lease)
          @limit_at = time + [@timeout, lease].max if @limit_at && delivery.equal?(@delivery)
        end

        # Runs the block, and says what becomes of the message.
        def attend(delivery)
          yield delivery
          freed = delivery.settled? || @link.free(delivery, soon: false)
        rescue *FAILURES => error
          delivery.reject("#{error.class}: #{error.message}", delay: delay(delivery))
          @on_error&.call(error, delivery)
        else
          late(delivery) unless freed
        ensure
          @delivery = @limit_at = nil
          delivery.release unless delivery.settled?
        end

        # The block has run for too long: the message is rejected, so that others get it.
        def time_out(delivery)
          seconds = retry_seconds(delivery)
          @link.time_out(delivery, "#{BlockTimeout}: the block ran longer than #{@timeout} seconds", seconds)
          return if delivery.settled?
          tell(BlockTimeout.new("the block for message #{delivery.id} of #{delivery.queue.inspect} has run for #{@timeout} seconds, as long as it may: " \
            "its lease is given up, and the message is delivered again, in #{seconds} seconds at the earliest; find out where the block hangs, call delivery.touch " \
            "while it makes progress, or give subscribe or receiver a longer timeout:"), delivery)
        end

        private

        def delay(delivery) = @retry_in.respond_to?(:call) ? @retry_in.call(delivery) : @retry_in

        def retry_seconds(delivery)
          delay(delivery)
        rescue => error
          tell(error, delivery)
          DELAY
        end

        # Whoever has closed the client knows what was still out.
        def late(delivery)
          return if @link.failure.is_a?(Closed)
          tell(Stale.new("the block for message #{delivery.id} of #{delivery.queue.inspect} has ended too late: #{delivery.why_stale}, so the message " \
            "was not freed and is delivered again; undo what must not be done twice, or refuse it by delivery.number", code: Wire::Code::STALE), delivery)
        end

        def tell(error, delivery) = @on_error ? @on_error.call(error, delivery) : @link.tell(error)
      end
    end
  end
end
