# frozen_string_literal: true

require_relative "../harness/one_at_a_time"
require_relative "../harness/plot"
require_relative "../harness/scenario"

module Bench
  class Fanout < Scenario
    include OneAtATime

    title "Fan-out"
    order 1
    about <<~TEXT
      What one delivery costs, as a multiple of the least that it can cost: a bare `send()` loop. One publisher, one
      topic; the next update is published only when all have the last. The CPU is that of the publish too.
    TEXT
    entrants "floor", "hikyaku-c", "hikyaku-c-send", "hikyaku-ruby", "nchan"
    OneAtATime.settings(self)

    MOST_OVER_FLOOR = {"hikyaku-c" => 1.1, "hikyaku-c-send" => 1.1, "hikyaku-ruby" => 1.6}.freeze
    TIMES = %w[mean median min max p99].freeze

    def groups = subscribers.map { |n| entrants.map { |name| cell("fanout", name, n) } }

    def targets(results)
      MOST_OVER_FLOOR.to_a.product(subscribers).map do |(name, limit), n|
        results.ratio_target("CPU per delivery over the floor, #{n} subscribers",
          cell("fanout", name, n), cell("fanout", "floor", n), *CPU, at_most: limit)
      end
    end

    def tables(results) = [cpu(results), latency(results)]

    def plots(results)
      guide = {y: MOST_OVER_FLOOR["hikyaku-c"], label: "target"}
      over_floor = {title: "CPU per delivery over the floor", y: "times the floor", guide: guide}
      mean = {title: "Mean latency, publish to receipt", y: "ms", y_log: true}
      {
        "fanout-cpu.svg" => plot(**over_floor) { |name, n| results.ratio(cell("fanout", name, n), cell("fanout", "floor", n), *CPU) },
        "fanout-latency.svg" => plot(**mean) { |name, n| results.spread(cell("fanout", name, n), "delivery", "latency_ms", "mean") }
      }.compact
    end

    private

    def cpu(results)
      rows = each_row do |its, n|
        [show(results.spread(its, *CPU)), show(results.ratio(its, cell("fanout", "floor", n), *CPU)),
          show(results.spread(its, "publish", "cpu_us_each"), 0), show(results.spread(its, "delivery", "bytes_each"), 0)]
      end
      Table.new(title: "CPU of the server", rows: rows,
        head: ["Server", "Subscribers", "µs per delivery", "over the floor", "µs per publish to all", "bytes per delivery"])
    end

    def latency(results)
      rows = each_row { |its, _| TIMES.map { |time| show(results.spread(its, "delivery", "latency_ms", time)) } }
      Table.new(title: "Latency, publish to receipt, ms", head: ["Server", "Subscribers", *TIMES], rows: rows)
    end

    def each_row
      subscribers.product(entrants).map { |n, name| [title_of(name), n, *yield(cell("fanout", name, n), n)] }
    end

    # Nil when there is nothing to draw.
    def plot(**options)
      series = entrants.filter_map do |name|
        points = subscribers.filter_map { |n| (spread = yield(name, n)) && [n, spread.median, spread.min, spread.max] }
        {name: title_of(name), points: points} if points.any?
      end
      Plot.new(x: "subscribers", series: series, **options) if series.any?
    end
  end
end
