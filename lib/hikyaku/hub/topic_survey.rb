# frozen_string_literal: true

module Hikyaku
  class Hub
    # Finds the feeds whose patterns select a topic, in pieces: between them others may use the index and change it. Each piece may
    # be done without the lock of whoever has the index; to begin and to end takes it.
    class TopicSurvey
      # Steps of programs that one piece takes: about two milliseconds.
      STEPS_PER_TURN = 16_384
      # What a pattern costs beside its own steps.
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

      # Tests patterns until so many steps are used up, and one more than fits.
      def step(steps)
        while steps > 0 && (feed = @candidates[@done])
          @done += 1
          steps -= @bytes * feed.cost + STEPS_A_PATTERN
          @found << feed if feed.matcher.match?(@topic)
        end
        steps
      end

      # Looks for patterns that came meanwhile.
      def complete?
        return false if @done < @candidates.size
        return true if @generation == @index.generation
        @generation = @index.generation
        known = @candidates.to_h { |feed| [feed, true] }.compare_by_identity
        @candidates.concat(@index.candidates(@topic).reject { |feed| known.key?(feed) })
        @done == @candidates.size
      end

      # Calls a block with each feed that was found and is still in the index; what was not tested yet is tested now.
      def each
        step(Float::INFINITY) until complete?
        @found.each { |feed| yield feed if feed.indexed }
      end

      def inspect = "#<#{self.class} #{@topic.value.inspect}>"
    end
  end
end
