# frozen_string_literal: true

require_relative "../harness/broker_rates"

module Bench
  class BrokerSustained < Scenario
    include BrokerRates

    title "Half a minute without a pause"
    order 22
    at_most_rounds 3
    about <<~TEXT
      The same senders and receivers, up to 100 unacknowledged messages of each sender, for 30 seconds. The journal fills segments, drops them
      and uses them again meanwhile: the work that a burst postpones is included. The slowest second is that in which the fewest messages
      were sent, received and acknowledged.
    TEXT
    entrants "broker-c", "broker-ruby", "broker-ruby-yjit", "redis", "beanstalkd", "nats"
    setting :sizes, [100, 1_000], quick: [1_000], about: "bytes of a message"
    setting :seconds, 30.0, quick: 1.5, about: "of sending"
    setting :warmup, 10_000, quick: 1_000, about: "messages before those, not measured"

    WINDOW = 100
    HOW = "sustained"
    MAX_MESSAGES = 500_000_000 # the time ends the run before
    SAMPLE = 64 # a run has tens of millions of messages: one latency of 64 is kept
    MIN_OVER_PEERS = 1

    def measure(cell)
      load_stage(cell) do |stage|
        figures = stage.load(**shape(cell), messages: MAX_MESSAGES, seconds: seconds, sample: SAMPLE, warmup: warmup)
        figures.merge("slowest_second" => figures["done_each_second"].min, "megabytes" => figures["messages"] * cell.size / 1_000_000)
      end
    end

    def targets = pairs.filter_map { |level, size| over_best_peer("broker-c", level, size, at_least: MIN_OVER_PEERS) }

    # The first round, second by second.
    def plots
      pairs.map { |level, size|
        done = having(level).to_h { |name| [name, results.runs.find { |run| run.cell == cell(level, name, size) && run.figures }&.figures&.fetch("done_each_second", nil).to_a] }
        lines("broker-sustained-#{level}-#{size}.svg", done.keys, 1..done.values.map(&:size).max.to_i, title: "Level #{level}, #{size} bytes, the first round", x: "second",
          y: "thousand messages a second", x_log: false, y_log: true) { |name, second| done[name][second - 1]&.then { |count| Spread.new([count / 1000.0]) } }
      }.reduce({}, :merge)
    end

    private

    def costs(_level) = [["in the slowest second", "slowest_second:0"], ["MB of messages", "megabytes:0"], ["CPU µs per message", CPU]]
  end
end
