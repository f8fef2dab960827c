# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class BrokerLatency < Scenario
    suite "broker"
    title "Latency at half the rate"
    order 24
    about <<~TEXT
      Level synced. First as fast as possible, 100 unacknowledged messages of each sender; then, on the same broker, at half of that rate:
      the messages due in a tenth of a millisecond leave then, whether or not any was acknowledged, and latency counts from the time when a
      message was due. Beside it, measured just before on the same disk: a loop of write() at the end of a file and fdatasync(). A broker
      pushes a message when it pleases; it acknowledges the message when the disk has it.
    TEXT
    headline "p99 %.3f ms at %.0f messages/s, the disk's %.3f ms", "paced.latency_ms.p99", "paced.rate", "append.append_ms.p99"
    entrants "frames-floor", "broker-c", "broker-ruby", "redis", "beanstalkd"
    setting :sizes, [100, 1_000], quick: [100], about: "bytes of a message"
    setting :messages, 200_000, quick: 5_000, about: "messages as fast as possible, at most"
    setting :seconds, 3.0, quick: 0.3, about: "at half the rate"
    setting :appends, 3_000, quick: 200, about: "turns of the bare loop"

    LEVEL = "synced"
    WINDOW = 100
    WIDE = 4_000 # unacknowledged messages of a sender at half the rate: no limit
    MAX_OVER_APPEND = 3
    SLOW = %w[beanstalkd broker-ruby].freeze
    OVER = "paced.p99_over_append"

    def groups = sizes.map { |size| entrants.map { |name| cell(LEVEL, name, size) } }

    def measure(cell)
      append = Entrants.fetch(cell.entrant).in_folder { |folder| appended(folder, cell.size) }
      on_stage(cell.entrant, level: LEVEL, speech: {level: LEVEL}) do |stage|
        count = SLOW.include?(cell.entrant) ? messages / 20 : messages
        full = stage.load(size: cell.size, window: WINDOW, messages: count, warmup: count / 10)
        {"append" => append, "full" => full.slice("run", "latency_ms"), "paced" => paced(stage, cell.size, full.dig("run", "per_second") / 2, append)}
      end
    end

    def targets
      sizes.map do |size|
        target("p99 from SEND to PUSH at half the highest synced rate over that of a bare append and fdatasync, #{size} bytes", cell(LEVEL, "broker-c", size), OVER,
          at_most: MAX_OVER_APPEND)
      end
    end

    def tables
      pair = ->(head, path) { [["#{head}, median", "#{path}.median:3"], ["p99", "#{path}.p99:3"]] }
      [table("Level synced, half the rate", [["Broker", :title], ["Bytes", :size], ["highest rate", "full.run.per_second:0"], ["rate", "paced.rate:0"],
        *pair.call("SEND to PUSH, ms", "paced.latency_ms"), *pair.call("SEND to ACK", "paced.answer_ms"), *pair.call("append, fdatasync", "append.append_ms"),
        ["overwrite, p99", "append.overwrite_ms.p99:3"], ["PUSH over append, p99", OVER], ["broker busy", busy("paced.run").first.last]])]
    end

    def plots
      bars("broker-latency.svg", OVER, title: "p99 from SEND to PUSH over that of append and fdatasync", unit: "times", guide: {y: MAX_OVER_APPEND, label: "target"}) { |its|
        "#{title_of(its.entrant)}, #{its.size} B"
      }
    end

    private

    def paced(stage, size, rate, append)
      count = [(rate * seconds).to_i, 10].max
      figures = stage.load(size: size, window: WIDE, credit: WIDE, rate: rate, messages: count, warmup: count / 10)
      over = figures.dig("latency_ms", "p99").fdiv(append.dig("append_ms", "p99"))
      figures.slice("run", "latency_ms", "answer_ms", "lost", "wrong", "unanswered").merge("rate" => rate, "p99_over_append" => over)
    end

    # On the broker's core, which is idle now.
    def appended(folder, size)
      out, errors, status = Open3.capture3(*Server.pinned(Server::CORE, Build.program("append"), folder, size.to_s, appends.to_s))
      raise Load::Failed, errors unless status.success?
      JSON.parse(out)
    end
  end
end
