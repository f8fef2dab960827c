# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # The time that the driver has told the engine last.
      class Clock
        # Seconds of a clock that only goes forward.
        attr_reader :now
        # Milliseconds since 1970.
        attr_accessor :wall

        def initialize(now, wall)
          @now = now
          @wall = wall
        end

        def advance(now, wall = @wall)
          @now = now if now > @now
          @wall = wall
        end
      end
    end
  end
end
