# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # A receiver's share in a queue, and its credit.
      class Subscription
        # @return [Integer] chosen by the client
        attr_reader :number
        # @return [Session]
        attr_reader :session
        # @return [Queue]
        attr_reader :queue
        # @return [Integer] ms
        attr_reader :lease
        # @return [Integer] deliveries that are neither freed nor returned
        attr_reader :out
        # @return [Boolean] it has a suspect, and gets nothing else
        attr_accessor :alone
        # @return [Boolean] it is to get nothing more
        attr_accessor :ended
        # @return [Integer, nil] the newest delivery whose lease its connection let end, and has said nothing since: it is passed over
        attr_accessor :lapsed
        # @return [Integer]
        attr_accessor :credit, :credit_bytes

        def initialize(number, session, queue, credit, credit_bytes, lease)
          @number = number
          @session = session
          @queue = queue
          @credit = credit
          @credit_bytes = credit_bytes
          @lease = lease
          @out = @out_bytes = 0
          @alone = @ended = false
        end

        # @return [Boolean] it may have some message
        def free? = @out < @credit && !@alone && !@ended && !@lapsed && @session.takes_more?

        # @param bytes [Integer] of a message
        # @return [Boolean] the credit allows it
        def affords?(bytes) = @credit_bytes.zero? || @out.zero? || @out_bytes + bytes <= @credit_bytes

        # @param bytes [Integer]
        # @return [void]
        def handed(bytes)
          @out += 1
          @out_bytes += bytes
        end

        # @param bytes [Integer]
        # @return [void]
        def returned(bytes)
          @out -= 1
          @out_bytes -= bytes
          @alone = false
        end
      end
    end
  end
end
