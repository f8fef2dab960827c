# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  # One update after the other, each to all subscribers of one topic.
  class Fanout < Scenario
    title "Fan-out"
    order 1
    about <<~TEXT
      The cost of one delivery, as a multiple of the least cost: a bare `send()` loop. One publisher, one topic; the next update is
      published when all subscribers have the last. The CPU includes the publish.
    TEXT
    headline "%.2f µs of CPU a delivery", "delivery.cpu_us_each"
    entrants "floor", "hikyaku-c", "hikyaku-c-send", "hikyaku-ruby", "nchan"
    setting :subscribers, [100, 1_000, 10_000], quick: [100, 1_000], about: "numbers of subscribers"
    setting :deliveries, 200_000, quick: 20_000, about: "deliveries of a run, about"
    setting :size, 200, about: "bytes of a message"

    MAX_OVER_FLOOR = {"hikyaku-c" => 1.1, "hikyaku-c-send" => 1.1, "hikyaku-ruby" => 1.6}.freeze
    CPU = "delivery.cpu_us_each"
    TEST = "fanout"

    def groups = subscribers.map { |n| entrants.map { |name| of(name, n) } }

    def measure(cell)
      messages = (deliveries / [cell.size, 1].max).clamp(10, 2_000)
      on_stage(cell.entrant) { |stage| stage.load(subscribers: cell.size, messages: messages, warmup: messages / 10 + 1, sync: true, size: size) }
    end

    def targets
      MAX_OVER_FLOOR.to_a.product(subscribers).map do |(name, limit), n|
        ratio_target("CPU per delivery over the floor, #{n} subscribers", of(name, n), of("floor", n), CPU, at_most: limit)
      end
    end

    def tables
      server = [["Server", :title], ["Subscribers", :size]]
      [table("CPU of the server", [*server, ["µs per delivery", CPU], ["over the floor", ->(its) { over_floor(its) }], ["µs per publish to all", "publish.cpu_us_each:0"],
        ["bytes per delivery", "delivery.bytes_each:0"]]),
        table("Latency, publish to receipt, ms", [*server, *times("delivery.latency_ms")])]
    end

    def plots
      guide = {y: MAX_OVER_FLOOR["hikyaku-c"], label: "target"}
      lines("fanout-cpu.svg", entrants, subscribers, title: "CPU per delivery over the floor", x: "subscribers", y: "times the floor", guide: guide) { |name, n| over_floor(of(name, n)) }
        .merge(lines("fanout-latency.svg", entrants, subscribers, title: "Mean latency, publish to receipt", x: "subscribers", y: "ms", y_log: true) { |name, n|
          spread(of(name, n), "delivery.latency_ms.mean")
        })
    end

    private

    def of(name, n) = cell(self.class::TEST, name, n)

    def over_floor(its) = ratio(its, of("floor", its.size), CPU)
  end
end
