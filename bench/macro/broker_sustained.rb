# frozen_string_literal: true

require_relative "../harness/broker_rates"
require_relative "../harness/scenario"

module Bench
  class BrokerSustained < Scenario
    include BrokerRates

    suite Suite::BROKER
    title "Half a minute without a pause"
    order 22
    at_most_rounds 3
    about <<~TEXT
      The same senders and receivers as above, up to 100 unacknowledged messages of each sender, but for 30 seconds. So the journal fills
      segments, drops them and uses them again while messages are sent and received; what a burst leaves to later is paid for here. The
      slowest second is that with the fewest messages that were sent, received and freed.
    TEXT
    entrants "broker-c", "broker-ruby", "broker-ruby-yjit", "redis", "beanstalkd", "nats"
    setting :levels, Broker::LEVELS, about: "what an acknowledgement promises"
    setting :sizes, [100, 1_000], quick: [1_000], about: "bytes of a message"
    setting :senders, 10, about: "connections that send"
    setting :receivers, 10, about: "connections that receive, each from a queue of its own, which are sent to in turn"
    setting :seconds, 30.0, quick: 1.5, about: "of sending"
    setting :warmup, 10_000, quick: 1_000, about: "messages before those, not measured"

    WINDOW = 100
    HOW = "sustained"
    MOST = 500_000_000 # messages of a run; the seconds end it before
    SAMPLE = 64        # a run has tens of millions of messages: one latency of so many is kept
    SLOWEST = %w[slowest_second].freeze
    LEAST_OVER_PEERS = 1
    private_constant :MOST, :SAMPLE

    def measure(cell)
      on_stage(cell.entrant, level: cell.test, speech: {level: cell.test}) do |stage|
        figures = stage.load(senders: senders, receivers: receivers, size: cell.size, window: WINDOW, messages: MOST, seconds: seconds,
          sample: SAMPLE, warmup: warmup)
        figures.merge("slowest_second" => figures["done_each_second"].min, "megabytes" => figures["messages"] * cell.size / 1_000_000)
      end
    end

    def targets(results)
      pairs.filter_map { |level, size| over_best_peer(results, "broker-c", level, size, at_least: LEAST_OVER_PEERS) }
    end

    def plots(results)
      levels.product(sizes).to_h { |level, size| ["broker-sustained-#{level}-#{size}.svg", over_time(results, level, size)] }.compact
    end

    private

    def head
      ["Broker", "Bytes", "messages per second", "over the fastest peer's", "in the slowest second", "MB of messages", "CPU µs per message",
        "SEND to PUSH, ms, median", "p99", *Scenario::BUSY]
    end

    def costs(results, its, _level)
      [show(results.spread(its, *SLOWEST), 0), show(results.spread(its, "megabytes"), 0), show(results.spread(its, *CPU))]
    end

    # The first round, second by second.
    def over_time(results, level, size)
      series = having(level).filter_map do |name|
        run = results.runs.find { |candidate| candidate.cell == cell(level, name, size) && candidate.figures }
        done = run&.figures&.fetch("done_each_second", nil)
        {name: title_of(name), points: done.each_with_index.map { |count, second| [second + 1, *[count / 1000.0] * 3] }} if done&.any?
      end
      return if series.empty?
      Plot.new(title: "Level #{level}, #{size} bytes, the first round", x: "second", y: "thousand messages a second", series: series, x_log: false,
        y_log: true)
    end
  end
end
