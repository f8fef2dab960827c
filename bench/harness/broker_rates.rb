# frozen_string_literal: true

require_relative "scenario"

module Bench
  # The scenarios of messages a second: by level and size, every broker that has the level.
  module BrokerRates
    RATE = "run.per_second"
    CPU = "run.cpu_us_each"
    PEERS = %w[redis beanstalkd nats rabbitmq].freeze

    def self.included(scenario)
      super
      scenario.suite "broker"
      scenario.headline "%.0f messages/s, %.2f µs of CPU each, the load busy %.2f of a core", RATE, CPU, "run.load_busy"
      scenario.setting :levels, Broker::LEVELS, about: "what an acknowledgement promises"
      scenario.setting :sizes, [100, 1_000, 10_000], quick: [1_000], about: "bytes of a message"
      scenario.setting :senders, 10, about: "connections that send"
      scenario.setting :receivers, 10, about: "connections that receive, each from a queue of its own; senders use the queues in turn"
    end

    # @param synced [Integer] messages of a run at level synced
    def self.count(scenario, messages:, synced:, quick:)
      scenario.setting :messages, messages, quick: quick, about: "messages of a run"
      scenario.setting :synced, synced, quick: quick / 4, about: "messages of a run at level synced"
      scenario.setting :megabytes, 400, about: "limit of what a run sends"
    end

    def groups = pairs.map { |level, size| having(level).map { |name| cell(level, name, size) } }.reject(&:empty?)

    def measure(cell)
      load_stage(cell) { |stage| stage.load(**shape(cell), messages: count(cell), warmup: count(cell) / 10) }
    end

    def tables = levels.map { |level| table("Level #{level}", columns(level), sizes.product(having(level)).map { |size, name| cell(level, name, size) }) }.reject { |its| its.rows.empty? }

    def plots
      levels.map { |level|
        lines("#{self.class.key}-#{level}.svg", having(level), sizes, title: "#{self.class.title}, level #{level}", x: "bytes of a message", y: "thousand messages a second",
          y_log: true) { |name, size| spread(cell(level, name, size), RATE)&.scale(1e-3) }
      }.reduce({}, :merge)
    end

    private

    def pairs = levels.product(sizes)

    def having(level) = entrants.select { |name| Entrants.fetch(name).levels.include?(level) }

    def load_stage(cell, &block) = on_stage(cell.entrant, level: cell.test, speech: {level: cell.test}, &block)

    def shape(cell) = {senders: senders, receivers: receivers, size: cell.size, window: self.class::WINDOW}

    def count(cell) = [(cell.test == "synced") ? synced : messages, megabytes * 1_000_000 / cell.size].min

    # The peer with the highest rate.
    def best_peer(level, size) = (having(level) & PEERS).max_by { |name| spread(cell(level, name, size), RATE)&.median || 0 }

    def over_best_peer(name, level, size, **bound)
      best = best_peer(level, size) or return
      ratio_target("#{size}-byte messages a second at #{level}, #{self.class::HOW}, over the fastest peer's (#{title_of(best)})", cell(level, name, size),
        cell(level, best, size), RATE, **bound)
    end

    def columns(level)
      [["Broker", :title], ["Bytes", :size], ["messages per second", "#{RATE}:0"],
        ["over the fastest peer's", ->(its) { best_peer(level, its.size)&.then { |best| ratio(its, cell(level, best, its.size), RATE) } }], *costs(level),
        ["SEND to PUSH, ms, median", "latency_ms.median"], ["p99", "latency_ms.p99"], *busy("run")]
    end

    def costs(level)
      [["CPU µs per message", CPU], ["over the floor", ->(its) { ratio(its, cell(level, self.class::FLOOR, its.size), CPU) }], ["load's CPU µs", "run.load_us_each"]]
    end
  end
end
