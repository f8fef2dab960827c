# frozen_string_literal: true

module Hikyaku
  class Hub
    # Finds the feeds whose patterns select a topic, step by step. Between the steps the index may change. `step` needs no lock; `new`,
    # `complete?` and `each` need the lock of the index.
    class TopicSurvey
      # Steps of pattern programs: about two milliseconds.
      STEPS_PER_TURN = 16_384
      # The overhead of each pattern, in steps.
      STEPS_A_PATTERN = 10
      private_constant :STEPS_A_PATTERN

      attr_reader :topic

      def initialize(index, topic)
        @index = index
        @topic = topic
        @bytes = topic.value.bytesize + 1
        @generation = index.generation
        @candidates = index.candidates(topic)
        @done = 0
        @found = []
      end

      # Tests patterns until the steps are used up. Returns how many are left; below 0 if the last pattern took more.
      def step(steps)
        while steps > 0 && (feed = @candidates[@done])
          @done += 1
          steps -= @bytes * feed.cost + STEPS_A_PATTERN
          @found << feed if feed.matcher.match?(@topic)
        end
        steps
      end

      # Whether all patterns were tested, those included that were added meanwhile.
      def complete?
        return false if @done < @candidates.size
        return true if @generation == @index.generation
        @generation = @index.generation
        known = @candidates.to_h { |feed| [feed, true] }.compare_by_identity
        @candidates.concat(@index.candidates(@topic).reject { |feed| known.key?(feed) })
        @done == @candidates.size
      end

      # Tests the rest, and yields each selected feed that is still in the index.
      def each
        step(Float::INFINITY) until complete?
        @found.each { |feed| yield feed if feed.indexed }
      end

      def inspect = "#<#{self.class} #{@topic.value.inspect}>"
    end
  end
end
