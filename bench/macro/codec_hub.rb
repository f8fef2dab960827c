# frozen_string_literal: true

require "socket"
require "tempfile"
require_relative "../codec/events"
require_relative "../harness/scenario"

module Bench
  class CodecHub < Scenario
    suite "codec"
    title "Event streams in gzip"
    order 74
    about <<~TEXT
      The hub's CPU and bytes for a delivery where all subscribers accept gzip, over those where they do not. One publisher, one topic; events
      in JSON that differ as those of an application do; the next is published when all have the last. The CPU includes the publish. The load
      generator decodes each stream with zlib and counts the messages in it. *Memory* is the growth of resident memory by the subscribers and
      by events that all of them receive.
    TEXT
    headline "%.2f µs of CPU and %.0f bytes a delivery, %.0f bytes of memory a subscriber", "delivery.cpu_us_each", "delivery.bytes_each", "memory_bytes_each"
    entrants "hikyaku-c", "hikyaku-ruby"
    setting :subscribers, 1_000, quick: 100, about: "subscribers"
    setting :crowd, 10_000, quick: 500, about: "subscribers, for memory"
    setting :deliveries, 200_000, quick: 5_000, about: "deliveries of a run, about"
    setting :events, 20, about: "events, for memory"
    setting :size, 300, about: "bytes of an event"
    setting :rest, 1_000, quick: 300, about: "milliseconds of rest before memory is read"

    CPU = "delivery.cpu_us_each"
    BYTES = "delivery.bytes_each"
    MEMORY = "memory_bytes_each"
    CODINGS = %w[identity gzip].freeze
    MAX_CPU = 1.1
    MAX_BYTES = 0.25
    MAX_MEMORY = 64

    class << self
      # Neither engine compresses; where one does not, its runs say so.
      def obstacle
        "hikyaku serve does not answer Accept-Encoding: gzip with a stream in gzip" if entrants.none? { |name| compresses?(Entrants.fetch(name)) }
      rescue Server::Failed => error
        "hikyaku serve does not start: #{error.reason}"
      end

      private

      def compresses?(hub)
        hub.run do |server|
          TCPSocket.open(Entrant::LOOPBACK, server.port) do |socket|
            socket.write("GET #{hub.speech.fetch(:subscribe_path).gsub("{t}", "0")} HTTP/1.1\r\nHost: #{Entrant::LOOPBACK}:#{server.port}\r\n" \
              "Accept: text/event-stream\r\nAccept-Encoding: gzip\r\n\r\n")
            socket.gets("\r\n\r\n").to_s.match?(/^content-encoding: *gzip\r$/i)
          end
        end
      end
    end

    def groups = [pairs.map { |name, coding| stream(name, coding) }, pairs.map { |name, coding| idle(name, coding) }]

    def measure(cell)
      test, coding = cell.test.split
      messages = (test == "memory") ? events : (deliveries / [cell.size, 1].max).clamp(10, 2_000)
      Tempfile.create("bench-events") do |file|
        Events.write(file.path, size)
        figures = on_stage(cell.entrant) do |stage|
          stage.load(subscribers: cell.size, messages: messages, warmup: (test == "memory") ? 0 : messages / 10 + 1, sync: true, size: size,
            text_file: file.path, gzip: coding == "gzip", settle: rest)
        end
        raise Load::Failed, "#{title_of(cell.entrant)} does not answer with streams in #{coding}" if figures["subscribers"].zero?
        figures.merge(MEMORY => (figures.dig("connect", "rss_kb_each") + figures.dig("memory", "rss_growth_kb") / [cell.size, 1].max) * 1_024)
      end
    end

    def targets
      entrants.flat_map do |name|
        gzip, identity = %w[gzip identity].map { |coding| stream(name, coding) }
        [ratio_target("CPU per delivery of gzip streams over identity, #{subscribers} subscribers", gzip, identity, CPU, at_most: MAX_CPU),
          ratio_target("bytes per delivery of gzip streams over identity, events of #{size} bytes", gzip, identity, BYTES, at_most: MAX_BYTES),
          Target.new(name: "bytes of memory that a gzip subscriber has beyond one of identity, #{crowd} subscribers", entrant: name,
            spread: beyond(name), whole: whole?(*CODINGS.map { |coding| idle(name, coding) }), at_most: MAX_MEMORY)]
      end
    end

    def tables
      coding = ->(its) { its.test.split.last }
      over = ->(path) { ["over identity", ->(its) { ratio(its, stream(its.entrant, "identity"), path) }] }
      server = [["Server", :title], ["Streams", coding]]
      [table("Deliveries", [*server, ["CPU µs per delivery", CPU], over.call(CPU), ["bytes per delivery", "#{BYTES}:0"], over.call(BYTES),
        ["median latency, ms", "delivery.latency_ms.median"], *busy("publish")], groups.first),
        table("Memory", [*server, ["bytes per subscriber", "#{MEMORY}:0"], ["beyond identity", ->(its) { show((beyond(its.entrant) if coding.call(its) == "gzip"), 0) }]], groups.last)]
    end

    def plots
      bars("codec-hub.svg", CPU, groups.first, title: "CPU per delivery, #{subscribers} subscribers", unit: "µs") { |its| "#{title_of(its.entrant)}, #{its.test.split.last}" }
    end

    private

    def pairs = entrants.product(CODINGS)

    def stream(name, coding) = cell("deliveries #{coding}", name, subscribers)

    def idle(name, coding) = cell("memory #{coding}", name, crowd)

    def beyond(name) = combine([idle(name, "gzip"), idle(name, "identity")], MEMORY) { |gzip, identity| gzip - identity }
  end
end
