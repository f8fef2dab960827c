# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class OwnTopics < Scenario
    title "A topic for each subscriber"
    order 5
    about <<~TEXT
      Whether a publish that reaches one subscriber costs the same when 10,000 others listen to other topics: updates
      a second from 32 publishers, to the topics in turn, over those with a single subscriber. Updates that come at the same
      time for one subscriber can leave in one write; for 10,000 they cannot. What that alone costs is seen beside: the
      floor, a send() for each update in either case.
    TEXT
    entrants "floor", "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers, each on a topic of its own"
    setting :publishers, 32, about: "connections that publish"
    setting :seconds, 2.0, quick: 0.5, about: "of publishing"
    setting :warmup, 2_000, quick: 200, about: "updates before those, not measured"

    LEAST_OVER_ONE = {"hikyaku-c" => 0.8, "hikyaku-ruby" => 0.7}.freeze
    RATE = %w[publish per_second].freeze

    def groups = entrants.map { |name| [one(name), many(name)] }

    def measure(cell)
      on_stage(cell.entrant, speech: (cell.entrant == "floor") ? {own: true} : {}) do |stage|
        stage.load(subscribers: cell.size, topics: cell.size, publishers: publishers, seconds: seconds, warmup: warmup)
      end
    end

    def headline(figures) = format("%.0f publishes/s, %.1f µs of CPU each", *figures["publish"].values_at("per_second", "cpu_us_each"))

    def targets(results)
      LEAST_OVER_ONE.map do |name, limit|
        results.ratio_target("publishes per second, #{subscribers} subscribers on a topic each, over those with one subscriber",
          many(name), one(name), *RATE, at_least: limit)
      end
    end

    def tables(results)
      rows = groups.flatten.map do |its|
        [title_of(its.entrant), its.size, show(results.spread(its, *RATE), 0), show(results.ratio(its, one(its.entrant), *RATE)),
          show(results.spread(its, "publish", "cpu_us_each"), 1), show(results.ratio(its, floor(its.size), "publish", "cpu_us_each")),
          *busy(results, its, "publish")]
      end
      [Table.new(title: "Each update to one subscriber", rows: rows,
        head: ["Server", "Subscribers", "publishes per second", "over one subscriber", "CPU µs per publish", "over the floor", *BUSY])]
    end

    private

    def one(name) = cell("one", name, 1)

    def floor(size) = (size == 1) ? one("floor") : many("floor")

    def many(name) = cell("own", name, subscribers)
  end
end
