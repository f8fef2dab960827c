# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Publish < Scenario
    title "Publishing"
    order 4
    about <<~TEXT
      The updates a second that 32 publishers publish over HTTP with keep-alive, while one subscriber receives them all. Each publisher
      waits for its response. Each request to a hub carries the same valid token. Where the load was busy all the time and the server was
      not, the server can do more than the rate: then look at its CPU.
    TEXT
    headline "%.0f publishes/s, %.1f µs of CPU each", "publish.per_second", "publish.cpu_us_each"
    entrants "floor", "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :publishers, 32, about: "connections that publish"
    setting :seconds, 2.0, quick: 0.5, about: "of publishing"
    setting :warmup, 2_000, quick: 200, about: "updates before those, not measured"

    MIN_OVER_NCHAN = 1
    RATE = "publish.per_second"

    def measure(cell) = on_stage(cell.entrant) { |stage| stage.load(subscribers: 1, publishers: publishers, seconds: seconds, warmup: warmup) }

    def targets
      [ratio_target("publishes per second over Nchan's, one subscriber, #{publishers} publishers", of("hikyaku-c"), of("nchan"), RATE, at_least: MIN_OVER_NCHAN)]
    end

    def tables
      [table("#{publishers} publishers, one subscriber", [["Server", :title], ["publishes per second", "#{RATE}:0"],
        ["over Nchan's", ->(its) { ratio(its, of("nchan"), RATE) }], ["CPU µs per publish", "publish.cpu_us_each:1"],
        ["ms until answered, median", "publish.answer_ms.median:3"], ["p99", "publish.answer_ms.p99:3"], *busy("publish")])]
    end

    def plots = bars("publish.svg", RATE, title: "Publishes", unit: "a second")

    private

    def of(name) = cell("publish", name, 1)
  end
end
