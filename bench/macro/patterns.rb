# frozen_string_literal: true

require_relative "publish"

module Bench
  class Patterns < Scenario
    title "URL patterns"
    order 6
    about <<~TEXT
      What 1,000 URL patterns cost a publish. First, each update goes to a new topic and to a known one, and exactly one of 1,000
      subscribers receives it: through its pattern for the new topic or, for comparison, through the known topic, without any pattern.
      Patterns that begin with a wildcard, for which the hub cannot look up a part of a path, are measured too. Second, 10,000 subscribers
      with 1,000 patterns, and updates to one topic that ten of them match, over the same ten alone.
    TEXT
    headline(*Publish.headline)
    entrants "hikyaku-c", "hikyaku-ruby"
    setting :patterns, 1_000, quick: 100, about: "patterns"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers with them, in the second part"
    settings.update(Publish.settings)
    Publish.settings.each_key { |name| define_method(name) { @values.fetch(name) } }

    MIN_OVER_EXACT = 0.5
    MIN_OVER_FEW = 0.5
    RATE = Publish::RATE
    KNOWN = "https://example.com/known/{t}"
    SHELF = "https://example.com/shelves/{t}/:book"
    NEW_TOPICS = ["https://example.com/shelves/{t}/{n}", KNOWN].freeze
    SPEECH = {
      "exact" => {match: KNOWN, topics: NEW_TOPICS}, "patterns" => {match: SHELF, type: "urlpattern", topics: NEW_TOPICS},
      "wildcards" => {match: "https://example.com/:kind/{t}/:book", type: "urlpattern", topics: NEW_TOPICS},
      "few" => {match: SHELF, type: "urlpattern", topics: ["https://example.com/shelves/0/1"]},
      "crowd" => {match: SHELF, type: "urlpattern", topics: ["https://example.com/shelves/0/1"]}
    }.freeze
    TITLES = {
      "exact" => "new topics, no pattern", "patterns" => "new topics, patterns", "wildcards" => "new topics, patterns that begin with a wildcard",
      "few" => "one topic, those who match alone", "crowd" => "one topic, among all"
    }.freeze
    PAIRS = {"patterns" => "exact", "wildcards" => "exact", "crowd" => "few"}.freeze

    def groups = entrants.product([%w[exact patterns wildcards], %w[few crowd]]).map { |name, tests| tests.map { |test| of(test, name) } }

    def measure(cell)
      topics = {"few" => {topics: 1}, "crowd" => {topics: patterns, message_topics: 1}}.fetch(cell.test, {topics: patterns})
      on_stage(cell.entrant, speech: SPEECH.fetch(cell.test)) do |stage|
        stage.load(subscribers: cell.size, publishers: publishers, seconds: seconds, warmup: warmup, **topics)
      end
    end

    def targets
      hub = "hikyaku-c"
      [ratio_target("publishes per second to new topics, #{patterns} URL patterns, over the same without patterns", of("patterns", hub), of("exact", hub), RATE,
        at_least: MIN_OVER_EXACT),
        ratio_target("publishes per second to #{few} of #{subscribers} subscribers behind #{patterns} URL patterns, over the same #{few} alone", of("crowd", hub),
          of("few", hub), RATE, at_least: MIN_OVER_FEW)]
    end

    def tables
      [table("Publishes", [["Server", :title], ["Test", ->(its) { TITLES[its.test] }], ["Subscribers", :size], ["publishes per second", "#{RATE}:0"],
        ["over those without", ->(its) { ratio(its, of(PAIRS.fetch(its.test, its.test), its.entrant), RATE) }], ["CPU µs per publish", "publish.cpu_us_each:1"],
        *busy("publish")])]
    end

    private

    def few = subscribers / patterns

    def of(test, name) = cell(test, name, {"few" => few, "crowd" => subscribers}.fetch(test, patterns))
  end
end
