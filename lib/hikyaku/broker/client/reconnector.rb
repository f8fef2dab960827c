# frozen_string_literal: true

require_relative "errors"
require_relative "transport"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # The reading thread of a {Connection}: it connects, reads until the transport breaks, waits, and connects again, unless the
      # broker has refused the client for good.
      class Reconnector
        # Seconds before the next attempt: doubled with each failure. Half of it is random, so that clients that lost the same broker
        # do not return together.
        FIRST_PAUSE = 0.1
        MAX_PAUSE = 15.0
        private_constant :FIRST_PAUSE, :MAX_PAUSE

        # @return [Failure, nil] why the last attempt failed; nil while there is a connection
        attr_reader :last_error
        # The epoch of the client that has fenced this one.
        attr_writer :fenced_by
        # Seconds before which a draining broker wants no new connection.
        attr_writer :retry_after

        def initialize(connection, address, identity, max_frame:)
          @connection = connection
          @address = address
          @identity = identity
          @max_frame = max_frame
          @failures = 0
          @retry_after = 0
        end

        def run
          until @connection.failure
            error = connect_and_read
            next @connection.terminate(error) if final?(error)
            @last_error = error
            @connection.attempt_failed(error)
            @connection.pause(delay(error))
          end
        end

        # Called with the lock, when the broker has answered HELLO.
        def connected
          @failures = 0
          @last_error = nil
        end

        private

        # @return [Failure] why the transport ended
        def connect_and_read
          @was_connected = welcomed = false
          transport = Transport.connect(@address, lock: @connection.lock, max_frame: @max_frame)
          @connection.greet(transport, @identity.hello(@max_frame))
          transport.each_frames do |frames|
            welcomed ||= frames.first.is_a?(Wire::Frames::Welcome)
            @connection.receive(transport, frames)
          end
        rescue Transport::Broken => error
          Unreachable.new(welcomed ? "the connection to the broker at #{@address} broke: #{error.message}" : unreachable(error))
        rescue Wire::ProtocolError => error
          NotUnderstood.new("the server at #{@address} does not speak the broker's protocol: #{error.message}", retryable: true)
        rescue Failure => error
          error
        ensure
          @was_connected = @connection.disconnected(transport) if transport
        end

        def unreachable(error)
          "no broker answers at #{@address}: #{error.message}; start one (hikyaku broker), or say where it is (HIKYAKU_BROKER_ADDRESS)"
        end

        # A refused token may be replaced by a new one, and a client that is fenced before its first connection may have a clock that is
        # behind. No other permanent refusal passes by itself.
        def final?(error)
          return false unless error.is_a?(Refused) && !error.retryable? && !error.is_a?(StorageFailed)
          return false if error.is_a?(Fenced) && !@connection.welcome && @identity.advance_past(@fenced_by)
          !(error.is_a?(Unauthorized) && @identity.refreshable? && @was_connected)
        end

        def delay(error)
          longest = [FIRST_PAUSE * 2**[@failures, 20].min, MAX_PAUSE].min
          @failures += 1
          at_least = [@retry_after, error.retry_after || 0].max
          @retry_after = 0
          at_least + longest * (0.5 + rand / 2)
        end
      end
    end
  end
end
