# frozen_string_literal: true

require_relative "../harness/broker"
require_relative "../harness/hikyaku_broker"
require_relative "../harness/link"
require_relative "../harness/link_floor"
require_relative "../harness/plot"
require_relative "../harness/scenario"

module Bench
  class BrokerLinks < Scenario
    suite Suite::BROKER
    title "Links"
    order 25
    about <<~TEXT
      The broker in one network, ten senders and ten receivers in another, a link of a given rate each way between them (network
      namespaces, veth, tbf). Each sender waits for its ACK; messages are addressed to the receivers' own queues in turn; a receiver
      answers each PUSH with an ACK and then a FREE, which is acknowledged. Each message crosses the link twice, once in each
      direction: to the broker as SEND, from it as PUSH. *Utilisation* is the bytes of the messages alone (no frames, no headers),
      counted once, over the time from the first SEND to the last acknowledged FREE, as a share of the rate: what they use of either
      direction. Beside it what all bytes on the wire, headers and acknowledgements with them, use of the direction that has more,
      by the shapers' own count. The plain TCP stream, both ways at once, says what the link itself takes; the floor what senders
      that wait leave of it. 100,000 messages, or as many as the link can take in ten seconds.
    TEXT
    entrants "link-floor", "frames-floor", "broker-c", "broker-ruby"
    setting :rates, [100, 1_000, 2_500, 10_000], quick: [100, 1_000], about: "megabits a second"
    setting :sizes, [100, 1_000, 10_000], quick: [10_000], about: "bytes of a message"
    setting :levels, %w[memory written], quick: %w[memory], about: "what an acknowledgement promises"
    setting :clients, 10, about: "senders, and as many receivers"
    setting :messages, 100_000, quick: 2_000, about: "messages of a run"
    setting :seconds, 10.0, quick: 1.0, about: "of the link's rate that a run sends at most"

    LEAST = {["broker-c", 1_000] => 0.9, ["broker-c", 2_500] => 0.8, ["broker-ruby", 100] => 0.89, ["broker-ruby", 1_000] => 0.5}.freeze
    LARGE = 10_000
    FLOOR = "link-floor"
    STREAM_SECONDS = 2.0
    CREDIT = 1_000
    USED = %w[link utilisation].freeze
    WIRE = %w[link wire_utilisation].freeze
    MEGABITS = %w[link megabits].freeze

    def self.obstacle = Link.obstacle

    def groups
      floor = rates.map { |rate| among(FLOOR).map { |name| cell("#{rate} stream", name, 0) } }
      brokers = rates.product(levels, sizes).map { |rate, level, size| (entrants - [FLOOR]).map { |name| of(rate, level, name, size) } }
      [*floor, *brokers].reject(&:empty?)
    end

    def measure(cell)
      rate, level = cell.test.split
      entrant = Entrants.fetch(cell.entrant)
      Link.run(Integer(rate)) { |link| (cell.entrant == FLOOR) ? streamed(entrant, link) : exchanged(entrant, link, level, cell.size) }
    end

    def headline(figures)
      format("%.0f Mbit/s of messages, %.1f %% of the link; on the wire %.1f %%", figures.dig(*MEGABITS),
        *[USED, WIRE].map { |path| figures.dig(*path) * 100 })
    end

    def targets(results)
      LEAST.filter_map do |(name, rate), least|
        next unless rates.include?(rate) && sizes.include?(LARGE) && levels.include?("memory")
        results.target("utilisation of a link of #{rate} Mbit/s by #{LARGE}-byte messages", of(rate, "memory", name, LARGE), *USED, at_least: least)
      end
    end

    def tables(results)
      levels.map { |level| Table.new(title: "Level #{level}", head: HEAD, rows: rows(results, level)) }
    end

    def plots(results)
      levels.flat_map { |level|
        [["broker-links-#{level}.svg", plot(results, level, "Messages of #{largest} bytes, level #{level}", "Mbit/s", MEGABITS, y_log: true)],
          ["broker-links-#{level}-used.svg", plot(results, level, "What they use of the link, level #{level}", "share", USED)]]
      }.to_h.compact
    end

    private

    HEAD = ["Broker", "Mbit/s", "Bytes", "messages per second", "utilisation", "on the wire", "of plain TCP's", "CPU µs per message",
      "ms until answered, median", *Scenario::BUSY].freeze
    private_constant :HEAD

    def of(rate, level, name, size) = cell("#{rate} #{level}", name, size)

    def largest = sizes.max

    def count(link, size) = [messages, (link.bytes_per_second * seconds / size).to_i].min

    def streamed(entrant, link)
      entrant.run(link: link) do |server|
        before = link.wire_bytes
        figures = entrant.stage(server, link: link).stream((link.bytes_per_second * STREAM_SECONDS / 1_000_000).ceil)
        {"link" => used(link, figures["bytes"], figures["seconds"], before), "whole" => true}
      end
    end

    def exchanged(entrant, link, level, size)
      entrant.run(level: level, link: link, secret: true) do |server|
        stage = entrant.stage(server, link: link, level: level, secret: HikyakuBroker::SECRET)
        stage.load(messages: 200, per_client: true, size: size)
        before = link.wire_bytes
        figures = stage.load(senders: clients, receivers: clients, size: size, window: 1, credit: CREDIT, messages: count(link, size),
          per_client: true, ack_pushes: true, free_each: true, settle: 0, timeout: 300)
        link_figures = used(link, figures["messages"] * size, figures.dig("run", "seconds"), before)
        figures.merge("link" => link_figures, "whole" => stage.whole?)
      end
    end

    # The bytes on the wire have with them those of connecting, which are few.
    def used(link, bytes, seconds, before)
      wire = link.wire_bytes.to_h { |direction, count| [direction, count - before.fetch(direction)] }
      possible = link.bytes_per_second * seconds
      {"megabits" => bytes * 8 / seconds / 1_000_000, "utilisation" => bytes / possible, "wire_utilisation" => wire.values.max / possible,
       "wire_bytes" => wire}
    end

    def rows(results, level)
      rates.flat_map do |rate|
        floor = cell("#{rate} stream", FLOOR, 0)
        its = sizes.product(entrants - [FLOOR]).map { |size, name| row(results, of(rate, level, name, size), rate, size, floor) }
        entrants.include?(FLOOR) ? [row(results, floor, rate, "–", floor), *its] : its
      end
    end

    def row(results, its, rate, size, floor)
      [title_of(its.entrant), rate, size, show(results.spread(its, "run", "per_second"), 0), show(results.spread(its, *USED), 3),
        show(results.spread(its, *WIRE), 3), show(results.ratio(its, floor, *USED), 3), show(results.spread(its, "run", "cpu_us_each")),
        show(results.spread(its, "answer_ms", "median"), 3), *busy(results, its, "run")]
    end

    def plot(results, level, title, unit, path, **more)
      series = entrants.filter_map do |name|
        points = rates.filter_map do |rate|
          its = (name == FLOOR) ? cell("#{rate} stream", name, 0) : of(rate, level, name, largest)
          (spread = results.spread(its, *path)) && [rate, spread.median, spread.min, spread.max]
        end
        {name: title_of(name), points: points} if points.any?
      end
      Plot.new(title: title, x: "Mbit/s of the link", y: unit, series: series, **more) if series.any?
    end
  end
end
