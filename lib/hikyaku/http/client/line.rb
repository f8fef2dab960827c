# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What all connections of a client share: the line before them, on which what comes for one waits behind what comes for the others. Bytes count,
      # and not seconds: how fast the line is, and for how long, nobody knows.
      class Line
        # @return [Integer] bytes that came over all connections
        attr_reader :brought
        # @return [Float] bytes of answers that are to come over all connections, about
        attr_reader :due
        # @return [Float] seconds of the monotonic clock, when something last came
        attr_reader :moved_at

        def initialize
          @brought = 0
          @due = 0.0
          @moved_at = -Float::INFINITY
        end

        # @param bytes [Integer] that came
        # @param now [Float] seconds of the monotonic clock
        # @return [void]
        def received(bytes, now)
          @brought += bytes
          @moved_at = now
        end

        # @param bytes [Float] that are to come, and were not before; negative where less is
        # @return [void]
        def expect(bytes) = @due += bytes
      end
    end
  end
end
