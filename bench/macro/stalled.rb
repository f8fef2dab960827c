# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Stalled < Scenario
    title "Stalled readers"
    order 8
    about <<~TEXT
      What 1,000 of 10,000 subscribers that never read do to the others, and to the server's memory. They have a
      receive buffer of 16 KiB, and are also subscribed to a topic to which twice the history's size is published
      first, so that all their buffers are full and the history has passed them. Then come the updates that are
      measured, one at a time, for all. Beside it the same with nobody stalled. The kernel's memory is that of all TCP
      sockets (`/proc/net/sockstat`), its bound that of the buffers: for each stalled reader twice SO_SNDBUF on the
      server's side, as its sockets say, and twice SO_RCVBUF on its own.
    TEXT
    entrants "hikyaku-c", "hikyaku-ruby"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers"
    setting :stalled, 1_000, quick: 100, about: "of those, that never read"
    setting :history, "64M", quick: "8M", about: "the hub's history, bytes, M for megabytes"
    setting :messages, 40, quick: 10, about: "updates that are measured"

    MOST_LATENCY = 1.3
    MOST_MEMORY = 1.1 # the history, and a tenth for its indexes
    MOST_BUFFERS = 1
    RECEIVE_BUFFER = 16_384
    FILL_BYTES = 32_768 # of a message that fills
    FILL = "https://example.com/fill"
    WRITE_TIMEOUT = 600
    SIZES = {
      "rss_growth_kb" => "server memory grew, MB", "tcp_growth_kb" => "TCP memory grew, MB", "bound_kb" => "bound of that, MB"
    }.freeze
    P99 = %w[delivery latency_ms p99].freeze
    TCP = %w[memory tcp_over_bound].freeze
    USER = %w[memory rss_growth_over_history].freeze

    def groups = entrants.map { |name| [of("none", name), of("stalled", name)] }

    def measure(cell)
      on_stage(cell.entrant, history: history, write_timeout: WRITE_TIMEOUT) do |stage|
        silent = (cell.test == "stalled") ? stalled : 0
        figures = stage.load(subscribers: cell.size, stalled: silent, receive_buffer: RECEIVE_BUFFER, messages: messages, sync: true,
          **filling(stage))
        figures.merge("memory" => memory(figures["memory"], silent))
      end
    end

    def headline(figures)
      grown = figures["memory"].values_at("rss_growth_kb", "tcp_growth_kb").map { |kb| kb / 1024 }
      format("p99 %.1f ms, memory grew by %.0f MB, TCP's by %.0f MB", figures.dig(*P99), *grown)
    end

    def targets(results)
      some, none = %w[stalled none].map { |test| of(test, "hikyaku-c") }
      [
        results.ratio_target("p99 latency of the others beside #{stalled} stalled readers, over none stalled", some, none, *P99,
          at_most: MOST_LATENCY),
        results.target("growth of the server's memory beside #{stalled} stalled readers, over its history", some, *USER,
          at_most: MOST_MEMORY),
        results.target("growth of TCP's memory with #{stalled} stalled readers, over the bound of their buffers", some, *TCP,
          at_most: MOST_BUFFERS)
      ]
    end

    def tables(results)
      rows = groups.flatten.map do |its|
        [title_of(its.entrant), (its.test == "none") ? 0 : stalled, show(results.spread(its, *P99)),
          show(results.ratio(its, of("none", its.entrant), *P99)), *SIZES.keys.map { |name| show(megabytes(results, its, name), 1) },
          show(results.spread(its, "memory", "send_buffer_kb"), 0)]
      end
      [Table.new(title: "#{subscribers} subscribers, history #{history}", rows: rows,
        head: ["Server", "stalled", "p99 of the others, ms", "over none stalled", *SIZES.values, "a stream's send buffer, KB"])]
    end

    private

    def of(test, name) = cell(test, name, subscribers)

    def history_kb = Integer(history.delete_suffix("M")) * 1024

    # The stalled ask for both topics, the others for one.
    def filling(stage)
      also = stage.speech[:subscribe_path][/[?&]([^=]*)=/, 1]
      topic = URI.encode_www_form_component(FILL)
      {stalled_path: "#{stage.speech[:subscribe_path]}&#{also}=#{topic}", warmup_prefix: "topic=#{topic}&data=", warmup_size: FILL_BYTES,
       warmup: 2 * history_kb * 1024 / FILL_BYTES}
    end

    # What the kernel says of a buffer is already twice what was asked for.
    def memory(figures, silent)
      bound = silent * (figures["send_buffer_kb"] + 2.0 * RECEIVE_BUFFER / 1024)
      figures.merge("bound_kb" => bound, "rss_growth_over_history" => figures["rss_growth_kb"] / history_kb,
        "tcp_over_bound" => (figures["tcp_growth_kb"] / bound if bound.positive? && figures["send_buffer_kb"].positive?))
    end

    def megabytes(results, its, name)
      results.spread(its, "memory", name)&.then { |spread| Spread.new(spread.values.map { |kb| kb / 1024 }) }
    end
  end
end
