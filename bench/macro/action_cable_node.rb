# frozen_string_literal: true

require_relative "../harness/doors"

module Bench
  class ActionCableNode < Scenario
    include Doors
    extend NodeClients

    title "Latency, with the clients that pages have"
    order 43
    about <<~TEXT
      One topic, one publisher, the next message when all have the last. The clients are the paper's, in one process of Node.js:
      `eventsource` for streams, Action Cable's own for its WebSocket. The time includes their own work: the difference to the load
      generator in C is the cost of these clients. message_bus has another client, and does not take part.
    TEXT
    headline "%.2f ms in the mean, p99 %.2f ms", "#{LATENCY}.mean", "#{LATENCY}.p99"
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS - NO_STREAMS, quick: [YARDSTICK, "rails-c"])
    setting :subscribers, [100, 300, 1_000], quick: [30], about: "numbers of clients"
    setting :deliveries, 30_000, quick: 600, about: "deliveries of a run, about"

    def groups = subscribers.map { |n| entrants.map { |name| of(name, n) } }

    def measure(cell)
      messages = (deliveries / cell.size).clamp(10, 300)
      on_rested_stage(cell.entrant) do |stage|
        stage.load(program: "node", subscribers: cell.size, messages: messages, warmup: messages / 10 + 1, sync: true, size: size)
      end
    end

    def tables = [table("Latency, publish to receipt, ms", [*server_columns, ["Clients", :size], *times(LATENCY)])]

    def plots
      lines("latency-node.svg", entrants, subscribers, title: "Mean latency, clients in Node", x: "clients", y: "ms", y_log: true) { |name, n| spread(of(name, n), "#{LATENCY}.mean") }
    end

    private

    def of(name, n) = cell("node", name, n)
  end
end
