# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Broker
    class Client
      # A request whose answer is still to come, as {Client#send_async} gives it for a message.
      class Pending
        # @return [Integer] under which its answer comes
        # @api private
        attr_accessor :number
        # @return [Integer] messages in it, each with a number
        # @api private
        attr_reader :count
        # @return [Integer] bytes of its frame
        # @api private
        attr_reader :bytes
        # @return [Integer] when it was registered, among its like
        # @api private
        attr_accessor :order
        # @return [Boolean] some earlier client may have used its number
        # @api private
        attr_accessor :doubtful
        # @return [Boolean] it was given to a connection
        # @api private
        attr_accessor :transmitted
        # @return [Boolean] the broker was about to stop and refused it: it waits for the next connection
        # @api private
        attr_accessor :held
        # @return [Boolean] it is to be sent when something before it has its answer
        # @api private
        attr_accessor :waiting

        # @return [Pending] itself, or that of which it is a part
        # @api private
        attr_reader :whole
        # @return [Integer] messages of the whole that come before it
        # @api private
        attr_reader :offset

        # @param lock [Mutex] that guards it
        # @param count [Integer]
        # @param bytes [Integer]
        # @param whole [Pending, nil] of which it is a part
        # @param offset [Integer] messages of the whole that come before it
        # @yieldparam number [Integer]
        # @yieldparam offset [Integer]
        # @yieldparam count [Integer]
        # @yieldreturn [String] its frame
        # @api private
        def initialize(lock, count: 1, bytes: 0, whole: nil, offset: 0, &frame)
          @lock = lock
          @count = count
          @bytes = bytes
          @whole = whole || self
          @offset = offset
          @frame = frame
          @done = false
        end

        # Waits for the answer.
        #
        # @param timeout [Numeric, nil] seconds; nil: as long as it takes
        # @return [Receipt, Object]
        # @raise [Refused, OutcomeUnknown, Unreachable, Closed] why there is none
        def value(timeout = nil)
          @before_wait&.call
          @lock.synchronize { finish(timeout) } or raise OutcomeUnknown.new("no answer came within #{timeout} seconds; the request is still under way", retryable: true)
          raise Failure.again(@error) if @error
          @value
        end

        # @return [Boolean] the answer is there
        def done? = @done

        # Does something before it waits: what was gathered is sent.
        #
        # @api private
        def before_wait(&block)
          @before_wait = block
          self
        end

        # The methods below are called with the lock.

        # @return [Boolean] whether it is done now
        # @api private
        def finish(timeout)
          deadline = now + timeout if timeout
          until @done
            left = deadline && deadline - now
            return false if left && left <= 0
            (@answered ||= ConditionVariable.new).wait(@lock, left)
          end
          true
        end

        # @return [String]
        # @api private
        def frame = @frame.call(@number, @offset, @count)

        # Some of its messages are sent in a frame of their own. The whole is done when each message has its result.
        #
        # @param from [Integer] messages of this one that come before
        # @param count [Integer]
        # @return [Pending] what is to be sent in its place
        # @api private
        def part(from, count)
          @whole.transmitted = true
          Pending.new(@lock, count: count, bytes: @bytes * count / @count, whole: @whole, offset: @offset + from, &@frame).tap { |part| part.order = @order }
        end

        # @param from [Integer] messages of this one that come before
        # @param results [Array<Receipt, Refused>]
        # @return [void]
        # @api private
        def collect(from, results)
          return @whole.collect(@offset + from, results) unless @whole.equal?(self)
          @results ||= Array.new(@count)
          @results[from, results.size] = results
          resolve(@results) if @results.all?
        end

        # @api private
        def resolve(value)
          return if @done
          @value = value
          over
          @whole.collect(@offset, value) unless @whole.equal?(self)
        end

        # @api private
        def fail(error)
          return if @done
          @error = error
          over
          return if @whole.equal?(self)
          error.is_a?(Refused) ? @whole.collect(@offset, Array.new(@count) { error }) : @whole.fail(error)
        end

        # @return [Array, nil] value and error
        # @api private
        def outcome = [@value, @error]

        private

        # The frame is not needed any more, and may hold much.
        def over
          @done = true
          @frame = @before_wait = nil
          @answered&.broadcast
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
