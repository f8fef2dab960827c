# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "errors"

module Hikyaku
  module Broker
    class Client
      # A receiver and the threads that process its deliveries, as {Client#subscribe} returns it.
      class Subscription
        include Support::Clock

        # @param concurrency [Integer] threads
        # @param options [Hash] of {Receiver#work}
        # @api private
        def initialize(receiver, concurrency:, **options, &block)
          @receiver = receiver
          @threads = Array.new(concurrency) do |index|
            Thread.new do
              Thread.current.name = "hikyaku #{receiver.queue[0, 40]} #{index}"
              Thread.current.report_on_exception = false
              receiver.work(**options, &block)
            rescue => error
              # The client reports its own errors to on_error. Other errors would go unnoticed.
              Thread.current.report_on_exception = true unless error.is_a?(Failure)
              raise
            end
          end
        end

        # @return [String] the name of the queue
        def queue = @receiver.queue

        # Waits until it is closed and its threads have ended.
        #
        # @param timeout [Numeric, nil] seconds
        # @return [self, nil] nil: they have not ended in time
        # @raise [Refused, Failure] the broker, or an error, has ended the subscription
        def join(timeout = nil)
          deadline = now + timeout if timeout
          done = others.all? { |thread| thread.join(deadline && [deadline - now, 0].max) }
          self if done
        end

        # @param messages [Integer] how many may be unsettled at once from now on; 0: a pause
        # @return [Integer]
        def credit=(messages)
          @receiver.credit = messages
        end

        # Takes no more deliveries, releases those that no block has begun with, and waits for the blocks that run.
        #
        # @param timeout [Numeric, nil] seconds
        # @return [Boolean] all blocks have ended in time
        def close(timeout: nil)
          @receiver.close
          !join(timeout).nil?
        end

        # @return [Boolean]
        def closed? = @receiver.closed?

        # @return [String]
        def inspect = "#<#{self.class.name} #{queue.inspect}, threads: #{@threads.size}#{" closed" if closed?}>"

        private

        # A block that closes its own subscription must not wait for itself.
        def others = @threads - [Thread.current]
      end
    end
  end
end
