# frozen_string_literal: true

require_relative "../harness/doors"
require_relative "../harness/plot"
require_relative "../harness/scenario"

module Bench
  class ActionCableLatency < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "Latency by the number of clients"
    order 42
    about <<~TEXT
      How long a message takes from its publisher to a client, in three settings: one topic and one publisher; ten topics, among
      which the clients are shared out, and one publisher, which publishes to each in turn, the next as soon as the last is
      accepted; ten topics and ten publishers, all at once. The next round of messages begins when all have the last.
    TEXT
    entrants FLOOR, *CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [YARDSTICK, "rails-c"]
    setting :subscribers, [100, 1_000, 10_000], quick: [50], about: "numbers of clients"
    setting :deliveries, 50_000, quick: 1_000, about: "deliveries of a run, about"
    setting :size, 200, about: "bytes of a message"

    # Topics and publishers.
    SETTINGS = {"1 topic, 1 publisher" => [1, 1], "10 topics, 1 publisher" => [10, 1], "10 topics, 10 publishers" => [10, 10]}.freeze
    TIMES = %w[mean median min max p99].freeze
    LATENCY = %w[delivery latency_ms].freeze
    ROUNDS = 10..300
    PATIENCE = 180 # seconds

    def groups = SETTINGS.keys.product(subscribers).map { |setting, n| entrants.map { |name| cell(setting, name, n) } }

    def measure(cell)
      topics, publishers = SETTINGS.fetch(cell.test)
      rounds = (deliveries / cell.size).clamp(ROUNDS)
      on_rested_stage(cell.entrant, first_door(cell.entrant), topics: topics) do |stage|
        stage.load(subscribers: cell.size, topics: topics, publishers: publishers, messages: rounds * topics, warmup: 2 * topics, sync: true,
          together: topics, size: size, timeout: PATIENCE)
      end
    end

    def headline(figures) = format("%.2f ms in the mean, p99 %.2f ms", *%w[mean p99].map { |time| figures.dig(*LATENCY, time) })

    def tables(results)
      SETTINGS.keys.map do |setting|
        rows = subscribers.product(entrants).map do |n, name|
          [title_of(name), publisher_of(name), n, *TIMES.map { |time| show(results.spread(cell(setting, name, n), *LATENCY, time)) }]
        end
        Table.new(title: "#{setting}: latency, ms", head: ["Server", PUBLISHED_BY, "Clients", *TIMES], rows: rows)
      end
    end

    def plots(results)
      SETTINGS.keys.zip(%w[latency-1-1 latency-10-1 latency-10-10]).to_h { |setting, file| ["#{file}.svg", plot(results, setting)] }.compact
    end

    private

    def plot(results, setting)
      series = entrants.filter_map do |name|
        points = subscribers.filter_map do |n|
          (spread = results.spread(cell(setting, name, n), *LATENCY, "mean")) && [n, spread.median, spread.min, spread.max]
        end
        {name: title_of(name), points: points} if points.any?
      end
      Plot.new(title: "Mean latency: #{setting}", x: "clients", y: "ms", series: series, y_log: true) if series.any?
    end
  end
end
