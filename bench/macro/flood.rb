# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Flood < Scenario
    title "Flood"
    order 7
    about <<~TEXT
      How many deliveries a second reach 100 subscribers of one topic when publishers never wait: they pipeline their
      requests and write whenever a socket takes more. The floor calls `send()` once for each delivery, and waits for
      a socket that is full; a hub may send several events in one call.
    TEXT
    entrants "floor", "hikyaku-c", "nchan"
    setting :subscribers, 100, about: "subscribers"
    setting :messages, 20_000, quick: 2_000, about: "updates"
    setting :publishers, 8, about: "connections that publish"

    LEAST_OVER_FLOOR = 3
    RATE = %w[delivery per_second].freeze

    def groups = [entrants.map { |name| of(name) }]

    def measure(cell)
      on_stage(cell.entrant, flood: true) do |stage|
        stage.load(subscribers: cell.size, publishers: publishers, messages: messages, warmup: messages / 20, pipeline: true)
      end
    end

    def headline(figures) = format("%.0f deliveries/s, %.2f µs of CPU each", *figures["delivery"].values_at("per_second", "cpu_us_each"))

    def targets(results)
      [results.ratio_target("deliveries per second under a flood, over one send() per delivery",
        of("hikyaku-c"), of("floor"), *RATE, at_least: LEAST_OVER_FLOOR)]
    end

    def tables(results)
      rows = entrants.map do |name|
        its = of(name)
        [title_of(name), show(results.spread(its, *RATE), 0), show(results.ratio(its, of("floor"), *RATE)),
          show(results.spread(its, "delivery", "cpu_us_each"), 3), *busy(results, its, "publish")]
      end
      [Table.new(title: "#{subscribers} subscribers, #{messages} updates", rows: rows,
        head: ["Server", "deliveries per second", "over the floor", "CPU µs per delivery", *BUSY])]
    end

    def plots(results)
      figures = entrants.to_h { |name| [title_of(name), results.spread(of(name), *RATE)] }
      bars("flood.svg", figures, title: "Deliveries under a flood", unit: "a second")
    end

    private

    def of(name) = cell("flood", name, subscribers)
  end
end
