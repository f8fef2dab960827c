# frozen_string_literal: true

require "json"
require "open3"
require_relative "../harness/broker"
require_relative "../harness/scenario"

module Bench
  class BrokerLatency < Scenario
    suite Suite::BROKER
    title "Latency at half the rate"
    order 24
    about <<~TEXT
      Level synced. First as fast as it goes, 100 messages of each sender under way; then, on the same broker, at half of that
      rate: what is due in each tenth of a millisecond is sent then, whether or not anything was answered, and latency counts from
      when a message was due. Beside it, just before, on the same disk: a bare loop of write() at the end of a file and
      fdatasync(). A message is pushed when the broker pleases; its sender is answered when the disk has it.
    TEXT
    entrants "frames-floor", "broker-c", "broker-ruby", "redis", "beanstalkd"
    setting :sizes, [100, 1_000], quick: [100], about: "bytes of a message"
    setting :messages, 200_000, quick: 5_000, about: "messages as fast as they go, at most"
    setting :seconds, 3.0, quick: 0.3, about: "at half the rate"
    setting :appends, 3_000, quick: 200, about: "turns of the bare loop"

    LEVEL = "synced"
    WINDOW = 100
    WIDE = 4_000 # unanswered messages of a sender at half the rate: no limit
    SHARE = 0.5
    MOST_OVER_APPEND = 3
    SLOW = %w[beanstalkd broker-ruby].freeze
    OVER = %w[paced p99_over_append].freeze

    def groups = sizes.map { |size| entrants.map { |name| cell(LEVEL, name, size) } }

    def measure(cell)
      entrant = Entrants.fetch(cell.entrant)
      append = entrant.in_folder { |folder| appended(folder, cell.size) }
      on_stage(cell.entrant, level: LEVEL, speech: {level: LEVEL}) do |stage|
        count = SLOW.include?(cell.entrant) ? messages / 20 : messages
        full = stage.load(size: cell.size, window: WINDOW, messages: count, warmup: count / 10)
        paced = paced(stage, cell.size, full.dig("run", "per_second") * SHARE, append)
        {"append" => append, "full" => full.slice("run", "latency_ms"), "paced" => paced}
      end
    end

    def headline(figures)
      format("p99 %.3f ms at %.0f messages/s, the disk's %.3f ms", figures.dig("paced", "latency_ms", "p99"), figures.dig("paced", "rate"),
        figures.dig("append", "append_ms", "p99"))
    end

    def targets(results)
      sizes.map do |size|
        results.target("p99 from SEND to PUSH at half the highest synced rate over that of a bare append and fdatasync, #{size} bytes",
          cell(LEVEL, "broker-c", size), *OVER, at_most: MOST_OVER_APPEND)
      end
    end

    def tables(results)
      rows = groups.flatten.map do |its|
        [title_of(its.entrant), its.size, show(results.spread(its, "full", "run", "per_second"), 0),
          show(results.spread(its, "paced", "rate"), 0),
          *%w[median p99].map { |which| show(results.spread(its, "paced", "latency_ms", which), 3) },
          *%w[median p99].map { |which| show(results.spread(its, "paced", "answer_ms", which), 3) },
          *%w[median p99].map { |which| show(results.spread(its, "append", "append_ms", which), 3) },
          show(results.spread(its, "append", "overwrite_ms", "p99"), 3), show(results.spread(its, *OVER)),
          share(results.spread(its, "paced", "run", "server_busy"))]
      end
      [Table.new(title: "Level synced, half the rate", rows: rows,
        head: ["Broker", "Bytes", "highest rate", "rate", "SEND to PUSH, ms, median", "p99", "SEND to ACK, median", "p99",
          "append, fdatasync, median", "p99", "overwrite, p99", "PUSH over append, p99", "broker busy"])]
    end

    def plots(results)
      figures = groups.flatten.to_h { |its| ["#{title_of(its.entrant)}, #{its.size} B", results.spread(its, *OVER)] }
      bars("broker-latency.svg", figures, title: "p99 from SEND to PUSH over that of append and fdatasync", unit: "times",
        guide: {y: MOST_OVER_APPEND, label: "target"})
    end

    private

    def paced(stage, size, rate, append)
      count = [(rate * seconds).to_i, 10].max
      figures = stage.load(size: size, window: WIDE, credit: WIDE, rate: rate, messages: count, warmup: count / 10)
      over = figures.dig("latency_ms", "p99").fdiv(append.dig("append_ms", "p99"))
      figures.slice("run", "latency_ms", "answer_ms", "lost", "wrong", "unanswered").merge("rate" => rate, "p99_over_append" => over)
    end

    # On the broker's core: it has none now.
    def appended(folder, size)
      out, said, status = Open3.capture3(Build.program("pin"), Server::CORE.to_s, Build.program("append"), folder, size.to_s, appends.to_s)
      raise Load::Failed, said unless status.success?
      JSON.parse(out)
    end
  end
end
