# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # One hand-over of a message, and its lease.
      class Delivery
        # @return [Integer]
        attr_reader :id
        # @return [Message]
        attr_reader :message
        # @return [Subscription]
        attr_reader :subscription
        # @return [Float] when the lease ends
        attr_accessor :deadline
        # @return [Integer] in the timetable of leases
        attr_accessor :slot
        # @return [Boolean] the receiver has said that it has it in hand
        attr_accessor :held

        def initialize(id, message, subscription)
          @id = id
          @message = message
          @subscription = subscription
          @held = false
        end
      end
    end
  end
end
