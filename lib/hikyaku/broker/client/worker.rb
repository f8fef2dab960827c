# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Broker
    class Client
      # One call of {Receiver#work}: the delivery that its block works on, and how long the block may run.
      #
      # When that time is over, the connection's timer thread calls {#overdue}, and a thread of its own {#time_out}. The block itself is not
      # interrupted.
      class Worker
        # A block may raise these without harm to the process.
        FAILURES = [StandardError, ScriptError, SystemStackError].freeze
        # Seconds before a message is delivered again when `retry_in` raises.
        FALLBACK_DELAY = 1
        private_constant :FAILURES, :FALLBACK_DELAY

        def initialize(consumer, timeout:, retry_in:, on_error:)
          @consumer = consumer
          @timeout = timeout
          @retry_in = retry_in
          @on_error = on_error
        end

        # The methods from here to `touched` are called with the connection's lock.

        attr_reader :limit_at

        def begin(delivery, time)
          @delivery = delivery
          @limit_at = (time + @timeout if @timeout)
        end

        # Stops renewing the lease of a block that has run for too long.
        def overdue(time)
          delivery = @delivery
          return if delivery.nil? || @limit_at.nil? || time < @limit_at
          @limit_at = nil
          delivery.kept = false
          delivery
        end

        # The block has renewed the lease itself, so it makes progress.
        def touched(delivery, time, lease)
          @limit_at = time + [@timeout, lease].max if @limit_at && delivery.equal?(@delivery)
        end

        # Runs the block, and settles the delivery.
        def process(delivery)
          yield delivery
          acked = delivery.settled? || @consumer.ack(delivery)
        rescue *FAILURES => error
          delivery.reject("#{error.class}: #{error.message}", delay: delay(delivery))
          @on_error&.call(error, delivery)
        else
          report_late(delivery) unless acked
        ensure
          @delivery = @limit_at = nil
          delivery.release unless delivery.settled?
        end

        def time_out(delivery)
          seconds = retry_seconds(delivery)
          @consumer.time_out(delivery, "#{BlockTimeout}: the block ran longer than #{@timeout} seconds", Wire.milliseconds(seconds))
          return if delivery.settled?
          report(BlockTimeout.new("the block for message #{delivery.id} of #{delivery.queue.inspect} has run for #{@timeout} seconds, which is its limit: " \
            "the client has given up the lease, and the broker delivers the message again after #{seconds} seconds or later; find out where the block hangs, " \
            "call delivery.touch while it makes progress, or give subscribe or receiver a longer timeout:"), delivery)
        end

        private

        def delay(delivery) = @retry_in.respond_to?(:call) ? @retry_in.call(delivery) : @retry_in

        def retry_seconds(delivery)
          delay(delivery)
        rescue => error
          report(error, delivery)
          FALLBACK_DELAY
        end

        # A program that closes the client knows which blocks still run.
        def report_late(delivery)
          return if @consumer.closed?
          report(Stale.new("the block for message #{delivery.id} of #{delivery.queue.inspect} has ended too late: #{delivery.why_stale}. The client could not " \
            "acknowledge the message, and the broker delivers it again; undo what must not be done twice, or use delivery.number to refuse the second write",
            code: Wire::Code::STALE), delivery)
        end

        def report(error, delivery) = @on_error ? @on_error.call(error, delivery) : @consumer.report(error)
      end
    end
  end
end
