# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # Knows which updates are young enough to be kept, by a mark for each second in which there were any.
      class Youth
        # Milliseconds of updates that share a mark.
        SPAN = 1000
        private_constant :SPAN

        def initialize(age, clock)
          @age = age * 1000 if age&.positive?
          @clock = clock
          @marks = [] # the newest position of a span, and when that began
          @from = 0
        end

        def note(position, published_at)
          return unless @age
          # A clock that was set back makes no mark: what comes is as young as what was there.
          if @marks.any? && published_at < @marks.last.last + SPAN
            @marks.last[0] = position
          else
            @marks << [position, published_at]
          end
        end

        def from
          if @age
            limit = @clock.call - @age - SPAN
            @from = @marks.shift.first + 1 while @marks.any? && @marks.first.last <= limit
          end
          @from
        end
      end
      private_constant :Youth
    end
  end
end
