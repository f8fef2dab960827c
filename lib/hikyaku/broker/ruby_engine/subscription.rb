# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # A receiver's share in a queue, and its credit.
      class Subscription
        attr_reader :number, :session, :queue
        # Milliseconds.
        attr_reader :lease
        # Deliveries that are neither freed nor returned.
        attr_reader :out
        # Whether it has a suspect, and gets nothing else.
        attr_accessor :exclusive
        attr_accessor :ended
        # The newest delivery whose lease ended since the client was heard; nil: it is not passed over.
        attr_accessor :lapsed
        attr_accessor :credit, :credit_bytes

        def initialize(number, session, queue, credit, credit_bytes, lease)
          @number = number
          @session = session
          @queue = queue
          @credit = credit
          @credit_bytes = credit_bytes
          @lease = lease
          @out = @out_bytes = 0
          @exclusive = @ended = false
        end

        def free? = @out < @credit && !@exclusive && !@ended && !@lapsed && @session.takes_deliveries?

        # Whether the credit in bytes allows a message of so many. One message is always allowed.
        def affords?(bytes) = @credit_bytes.zero? || @out.zero? || @out_bytes + bytes <= @credit_bytes

        def pushed(bytes)
          @out += 1
          @out_bytes += bytes
        end

        def returned(bytes)
          @out -= 1
          @out_bytes -= bytes
          @exclusive = false
        end
      end
    end
  end
end
