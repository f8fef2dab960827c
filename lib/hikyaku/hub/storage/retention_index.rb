# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # Finds the oldest position whose update is not older than the retention allows, with one mark for each second in which there
      # were updates.
      class RetentionIndex
        # Milliseconds of updates that share a mark.
        SPAN = 1000
        # `newest` of the positions that were published within SPAN after `at`.
        Mark = Struct.new(:newest, :at)
        private_constant :SPAN, :Mark

        # age: seconds; nil or 0 for any age. clock: milliseconds since 1970.
        def initialize(age, clock)
          @age = age * 1000 if age&.positive?
          @clock = clock
          @marks = []
          @from = 0
        end

        # A clock that was set back makes no mark: the update counts as old as the one before it.
        def add(position, published_at)
          return unless @age
          if @marks.any? && published_at < @marks.last.at + SPAN
            @marks.last.newest = position
          else
            @marks << Mark.new(position, published_at)
          end
        end

        def from
          if @age
            limit = @clock.call - @age - SPAN
            @from = @marks.shift.newest + 1 while @marks.any? && @marks.first.at <= limit
          end
          @from
        end
      end
      private_constant :RetentionIndex
    end
  end
end
