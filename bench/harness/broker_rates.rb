# frozen_string_literal: true

require_relative "broker"
require_relative "plot"

module Bench
  # How messages a second, and what each costs, are measured and shown: by level and size, every broker that has the level.
  module BrokerRates
    RATE = %w[run per_second].freeze
    CPU = %w[run cpu_us_each].freeze
    PEERS = %w[redis beanstalkd nats rabbitmq].freeze

    # @param scenario [Class] which is measured so
    # @param messages [Integer] of a run
    # @param synced [Integer] the same at level synced
    def self.settings(scenario, messages:, synced:, quick:)
      scenario.setting :levels, Broker::LEVELS, about: "what an acknowledgement promises"
      scenario.setting :sizes, [100, 1_000, 10_000], quick: [1_000], about: "bytes of a message"
      scenario.setting :senders, 10, about: "connections that send"
      scenario.setting :receivers, 10, about: "connections that receive, each from a queue of its own, which are sent to in turn"
      scenario.setting :messages, messages, quick: quick, about: "messages of a run"
      scenario.setting :synced, synced, quick: quick / 4, about: "messages of a run at level synced"
      scenario.setting :megabytes, 400, about: "that a run sends at most"
    end

    # @return [Array<Array<Cell>>]
    def groups = pairs.map { |level, size| having(level).map { |name| cell(level, name, size) } }.reject(&:empty?)

    # @param cell [Cell]
    # @return [Hash]
    def measure(cell)
      on_stage(cell.entrant, level: cell.test, speech: {level: cell.test}) do |stage|
        stage.load(senders: senders, receivers: receivers, size: cell.size, window: self.class::WINDOW, messages: count(cell),
          warmup: count(cell) / 10)
      end
    end

    # @param figures [Hash]
    # @return [String]
    def headline(figures)
      format("%.0f messages/s, %.2f µs of CPU each, the load busy %.0f %%", *figures["run"].values_at("per_second", "cpu_us_each"),
        figures.dig("run", "load_busy") * 100)
    end

    # @return [Array<Table>]
    def tables(results)
      levels.map { |level| Table.new(title: "Level #{level}", head: head, rows: rows(results, level)) }.reject { |table| table.rows.empty? }
    end

    # @return [Hash{String => Plot}]
    def plots(results)
      levels.to_h { |level| ["#{self.class.key}-#{level}.svg", plot(results, level)] }.compact
    end

    private

    def pairs = levels.product(sizes)

    def having(level) = entrants.select { |name| Entrants.fetch(name).levels.include?(level) }

    def count(cell) = [(cell.test == "synced") ? synced : messages, megabytes * 1_000_000 / cell.size].min

    # The one of the peers that was fastest at this.
    def best_peer(results, level, size)
      (having(level) & PEERS).max_by { |name| results.spread(cell(level, name, size), *RATE)&.median || 0 }
    end

    def over_best_peer(results, name, level, size, **bound)
      best = best_peer(results, level, size) or return
      results.ratio_target("#{size}-byte messages a second at #{level}, #{self.class::HOW}, over the fastest peer's (#{title_of(best)})",
        cell(level, name, size), cell(level, best, size), *RATE, **bound)
    end

    def head
      ["Broker", "Bytes", "messages per second", "over the fastest peer's", "CPU µs per message", "over the floor", "load's CPU µs",
        "SEND to PUSH, ms, median", "p99", *Scenario::BUSY]
    end

    def rows(results, level)
      sizes.product(having(level)).map do |size, name|
        its = cell(level, name, size)
        best = best_peer(results, level, size)
        [title_of(name), size, show(results.spread(its, *RATE), 0), show(best && results.ratio(its, cell(level, best, size), *RATE)),
          *costs(results, its, level), *%w[median p99].map { |which| show(results.spread(its, "latency_ms", which)) }, *busy(results, its, "run")]
      end
    end

    # What stands between the rate and the latency of a row.
    def costs(results, its, level)
      [show(results.spread(its, *CPU)), show(results.ratio(its, cell(level, self.class::FLOOR, its.size), *CPU)), show(results.spread(its, "run", "load_us_each"))]
    end

    def plot(results, level)
      series = having(level).filter_map do |name|
        points = sizes.filter_map do |size|
          (spread = results.spread(cell(level, name, size), *RATE)) && [size, *[spread.median, spread.min, spread.max].map { |rate| rate / 1000 }]
        end
        {name: title_of(name), points: points} if points.any?
      end
      return if series.empty?
      Plot.new(title: "#{self.class.title}, level #{level}", x: "bytes of a message", y: "thousand messages a second", series: series, y_log: true)
    end
  end
end
