# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What all connections of a client share: the line before them, on which what comes for one waits behind what comes for the others. Bytes count,
      # and not seconds: how fast the line is, and for how long, nobody knows.
      class AccessLink
        attr_reader :brought
        attr_reader :due
        attr_reader :moved_at

        def initialize
          @brought = 0
          @due = 0.0
          @moved_at = -Float::INFINITY
        end

        def received(bytes, now)
          @brought += bytes
          @moved_at = now
        end

        def expect(bytes) = @due += bytes
      end
    end
  end
end
