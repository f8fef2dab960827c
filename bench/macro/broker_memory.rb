# frozen_string_literal: true

require_relative "../harness/broker"
require_relative "../harness/scenario"

module Bench
  class BrokerMemory < Scenario
    suite Suite::BROKER
    title "Messages that wait"
    order 23
    about <<~TEXT
      1,000,000 messages of 100 bytes wait in ten queues, and nobody receives: the broker's resident memory then, all of it. At level
      written it is then killed (SIGKILL) and started again in the same folder: the time from the start of its process until it has
      accepted a receiver, and until the first message and the last have been received.
    TEXT
    entrants "broker-c", "broker-ruby", "redis", "beanstalkd", "nats"
    setting :messages, 1_000_000, quick: 10_000, about: "messages that wait"
    setting :size, 100, about: "bytes of a message"
    setting :levels, %w[memory written], about: "what an acknowledgement promises"
    setting :rest, 1_000, quick: 100, about: "milliseconds of rest before memory is looked at"

    MOST_MB = 200
    MOST_SECONDS = 2
    QUEUES = 10
    WINDOW = 1_000
    TIMEOUT = 300 # seconds
    RSS = %w[memory rss_mb].freeze
    RESTART = %w[restart seconds].freeze

    def groups = levels.map { |level| entrants.map { |name| cell(level, name, messages) } }

    def measure(cell)
      entrant = Entrants.fetch(cell.entrant)
      entrant.in_folder do |folder|
        filled = filled(entrant, cell.test, folder)
        next filled if cell.test == "memory"
        again = emptied(entrant, cell.test, folder)
        filled.merge("restart" => again, "whole" => filled["whole"] && again["whole"])
      end
    end

    def headline(figures)
      restart = figures["restart"] && format(", back after %.2f s", figures.dig(*RESTART))
      format("%.0f MB%s", figures.dig(*RSS), restart)
    end

    def targets(results)
      [*levels.map do |level|
        results.target("MB of memory with #{messages} waiting messages of #{size} bytes, #{level}", cell(level, "broker-c", messages), *RSS,
          at_most: MOST_MB)
      end,
        results.target("seconds until it serves again with them, after SIGKILL", cell("written", "broker-c", messages), *RESTART,
          at_most: MOST_SECONDS)]
    end

    def tables(results)
      rows = groups.flatten.map do |its|
        [title_of(its.entrant), its.test, show(results.spread(its, *RSS), 0), show(results.spread(its, "memory", "bytes_each"), 0),
          show(results.spread(its, *RESTART)), show(results.spread(its, "restart", "first_message_seconds")),
          show(results.spread(its, "restart", "all_seconds"))]
      end
      [Table.new(title: "#{messages} messages of #{size} bytes", rows: rows,
        head: ["Broker", "Level", "MB", "bytes per message", "s until it serves again", "s until the first message", "s until all were received"])]
    end

    def plots(results)
      figures = groups.flatten.to_h { |its| ["#{title_of(its.entrant)}, #{its.test}", results.spread(its, *RSS)] }
      bars("broker-memory.svg", figures, title: "Memory with #{messages} waiting messages", unit: "MB", guide: {y: MOST_MB, label: "target"})
    end

    private

    def filled(entrant, level, folder)
      entrant.run(level: level, folder: folder) do |server|
        stage = entrant.stage(server, level: level)
        idle = stage.wake["memory"]["rss_kb"]
        figures = stage.load(prefix: "waiting", receivers: 0, queues: QUEUES, messages: messages, size: size, window: WINDOW, timeout: TIMEOUT)
        sleep rest / 1000.0
        figures = figures.merge("memory" => memory(server, idle), "whole" => stage.whole?)
        server.kill unless level == "memory"
        figures
      end
    end

    def memory(server, idle)
      kb = server.resident_kb
      {"rss_mb" => kb / 1024.0, "bytes_each" => (kb - idle) * 1024.0 / messages}
    end

    def emptied(entrant, level, folder)
      entrant.run(level: level, folder: folder) do |server|
        stage = entrant.stage(server, level: level)
        figures = stage.load(prefix: "waiting", senders: 0, receivers: QUEUES, messages: messages, size: size, window: WINDOW, timeout: TIMEOUT)
        after = {"seconds" => "ready_seconds", "first_message_seconds" => "first_seconds"}.transform_values { |name| figures[name] }
        after["all_seconds"] = figures["connect_seconds"] + figures.dig("run", "seconds")
        {**after.transform_values { |seconds| server.start_seconds + seconds },
         **figures.slice("lost", "wrong", "misdirected", "whole")}
      end
    end
  end
end
