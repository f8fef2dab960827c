# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "errors"

module Hikyaku
  module Broker
    class Client
      # The result of a request that the broker has not answered yet, as {Client#send_async} returns it.
      class Pending
        include Support::Clock

        # @param lock [Mutex] of the connection
        # @api private
        def initialize(lock)
          @lock = lock
          @done = false
        end

        # Waits for the answer.
        #
        # @param timeout [Numeric, nil] seconds; nil: without a limit
        # @return [Receipt, Object]
        # @raise [Refused, OutcomeUnknown, Unreachable, Closed] why there is no result
        def value(timeout = nil)
          @lock.synchronize { wait(timeout) } or raise OutcomeUnknown.new("no answer came within #{timeout} seconds; the request is still under way", retryable: true)
          raise Failure.again(@error) if @error
          @value
        end

        # @return [Boolean] the answer has come
        def done? = @done

        # Called with the lock.
        #
        # @api private
        def resolve(value)
          @value = value
          complete
        end

        # Called with the lock.
        #
        # @api private
        def fail(error)
          return if @done
          @error = error
          complete
        end

        private

        def wait(timeout)
          deadline = now + timeout if timeout
          until @done
            remaining = deadline && deadline - now
            return false if remaining && remaining <= 0
            (@answered ||= ConditionVariable.new).wait(@lock, remaining)
          end
          true
        end

        def complete
          @done = true
          @answered&.broadcast
        end
      end
    end
  end
end
