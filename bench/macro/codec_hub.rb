# frozen_string_literal: true

require "socket"
require "tempfile"
require_relative "../codec/events"
require_relative "../harness/codec_conclusion"
require_relative "../harness/scenario"

module Bench
  class CodecHub < Scenario
    suite Suite::CODEC
    title "Event streams in gzip"
    order 74
    about <<~TEXT
      What a delivery costs the hub, and how many bytes it has, where all subscribers ask for gzip, over where they do not. One publisher, one topic; events
      in JSON that differ as those of an application do; the next is published only when all have the last. The CPU is that of the publish too. The load
      generator decodes each stream with zlib and counts what comes out. *Memory* is by how much what is resident grows by the subscribers and by events that
      all of them get.
    TEXT
    entrants "hikyaku-c", "hikyaku-ruby"
    setting :subscribers, 1_000, quick: 100, about: "subscribers"
    setting :crowd, 10_000, quick: 500, about: "subscribers, for memory"
    setting :deliveries, 200_000, quick: 5_000, about: "deliveries of a run, about"
    setting :events, 20, about: "events, for memory"
    setting :size, 300, about: "bytes of an event"
    setting :rest, 1_000, quick: 300, about: "milliseconds of rest before memory is looked at"

    CPU = %w[delivery cpu_us_each].freeze
    BYTES = %w[delivery bytes_each].freeze
    MEMORY = "memory_bytes_each"
    CODINGS = %w[identity gzip].freeze
    KIB = 1_024
    MOST_CPU = 1.1
    MOST_BYTES = 0.25
    MOST_MEMORY = 64
    WARMUP_SHARE = 10
    GZIP = /^content-encoding: *gzip\r$/i

    class << self
      # @return [String, nil] of neither engine; where one of them does not compress, its runs say so
      def obstacle
        "hikyaku serve does not answer Accept-Encoding: gzip with a stream in gzip" if entrants.none? { |name| compresses?(name) }
      rescue Server::Failed => error
        "hikyaku serve does not start: #{error.reason}"
      end

      private

      def compresses?(name) = Entrants.fetch(name).then { |hub| hub.run { |server| GZIP.match?(head_of(hub, server)) } }

      def head_of(hub, server)
        TCPSocket.open(Entrant::LOOPBACK, server.port) do |socket|
          socket.write("GET #{hub.speech.fetch(:subscribe_path).gsub("{t}", "0")} HTTP/1.1\r\nHost: #{Entrant::LOOPBACK}:#{server.port}\r\n" \
            "Accept: text/event-stream\r\nAccept-Encoding: gzip\r\n\r\n")
          socket.gets("\r\n\r\n").to_s
        end
      end
    end

    def groups
      pairs = entrants.product(CODINGS)
      [pairs.map { |name, coding| stream(name, coding) }, pairs.map { |name, coding| idle(name, coding) }]
    end

    def measure(cell)
      test, coding = cell.test.split
      messages = (test == "memory") ? events : (deliveries / [cell.size, 1].max).clamp(10, 2_000)
      Tempfile.create("bench-events") do |file|
        Events.write(file.path, size)
        figures = on_stage(cell.entrant) do |stage|
          stage.load(subscribers: cell.size, messages: messages, warmup: (test == "memory") ? 0 : messages / WARMUP_SHARE + 1, sync: true, size: size,
            text_file: file.path, gzip: coding == "gzip", settle: rest)
        end
        raise Load::Failed, "#{title_of(cell.entrant)} does not answer with streams in #{coding}" if figures["subscribers"].zero?
        figures.merge(MEMORY => (figures.dig("connect", "rss_kb_each") + figures.dig("memory", "rss_growth_kb") / [cell.size, 1].max) * KIB)
      end
    end

    def headline(figures)
      format("%.2f µs of CPU and %.0f bytes a delivery, %.0f bytes of memory a subscriber", *[CPU, BYTES, [MEMORY]].map { |path| figures.dig(*path) })
    end

    def targets(results)
      entrants.flat_map do |name|
        gzip, identity = %w[gzip identity].map { |coding| stream(name, coding) }
        [
          results.ratio_target("CPU per delivery of gzip streams over identity, #{subscribers} subscribers", gzip, identity, *CPU, at_most: MOST_CPU),
          results.ratio_target("bytes per delivery of gzip streams over identity, events of #{size} bytes", gzip, identity, *BYTES, at_most: MOST_BYTES),
          Target.new(name: "bytes of memory that a gzip subscriber has beyond one of identity, #{crowd} subscribers", entrant: name,
            spread: beyond(results, name), whole: results.whole?(*CODINGS.map { |coding| idle(name, coding) }), at_most: MOST_MEMORY)
        ]
      end
    end

    def tables(results)
      rows = entrants.product(CODINGS).map do |name, coding|
        its, identity = stream(name, coding), stream(name, "identity")
        [title_of(name), coding, show(results.spread(its, *CPU)), show(results.ratio(its, identity, *CPU)), show(results.spread(its, *BYTES), 0),
          show(results.ratio(its, identity, *BYTES)), show(results.spread(its, "delivery", "latency_ms", "median")), *busy(results, its, "publish")]
      end
      memory = entrants.product(CODINGS).map do |name, coding|
        [title_of(name), coding, show(results.spread(idle(name, coding), MEMORY), 0), show((beyond(results, name) if coding == "gzip"), 0)]
      end
      [Table.new(title: "Deliveries", rows: rows,
        head: ["Server", "Streams", "CPU µs per delivery", "over identity", "bytes per delivery", "over identity", "median latency, ms", *BUSY]),
        Table.new(title: "Memory", head: ["Server", "Streams", "bytes per subscriber", "beyond identity"], rows: memory)]
    end

    def plots(results)
      figures = entrants.product(CODINGS).to_h { |name, coding| ["#{title_of(name)}, #{coding}", results.spread(stream(name, coding), *CPU)] }
      bars("codec-hub.svg", figures, title: "CPU per delivery, #{subscribers} subscribers", unit: "µs")
    end

    private

    def stream(name, coding) = cell("deliveries #{coding}", name, subscribers)

    def idle(name, coding) = cell("memory #{coding}", name, crowd)

    # @return [Spread, nil]
    def beyond(results, name)
      results.combine([idle(name, "gzip"), idle(name, "identity")], MEMORY) { |gzip, identity| gzip - identity }
    end
  end
end
