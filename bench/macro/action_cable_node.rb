# frozen_string_literal: true

require_relative "../harness/doors"
require_relative "../harness/node"
require_relative "../harness/plot"
require_relative "../harness/scenario"

module Bench
  class ActionCableNode < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "Latency, with the clients that pages have"
    order 43
    about <<~TEXT
      One topic, one publisher, the next message when all have the last; but the clients are the paper's, in one process of Node.js: `eventsource`
      for streams, Action Cable's own for its WebSocket. Their own work is in the time: it is longer than with the load generator in C, and what it
      is longer by says what these clients cost. message_bus has a client of its own, and has no part in this.
    TEXT
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS - NO_STREAMS, quick: [YARDSTICK, "rails-c"])
    setting :subscribers, [100, 300, 1_000], quick: [30], about: "numbers of clients"
    setting :deliveries, 30_000, quick: 600, about: "deliveries of a run, about"
    setting :size, 200, about: "bytes of a message"

    TIMES = %w[mean median min max p99].freeze
    LATENCY = %w[delivery latency_ms].freeze

    def self.obstacle = Node.obstacle

    def self.versions = Node.versions

    def groups = subscribers.map { |n| entrants.map { |name| of(name, n) } }

    def measure(cell)
      messages = (deliveries / cell.size).clamp(10, 300)
      on_rested_stage(cell.entrant, first_door(cell.entrant)) do |stage|
        stage.load(program: "node", subscribers: cell.size, messages: messages, warmup: messages / 10 + 1, sync: true, size: size)
      end
    end

    def headline(figures) = format("%.2f ms in the mean, p99 %.2f ms", *%w[mean p99].map { |time| figures.dig(*LATENCY, time) })

    def tables(results)
      rows = subscribers.product(entrants).map do |n, name|
        [title_of(name), publisher_of(name), n, *TIMES.map { |time| show(results.spread(of(name, n), *LATENCY, time)) }]
      end
      [Table.new(title: "Latency, publish to receipt, ms", head: ["Server", PUBLISHED_BY, "Clients", *TIMES], rows: rows)]
    end

    def plots(results)
      series = entrants.filter_map do |name|
        points = subscribers.filter_map do |n|
          (spread = results.spread(of(name, n), *LATENCY, "mean")) && [n, spread.median, spread.min, spread.max]
        end
        {name: title_of(name), points: points} if points.any?
      end
      {"latency-node.svg" => (Plot.new(title: "Mean latency, clients in Node", x: "clients", y: "ms", series: series, y_log: true) if series.any?)}.compact
    end

    private

    def of(name, n) = cell("node", name, n)
  end
end
