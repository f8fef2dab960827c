# frozen_string_literal: true

require_relative "../harness/scenario"
require_relative "../link/link"

module Bench
  class BrokerLinks < Scenario
    suite "broker"
    title "Links"
    order 25
    about <<~TEXT
      The broker is in one network, ten senders and ten receivers in another, with a link of a given rate each way between them (network
      namespaces, veth, tbf). Each sender waits for its ACK; messages go to the receivers' own queues in turn; a receiver sends an ACK for each
      PUSH and then a FREE, which is acknowledged. Each message crosses the link twice, once in each direction: as SEND, and as PUSH.
      *Utilisation* is the bytes of the messages alone (no frames, no headers), counted once, over the time from the first SEND to the last
      acknowledged FREE, as a share of the rate. *On the wire* is the use of the busier direction by all bytes, headers and acknowledgements
      included, as the shapers count them. The plain TCP stream, both ways at once, shows the capacity of the link; the floor shows the limit
      of senders that wait. 100,000 messages, or as many as the link can carry in ten seconds.
    TEXT
    headline "%.0f Mbit/s of messages, %.3f of the link; on the wire %.3f", "link.megabits", "link.utilisation", "link.wire_utilisation"
    entrants "link-floor", "frames-floor", "broker-c", "broker-ruby"
    setting :rates, [100, 1_000, 2_500, 10_000], quick: [100, 1_000], about: "megabits a second"
    setting :sizes, [100, 1_000, 10_000], quick: [10_000], about: "bytes of a message"
    setting :levels, %w[memory written], quick: %w[memory], about: "what an acknowledgement promises"
    setting :clients, 10, about: "senders, and as many receivers"
    setting :messages, 100_000, quick: 2_000, about: "messages of a run"
    setting :seconds, 10.0, quick: 1.0, about: "of the link's rate that a run sends at most"

    MIN = {["broker-c", 1_000] => 0.9, ["broker-c", 2_500] => 0.8, ["broker-ruby", 100] => 0.89, ["broker-ruby", 1_000] => 0.5}.freeze
    LARGE = 10_000
    FLOOR = "link-floor"
    STREAM_SECONDS = 2.0
    CREDIT = 1_000
    USED = "link.utilisation"

    def self.obstacle = EthernetLink.obstacle

    def groups
      brokers = rates.product(levels, sizes).map { |rate, level, size| (entrants - [FLOOR]).map { |name| of(rate, level, name, size) } }
      [*rates.map { |rate| among(FLOOR).map { floor(rate) } }, *brokers].reject(&:empty?)
    end

    def measure(cell)
      rate, level = cell.test.split
      entrant = Entrants.fetch(cell.entrant)
      EthernetLink.run(Integer(rate)) { |link| (cell.entrant == FLOOR) ? streamed(entrant, link) : exchanged(entrant, link, level, cell.size) }
    end

    def targets
      MIN.filter_map do |(name, rate), least|
        next unless rates.include?(rate) && sizes.include?(LARGE) && levels.include?("memory")
        target("utilisation of a link of #{rate} Mbit/s by #{LARGE}-byte messages", of(rate, "memory", name, LARGE), USED, at_least: least)
      end
    end

    def tables
      rate = ->(its) { its.test.to_i }
      columns = [["Broker", :title], ["Mbit/s", rate], ["Bytes", ->(its) { (its.entrant == FLOOR) ? "–" : its.size }], ["messages per second", "run.per_second:0"],
        ["utilisation", "#{USED}:3"], ["on the wire", "link.wire_utilisation:3"], ["of plain TCP's", ->(its) { show(ratio(its, floor(rate.call(its)), USED), 3) }],
        ["CPU µs per message", "run.cpu_us_each"], ["ms until answered, median", "answer_ms.median:3"], *busy("run")]
      levels.map do |level|
        table("Level #{level}", columns, rates.flat_map { |mbit| [*among(FLOOR).map { floor(mbit) }, *sizes.product(entrants - [FLOOR]).map { |size, name| of(mbit, level, name, size) }] })
      end
    end

    def plots
      levels.flat_map { |level|
        [["broker-links-#{level}.svg", "link.megabits", {title: "Messages of #{sizes.max} bytes, level #{level}", y: "Mbit/s", y_log: true}],
          ["broker-links-#{level}-used.svg", USED, {title: "What they use of the link, level #{level}", y: "share"}]].map { |file, path, more|
            lines(file, entrants, rates, x: "Mbit/s of the link", **more) { |name, rate| spread((name == FLOOR) ? floor(rate) : of(rate, level, name, sizes.max), path) }
          }
      }.reduce({}, :merge)
    end

    private

    def of(rate, level, name, size) = cell("#{rate} #{level}", name, size)

    def floor(rate) = cell("#{rate} stream", FLOOR, 0)

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
        figures = stage.load(senders: clients, receivers: clients, size: size, window: 1, credit: CREDIT, settle: 0, timeout: 300,
          messages: [messages, (link.bytes_per_second * seconds / size).to_i].min, per_client: true, ack_pushes: true, free_each: true)
        figures.merge("link" => used(link, figures["messages"] * size, figures.dig("run", "seconds"), before), "whole" => stage.whole?)
      end
    end

    # The bytes on the wire include those of connecting, which are few.
    def used(link, bytes, seconds, before)
      wire = link.wire_bytes.to_h { |direction, count| [direction, count - before.fetch(direction)] }
      possible = link.bytes_per_second * seconds
      {"megabits" => bytes * 8 / seconds / 1_000_000, "utilisation" => bytes / possible, "wire_utilisation" => wire.values.max / possible, "wire_bytes" => wire}
    end
  end
end
