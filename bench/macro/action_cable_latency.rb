# frozen_string_literal: true

require_relative "../harness/doors"

module Bench
  class ActionCableLatency < Scenario
    include Doors

    title "Latency by the number of clients"
    order 42
    about <<~TEXT
      The time of a message from its publisher to a client, in three settings: one topic and one publisher; ten topics, which the clients
      share, and one publisher, which publishes to each in turn, the next when the last is accepted; ten topics and ten publishers at once.
      The next round of messages begins when all have the last.
    TEXT
    headline "%.2f ms in the mean, p99 %.2f ms", "#{LATENCY}.mean", "#{LATENCY}.p99"
    entrants FLOOR, *CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [YARDSTICK, "rails-c"]
    setting :subscribers, [100, 1_000, 10_000], quick: [50], about: "numbers of clients"
    setting :deliveries, 50_000, quick: 1_000, about: "deliveries of a run, about"

    # Topics, publishers, the name of the plot.
    SETTINGS = {
      "1 topic, 1 publisher" => [1, 1, "latency-1-1"], "10 topics, 1 publisher" => [10, 1, "latency-10-1"], "10 topics, 10 publishers" => [10, 10, "latency-10-10"]
    }.freeze
    ROUNDS = (10..300)
    PATIENCE = 180 # seconds

    def groups = SETTINGS.keys.product(subscribers).map { |setting, n| entrants.map { |name| cell(setting, name, n) } }

    def measure(cell)
      topics, publishers = SETTINGS.fetch(cell.test)
      rounds = (deliveries / cell.size).clamp(ROUNDS)
      on_rested_stage(cell.entrant, topics: topics) do |stage|
        stage.load(subscribers: cell.size, topics: topics, publishers: publishers, messages: rounds * topics, warmup: 2 * topics, sync: true,
          together: topics, size: size, timeout: PATIENCE)
      end
    end

    def tables
      SETTINGS.keys.map { |setting| table("#{setting}: latency, ms", [*server_columns, ["Clients", :size], *times(LATENCY)], cells.select { |its| its.test == setting }) }
    end

    def plots
      SETTINGS.map { |setting, (_, _, file)|
        lines("#{file}.svg", entrants, subscribers, title: "Mean latency: #{setting}", x: "clients", y: "ms", y_log: true) { |name, n| spread(cell(setting, name, n), "#{LATENCY}.mean") }
      }.reduce({}, :merge)
    end
  end
end
