# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # What keeps a segment of the journal: messages that stand in it, and older segments whose messages its records speak of.
      class Segment
        # @return [Integer]
        attr_reader :number
        # @return [Hash{Integer => Message}] that are not done with, by id
        attr_reader :live
        # @return [Hash{Integer => true}] segments that have to go before it
        attr_reader :speaks_of
        # @return [Integer] bytes of records of live messages
        attr_accessor :live_bytes
        # @return [Boolean] the journal was told that it is not needed
        attr_accessor :dropped

        def initialize(number)
          @number = number
          @live = {}
          @speaks_of = {}
          @live_bytes = 0
          @dropped = false
        end
      end
    end
  end
end
