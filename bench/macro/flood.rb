# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Flood < Scenario
    title "Flood"
    order 7
    about <<~TEXT
      The deliveries a second to 100 subscribers of one topic when publishers never wait: they pipeline their requests and write whenever
      a socket takes more. The floor calls `send()` once for each delivery, and waits for a full socket; a hub may send several events in
      one call.
    TEXT
    headline "%.0f deliveries/s, %.2f µs of CPU each", "delivery.per_second", "delivery.cpu_us_each"
    entrants "floor", "hikyaku-c", "nchan"
    setting :subscribers, 100, about: "subscribers"
    setting :messages, 20_000, quick: 2_000, about: "updates"
    setting :publishers, 8, about: "connections that publish"

    MIN_OVER_FLOOR = 3
    RATE = "delivery.per_second"

    def measure(cell)
      on_stage(cell.entrant, flood: true) do |stage|
        stage.load(subscribers: cell.size, publishers: publishers, messages: messages, warmup: messages / 20, pipeline: true)
      end
    end

    def targets
      [ratio_target("deliveries per second under a flood, over one send() per delivery", of("hikyaku-c"), of("floor"), RATE, at_least: MIN_OVER_FLOOR)]
    end

    def tables
      [table("#{subscribers} subscribers, #{messages} updates", [["Server", :title], ["deliveries per second", "#{RATE}:0"],
        ["over the floor", ->(its) { ratio(its, of("floor"), RATE) }], ["CPU µs per delivery", "delivery.cpu_us_each:3"], *busy("publish")])]
    end

    def plots = bars("flood.svg", RATE, title: "Deliveries under a flood", unit: "a second")

    private

    def of(name) = cell("flood", name, subscribers)
  end
end
