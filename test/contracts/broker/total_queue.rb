# frozen_string_literal: true

require "contracts/broker/story"

# Random courses of events, in which nothing may be lost, come twice without a reason, or come from nowhere.
module BrokerContract
  tests do
    attr_reader :now

    def tell_story(seed, steps:, storage: false, without: [], **options)
      @epoch = 0
      @now = 1000.0
      @wall = 1_795_000_000_000
      begin_engine(storage: storage, max_failures: 60_000, max_crashes: 60_000, **options)
      BrokerStory.new(self, seed: seed, storage: storage, without: without).run(steps)
    end

    5.times do |seed|
      test "in a random course of events nothing is lost and nothing comes twice without a reason (#{seed})" do
        story = tell_story(seed, steps: 800)
        assert_empty story.problems
        assert_operator story.trace.count { |entry| entry[1] == :push }, :>, 200
      end
    end

    4.times do |seed|
      test "in a random course of events with restarts and crashes nothing that was kept is lost (#{seed})" do
        story = tell_story(100 + seed, steps: 500, storage: true, segment_bytes: SEGMENT)
        assert_empty story.problems
      end
    end

    test "the same course of events has the same outcome" do
      assert_equal tell_story(7, steps: 400).trace, tell_story(7, steps: 400).trace
    end
  end
end
