# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # One hand-over of a message to a subscription, and its lease.
      class Delivery
        attr_reader :id, :message, :subscription
        # Seconds of the engine's clock at which the lease ends.
        attr_accessor :deadline
        attr_accessor :lease_timer
        # Whether the receiver has acknowledged the PUSH: it works on the message.
        attr_accessor :started

        def initialize(id, message, subscription)
          @id = id
          @message = message
          @subscription = subscription
          @started = false
        end
      end
    end
  end
end
