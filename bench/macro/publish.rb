# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Publish < Scenario
    title "Publishing"
    order 4
    about <<~TEXT
      How many updates a second are taken from 32 publishers over HTTP with keep-alive, each waiting for its answer,
      while one subscriber receives them all. Each request to a hub carries the same valid token. Where the load was
      busy all the time and the server was not, the server can do more than is said here: then look at its CPU.
    TEXT
    entrants "floor", "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :publishers, 32, about: "connections that publish"
    setting :seconds, 2.0, quick: 0.5, about: "of publishing"
    setting :warmup, 2_000, quick: 200, about: "updates before those, not measured"

    LEAST_OVER_NCHAN = 1
    RATE = %w[publish per_second].freeze

    def groups = [entrants.map { |name| of(name) }]

    def measure(cell)
      on_stage(cell.entrant) { |stage| stage.load(subscribers: 1, publishers: publishers, seconds: seconds, warmup: warmup) }
    end

    def headline(figures) = format("%.0f publishes/s, %.1f µs of CPU each", *figures["publish"].values_at("per_second", "cpu_us_each"))

    def targets(results)
      [results.ratio_target("publishes per second over Nchan's, one subscriber, #{publishers} publishers",
        of("hikyaku-c"), of("nchan"), *RATE, at_least: LEAST_OVER_NCHAN)]
    end

    def tables(results)
      rows = entrants.map do |name|
        its = of(name)
        [title_of(name), show(results.spread(its, *RATE), 0), show(results.ratio(its, of("nchan"), *RATE)),
          show(results.spread(its, "publish", "cpu_us_each"), 1), show(results.spread(its, "publish", "answer_ms", "median"), 3),
          show(results.spread(its, "publish", "answer_ms", "p99"), 3), *busy(results, its, "publish")]
      end
      [Table.new(title: "#{publishers} publishers, one subscriber", rows: rows,
        head: ["Server", "publishes per second", "over Nchan's", "CPU µs per publish", "ms until answered, median", "p99", *BUSY])]
    end

    def plots(results)
      figures = entrants.to_h { |name| [title_of(name), results.spread(of(name), *RATE)] }
      bars("publish.svg", figures, title: "Publishes", unit: "a second")
    end

    private

    def of(name) = cell("publish", name, 1)
  end
end
