# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "errors"
require_relative "retransmit_queue"
require_relative "send_window"

module Hikyaku
  module Broker
    class Client
      # The sending half of a {Connection}: it holds requests until the window has room, transmits them, and transmits them again over
      # a new connection.
      #
      # Every method is called with the connection's lock.
      class Sender
        include Support::Clock

        # Messages of a SEND_BATCH, and its bytes before the broker has said how many it accepts.
        MAX_BATCH = 1024
        BATCH_BYTES = 65_536
        private_constant :MAX_BATCH, :BATCH_BYTES

        def initialize(connection, numbered:, reused:)
          @connection = connection
          @window = SendWindow.new(numbered: numbered, reused: reused)
          @retransmits = RetransmitQueue.new
          @space = ConditionVariable.new
          @blocked = 0
        end

        # Numbers the request and enqueues its frame, or keeps it for the next connection.
        #
        # @return [Boolean] false: its messages need numbers that are not consecutive, so each needs a request of its own
        # @raise [WindowFull, Unreachable]
        def post(request, wait:, timeout:)
          wait_for_space(request, wait, timeout)
          # Other threads may have changed that since the batch was made.
          return false if split?(request)
          transmit(@window.add(request))
          true
        end

        # Takes back a request that was not transmitted.
        def withdraw(request)
          @window.withdraw(request).tap { |withdrawn| @retransmits.delete(request) if withdrawn }
        end

        def batches? = @window.batches?

        # @return [Array(Integer, Integer)] messages and bytes that a SEND_BATCH may have
        def batch_limits
          welcome = @connection.welcome
          [[@window.window_messages, MAX_BATCH].min, welcome ? [welcome.max_frame, welcome.window_bytes].min : BATCH_BYTES]
        end

        # Every request has its answer.
        def empty? = @window.empty?

        # No request waits for an answer from this connection.
        def quiet? = @window.quiet?

        def connected(welcome)
          @retransmits.reset(@window.connected(welcome))
          retransmit
        end

        def acknowledged(ack) = answered { @window.acknowledge(ack) }

        def refused(id, error) = answered { @window.refuse(id, error) }

        # Wakes the callers that wait for room in the window.
        def notify
          @space.broadcast if @blocked.positive?
        end

        def fail_all(error)
          @window.fail_all { |request| (request.transmitted && !request.held) ? OutcomeUnknown.new("no answer came: #{error.message}") : error }
          @space.broadcast
        end

        private

        def wait_for_space(request, wait, timeout)
          deadline = now + timeout if timeout
          until split?(request) || @window.fits?(request.count, request.bytes)
            raise WindowFull unless wait
            remaining = deadline && deadline - now
            raise Unreachable, "the message was not sent within #{timeout} seconds: #{obstacle}" if remaining && remaining <= 0
            block(remaining)
            @connection.check_open
          end
        end

        def split?(request) = request.count > 1 && !@window.batches?

        def obstacle
          @connection.transport ? "the broker has not acknowledged the messages before it" : @connection.last_error&.message || "there is no connection"
        end

        def block(seconds)
          @blocked += 1
          @space.wait(@connection.lock, seconds)
        ensure
          @blocked -= 1
        end

        # Some of the requests may have to be transmitted again.
        def answered
          before = @window.size
          again = yield
          @retransmits.answered([before - @window.size, 1].max)
          again.each { |request| transmit(request) }
          retransmit if @retransmits.any? || again.any?
        end

        # A draining broker accepts no messages.
        def transmit(request)
          return unless @connection.transport && !@connection.draining?
          @retransmits.any? ? @retransmits.push(request) : enqueue(request)
        end

        def retransmit
          @retransmits.each_due { |request| enqueue(request) } unless @connection.draining?
          @connection.schedule_flush
        end

        def enqueue(request)
          request.held = false
          request.transmitted = true
          @connection.transport.enqueue(request.frame)
        end
      end
    end
  end
end
