# frozen_string_literal: true

require_relative "publish"

module Bench
  class OwnTopics < Scenario
    title "A topic for each subscriber"
    order 5
    about <<~TEXT
      Whether a publish to one subscriber costs the same when 10,000 others listen to other topics: the updates a second of 32 publishers,
      to the topics in turn, over those with a single subscriber. Simultaneous updates for one subscriber can leave in one write; those
      for 10,000 subscribers cannot. The floor, one send() for each update in either case, shows the cost of that alone.
    TEXT
    headline(*Publish.headline)
    entrants "floor", "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers, each on a topic of its own"
    settings.update(Publish.settings)
    Publish.settings.each_key { |name| define_method(name) { @values.fetch(name) } }

    MIN_OVER_ONE = {"hikyaku-c" => 0.8, "hikyaku-ruby" => 0.7}.freeze
    RATE = Publish::RATE

    def groups = entrants.map { |name| [one(name), many(name)] }

    def measure(cell)
      on_stage(cell.entrant, speech: (cell.entrant == "floor") ? {own: true} : {}) do |stage|
        stage.load(subscribers: cell.size, topics: cell.size, publishers: publishers, seconds: seconds, warmup: warmup)
      end
    end

    def targets
      MIN_OVER_ONE.map do |name, limit|
        ratio_target("publishes per second, #{subscribers} subscribers on a topic each, over those with one subscriber", many(name), one(name), RATE, at_least: limit)
      end
    end

    def tables
      floor = ->(its) { ratio(its, (its.size == 1) ? one("floor") : many("floor"), "publish.cpu_us_each") }
      [table("Each update to one subscriber", [["Server", :title], ["Subscribers", :size], ["publishes per second", "#{RATE}:0"],
        ["over one subscriber", ->(its) { ratio(its, one(its.entrant), RATE) }], ["CPU µs per publish", "publish.cpu_us_each:1"], ["over the floor", floor], *busy("publish")])]
    end

    private

    def one(name) = cell("one", name, 1)

    def many(name) = cell("own", name, subscribers)
  end
end
