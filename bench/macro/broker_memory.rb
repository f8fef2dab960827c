# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class BrokerMemory < Scenario
    suite "broker"
    title "Messages that wait"
    order 23
    about <<~TEXT
      1,000,000 messages of 100 bytes wait in ten queues without receivers: the table shows the broker's whole resident memory. At level
      written the broker is then killed (SIGKILL) and started again in the same folder: the times are those from the start of its process until
      it has accepted a receiver, and until the first and the last message have been received.
    TEXT
    entrants "broker-c", "broker-ruby", "redis", "beanstalkd", "nats"
    setting :messages, 1_000_000, quick: 10_000, about: "messages that wait"
    setting :size, 100, about: "bytes of a message"
    setting :levels, %w[memory written], about: "what an acknowledgement promises"
    setting :rest, 1_000, quick: 100, about: "milliseconds of rest before memory is read"

    MAX_MB = 200
    MAX_SECONDS = 2
    QUEUES = 10
    WAITING = {prefix: "waiting", window: 1_000, timeout: 300}.freeze
    RSS = "memory.rss_mb"
    RESTART = "restart.seconds"

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

    def headline(figures) = format("%.0f MB%s", figures.dig(*RSS.split(".")), figures.dig("restart", "seconds")&.then { |seconds| format(", back after %.2f s", seconds) })

    def targets
      [*levels.map { |level| target("MB of memory with #{messages} waiting messages of #{size} bytes, #{level}", cell(level, "broker-c", messages), RSS, at_most: MAX_MB) },
        target("seconds until it serves again with them, after SIGKILL", cell("written", "broker-c", messages), RESTART, at_most: MAX_SECONDS)]
    end

    def tables
      [table("#{messages} messages of #{size} bytes", [["Broker", :title], ["Level", :test], ["MB", "#{RSS}:0"], ["bytes per message", "memory.bytes_each:0"],
        ["s until it serves again", RESTART], ["s until the first message", "restart.first_message_seconds"], ["s until all were received", "restart.all_seconds"]])]
    end

    def plots
      bars("broker-memory.svg", RSS, title: "Memory with #{messages} waiting messages", unit: "MB", guide: {y: MAX_MB, label: "target"}) { |its| "#{title_of(its.entrant)}, #{its.test}" }
    end

    private

    def filled(entrant, level, folder)
      entrant.run(level: level, folder: folder) do |server|
        stage = entrant.stage(server, level: level)
        idle = stage.wake["memory"]["rss_kb"]
        figures = stage.load(**WAITING, receivers: 0, queues: QUEUES, messages: messages, size: size)
        sleep rest / 1000.0
        kb = server.resident_kb
        server.kill unless level == "memory"
        figures.merge("memory" => {"rss_mb" => kb / 1024.0, "bytes_each" => (kb - idle) * 1024.0 / messages}, "whole" => stage.whole?)
      end
    end

    def emptied(entrant, level, folder)
      entrant.run(level: level, folder: folder) do |server|
        figures = entrant.stage(server, level: level).load(**WAITING, senders: 0, receivers: QUEUES, messages: messages, size: size)
        seconds = {"seconds" => figures["ready_seconds"], "first_message_seconds" => figures["first_seconds"],
                   "all_seconds" => figures["connect_seconds"] + figures.dig("run", "seconds")}
        {**seconds.transform_values { |after| server.start_seconds + after }, **figures.slice("lost", "wrong", "misdirected", "whole")}
      end
    end
  end
end
