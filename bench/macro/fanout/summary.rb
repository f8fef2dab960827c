# frozen_string_literal: true

require_relative "../../harness/spread"

module Bench
  module Fanout
    # A promise of the project, and what was measured.
    Target = Struct.new(:name, :bound, :limit, :spread, keyword_init: true) do
      def met? = (bound == :at_most) ? spread.median <= limit : spread.median >= limit
    end

    # Figures of all rounds, by test, entrant and number of subscribers. A ratio is taken within a round, between two
    # runs that were neighbours in time; its median over the rounds is what counts.
    class Summary
      MOST_CPU_OVER_FLOOR = 1.6
      LEAST_TOPICS_OVER_ONE = 0.7

      attr_reader :runs

      def initialize(runs)
        @runs = runs
      end

      def subscribers = select("fanout").map(&:subscribers).uniq

      def entrants = runs.map(&:entrant).uniq

      # @param path [Array<String>] keys into the load generator's figures
      # @return [Spread]
      def spread(test, entrant, subscribers, *path)
        Spread.new(select(test, entrant.name, subscribers).map { |run| run.figures.dig(*path) })
      end

      def cpu(entrant, subscribers) = spread("fanout", entrant, subscribers, "delivery", "cpu_us_each")

      # @return [Spread] CPU of a delivery over the floor's in the same round
      def over_floor(entrant, subscribers)
        ratio(["fanout", entrant.name, subscribers], ["fanout", "floor", subscribers], "delivery", "cpu_us_each")
      end

      def topics? = select("topics").any?

      def topics = select("topics").first.subscribers

      # @return [Spread] publishes per second with a topic for each subscriber, over those with a single subscriber
      def topic_rate = ratio(["topics", "hikyaku", topics], ["one", "hikyaku", 1], "publish", "per_second")

      # @return [Spread] CPU per publish, likewise
      def topic_cpu = ratio(["topics", "hikyaku", topics], ["one", "hikyaku", 1], "publish", "cpu_us_each")

      def incomplete = runs.reject { |run| run.figures["whole"] }

      def targets
        hikyaku = entrants.find { |entrant| entrant.name == "hikyaku" }
        fanout = subscribers.map do |n|
          Target.new(name: "CPU per delivery over the floor, #{n} subscribers", bound: :at_most, limit: MOST_CPU_OVER_FLOOR,
            spread: over_floor(hikyaku, n))
        end
        return fanout unless topics?
        fanout << Target.new(name: "publishes per second, #{topics} subscribers on a topic each, over those with one subscriber",
          bound: :at_least, limit: LEAST_TOPICS_OVER_ONE, spread: topic_rate)
      end

      private

      def select(test, entrant = nil, subscribers = nil)
        runs.select do |run|
          run.test == test && [nil, run.entrant.name].include?(entrant) && [nil, run.subscribers].include?(subscribers)
        end
      end

      def ratio(above, below, *path)
        pairs = select(*above).zip(select(*below))
        Spread.new(pairs.map { |one, other| one.figures.dig(*path).fdiv(other.figures.dig(*path)) })
      end
    end
  end
end
