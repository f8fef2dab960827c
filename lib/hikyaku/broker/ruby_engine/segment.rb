# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # What keeps a segment of the journal: messages whose records are in it, and older segments whose messages its records mention.
      class Segment
        attr_reader :number
        # Messages by id.
        attr_reader :live
        # Numbers of segments that have to go before it, as keys.
        attr_reader :mentions
        # Bytes of the records of live messages.
        attr_accessor :live_bytes
        # Whether the journal was told that it is not needed.
        attr_accessor :dropped

        def initialize(number)
          @number = number
          @live = {}
          @mentions = {}
          @live_bytes = 0
          @dropped = false
        end
      end
    end
  end
end
