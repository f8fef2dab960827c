# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Stalled < Scenario
    title "Stalled readers"
    order 8
    about <<~TEXT
      What 1,000 of 10,000 subscribers that never read do to the others, and to the server's memory. They have a receive buffer of 16 KiB.
      They also subscribe to a topic to which twice the history's size is published first, so that their buffers are full and the history
      has passed them. The measured updates follow, one at a time, to all. The same without stalled readers stands beside. The kernel's
      memory is that of all TCP sockets (`/proc/net/sockstat`); its bound is that of the buffers: for each stalled reader twice SO_SNDBUF of
      the server's socket, as the kernel reports it, and twice SO_RCVBUF of its own.
    TEXT
    headline "p99 %.1f ms, memory grew by %.0f KB, TCP's by %.0f KB", "delivery.latency_ms.p99", "memory.rss_growth_kb", "memory.tcp_growth_kb"
    entrants "hikyaku-c", "hikyaku-ruby"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers"
    setting :stalled, 1_000, quick: 100, about: "of those, that never read"
    setting :history, "64M", quick: "8M", about: "the hub's history, bytes, M for megabytes"
    setting :messages, 40, quick: 10, about: "updates that are measured"

    MAX_LATENCY = 1.3
    MAX_MEMORY = 1.1 # the history, and a tenth for its indexes
    MAX_BUFFERS = 1
    RECEIVE_BUFFER = 16_384
    PUBLISHERS = " 127.0.1.101:" # the first source address of publishers, see net_dial in bench.c
    LINGER = 3_000 # milliseconds in which the sockets stay open and their buffers are read
    FILL_BYTES = 32_768 # of a message that fills
    FILL = "https://example.com/fill"
    SIZES = {"rss_growth_kb" => "server memory grew, MB", "tcp_growth_kb" => "TCP memory grew, MB", "bound_kb" => "bound of that, MB"}.freeze
    P99 = "delivery.latency_ms.p99"

    def groups = entrants.map { |name| [of("none", name), of("stalled", name)] }

    def measure(cell)
      on_stage(cell.entrant, history: history, write_timeout: 600) do |stage|
        silent = (cell.test == "stalled") ? stalled : 0
        buffer = 0
        figures = stage.load(subscribers: cell.size, stalled: silent, receive_buffer: RECEIVE_BUFFER, messages: messages, sync: true, linger: LINGER,
          **filling(cell.entrant)) { |phase| buffer = send_buffer(stage.server.port) if phase == "published" && silent.positive? }
        figures.merge("memory" => memory(figures["memory"], silent, buffer))
      end
    end

    def targets
      some, none = %w[stalled none].map { |test| of(test, "hikyaku-c") }
      [ratio_target("p99 latency of the others beside #{stalled} stalled readers, over none stalled", some, none, P99, at_most: MAX_LATENCY),
        target("growth of the server's memory beside #{stalled} stalled readers, over its history", some, "memory.rss_growth_over_history", at_most: MAX_MEMORY),
        target("growth of TCP's memory with #{stalled} stalled readers, over the bound of their buffers", some, "memory.tcp_over_bound", at_most: MAX_BUFFERS)]
    end

    def tables
      sizes = SIZES.map { |name, words| [words, ->(its) { show(spread(its, "memory.#{name}")&.scale(1.0 / 1024), 1) }] }
      [table("#{subscribers} subscribers, history #{history}", [["Server", :title], ["stalled", ->(its) { (its.test == "none") ? 0 : stalled }], ["p99 of the others, ms", P99],
        ["over none stalled", ->(its) { ratio(its, of("none", its.entrant), P99) }], *sizes, ["a stream's send buffer, KB", "memory.send_buffer_kb:0"]])]
    end

    private

    def of(test, name) = cell(test, name, subscribers)

    def history_kb = Integer(history.delete_suffix("M")) * 1024

    # The stalled readers subscribe to both topics, the others to one.
    def filling(name)
      path = Entrants.fetch(name).speech.fetch(:subscribe_path)
      topic = URI.encode_www_form_component(FILL)
      {stalled_path: "#{path}&#{path[/[?&]([^=]*)=/, 1]}=#{topic}", warmup_prefix: "topic=#{topic}&data=", warmup_size: FILL_BYTES, warmup: 2 * history_kb * 1024 / FILL_BYTES}
    end

    # KB of the largest send buffer of the server's connections, as the kernel reports it: twice SO_SNDBUF.
    def send_buffer(port)
      out, status = Open3.capture2("ss", "-tnmHO", "state", "established", "sport = :#{port}")
      raise Load::Failed, "ss of iproute2 does not show the sockets' memory" unless status.success?
      out.lines.reject { |line| line.include?(PUBLISHERS) }.filter_map { |line| line[/skmem:\(.*?,tb(\d+)/, 1] }.map(&:to_i).max.to_i / 1024.0
    end

    def memory(figures, silent, buffer)
      bound = silent * (buffer + 2.0 * RECEIVE_BUFFER / 1024)
      figures.merge("send_buffer_kb" => buffer, "bound_kb" => bound, "rss_growth_over_history" => figures["rss_growth_kb"] / history_kb,
        "tcp_over_bound" => (figures["tcp_growth_kb"] / bound if buffer.positive?))
    end
  end
end
