# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Patterns < Scenario
    title "URL patterns"
    order 6
    about <<~TEXT
      What matchers that are patterns cost a publish, when there are 1,000 of them. First, every update is published
      to a topic never seen before (and to a known one), and exactly one of 1,000 subscribers receives it: by its
      pattern for the new topic, or, for comparison, by the known topic alone, the same updates without any pattern.
      Patterns that begin with a wildcard, so that nothing of a path can be looked up, are measured too. Second,
      10,000 subscribers behind 1,000 patterns, and updates to one topic that ten of them match, over the same ten
      alone.
    TEXT
    entrants "hikyaku-c", "hikyaku-ruby"
    setting :patterns, 1_000, quick: 100, about: "patterns"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers behind them, in the second part"
    setting :publishers, 32, about: "connections that publish"
    setting :seconds, 2.0, quick: 0.5, about: "of publishing"
    setting :warmup, 2_000, quick: 200, about: "updates before those, not measured"

    LEAST_OVER_EXACT = 0.5
    LEAST_OVER_FEW = 0.5
    RATE = %w[publish per_second].freeze
    KNOWN = "https://example.com/known/{t}"
    SHELF = "https://example.com/shelves/{t}/:book"
    NEW_TOPICS = ["https://example.com/shelves/{t}/{n}", KNOWN].freeze
    SPEECH = {
      "exact" => {match: KNOWN, topics: NEW_TOPICS},
      "patterns" => {match: SHELF, type: "urlpattern", topics: NEW_TOPICS},
      "wildcards" => {match: "https://example.com/:kind/{t}/:book", type: "urlpattern", topics: NEW_TOPICS},
      "few" => {match: SHELF, type: "urlpattern", topics: ["https://example.com/shelves/0/1"]},
      "crowd" => {match: SHELF, type: "urlpattern", topics: ["https://example.com/shelves/0/1"]}
    }.freeze
    TITLES = {
      "exact" => "new topics, no pattern", "patterns" => "new topics, patterns",
      "wildcards" => "new topics, patterns that begin with a wildcard",
      "few" => "one topic, those who match alone", "crowd" => "one topic, among all"
    }.freeze
    PAIRS = {"patterns" => "exact", "wildcards" => "exact", "crowd" => "few"}.freeze

    def groups = entrants.product([%w[exact patterns wildcards], %w[few crowd]]).map { |name, tests| tests.map { |test| of(test, name) } }

    def measure(cell)
      on_stage(cell.entrant, speech: SPEECH.fetch(cell.test)) do |stage|
        stage.load(subscribers: cell.size, publishers: publishers, seconds: seconds, warmup: warmup, **topics(cell.test))
      end
    end

    def headline(figures) = format("%.0f publishes/s, %.1f µs of CPU each", *figures["publish"].values_at("per_second", "cpu_us_each"))

    def targets(results)
      name = "hikyaku-c"
      crowd = "#{few} of #{subscribers} subscribers behind #{patterns} URL patterns"
      [
        results.ratio_target("publishes per second to new topics, #{patterns} URL patterns, over the same without patterns",
          of("patterns", name), of("exact", name), *RATE, at_least: LEAST_OVER_EXACT),
        results.ratio_target("publishes per second to #{crowd}, over the same #{few} alone",
          of("crowd", name), of("few", name), *RATE, at_least: LEAST_OVER_FEW)
      ]
    end

    def tables(results)
      rows = entrants.product(TITLES.keys).map do |name, test|
        its = of(test, name)
        against = of(PAIRS.fetch(test, test), name)
        [title_of(name), TITLES[test], its.size, show(results.spread(its, *RATE), 0), show(results.ratio(its, against, *RATE)),
          show(results.spread(its, "publish", "cpu_us_each"), 1), *busy(results, its, "publish")]
      end
      [Table.new(title: "Publishes", rows: rows,
        head: ["Server", "Test", "Subscribers", "publishes per second", "over those without", "CPU µs per publish", *BUSY])]
    end

    private

    def few = subscribers / patterns

    def of(test, name) = cell(test, name, {"few" => few, "crowd" => subscribers}.fetch(test, patterns))

    def topics(test)
      case test
      when "few" then {topics: 1}
      when "crowd" then {topics: patterns, message_topics: 1}
      else {topics: patterns}
      end
    end
  end
end
