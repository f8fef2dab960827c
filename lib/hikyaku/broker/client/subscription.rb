# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Broker
    class Client
      # A receiver whose deliveries are worked on by threads, as {Client#subscribe} makes it.
      class Subscription
        # @param receiver [Receiver]
        # @param concurrency [Integer] threads
        # @param options [Hash] of Receiver#work
        # @api private
        def initialize(receiver, concurrency:, **options, &block)
          @receiver = receiver
          @threads = Array.new(concurrency) do |index|
            Thread.new do
              Thread.current.name = "hikyaku #{receiver.queue[0, 40]} #{index}"
              Thread.current.report_on_exception = false
              receiver.work(**options, &block)
            rescue => error
              # The client's own are told to its on_error; of others nobody would know.
              Thread.current.report_on_exception = true unless error.is_a?(Failure)
              raise
            end
          end
        end

        # @return [String] the queue's name
        def queue = @receiver.queue

        # Waits until it was closed and its threads are done.
        #
        # @param timeout [Numeric, nil] seconds
        # @return [self, nil] nil: the time is over
        # @raise [Refused, Failure] the subscription has ended by itself
        def join(timeout = nil)
          deadline = now + timeout if timeout
          done = others.all? { |thread| thread.join(deadline && [deadline - now, 0].max) }
          self if done
        end

        # @param messages [Integer] how many may be out from now on; 0: a pause
        # @return [Integer]
        def credit=(messages)
          @receiver.credit = messages
        end

        # Takes nothing more, gives back what was not begun, and waits for what was.
        #
        # @param timeout [Numeric, nil] seconds
        # @return [Boolean] all of it was done in time
        def close(timeout: nil)
          @receiver.close
          !join(timeout).nil?
        end

        # @return [Boolean]
        def closed? = @receiver.closed?

        # @return [String]
        def inspect = "#<#{self.class.name} #{queue.inspect}, threads: #{@threads.size}#{" closed" if closed?}>"

        private

        # A block that closes its own subscription is not to wait for itself.
        def others = @threads - [Thread.current]

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
