# frozen_string_literal: true

require_relative "../harness/doors"
require_relative "../harness/link"
require_relative "../harness/node"
require_relative "../harness/scenario"
require_relative "../harness/wire_watch"

module Bench
  class ActionCableLoad < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "A hundred clients: CPU, and bytes on the wire"
    order 40
    about <<~TEXT
      What 100 clients that subscribe at once to one topic, and then a message published to all of them, cost the server: its CPU, and what
      passes on the wire between two networks with a link that nobody fills, as Ethernet frames, acknowledgements and all. The clients are those
      that pages have, in Node.js (`eventsource` for streams, Action Cable's own for its WebSocket), and those of the load generator in C,
      which say as little as they may. Ten messages are published in a second, by a connection of their own. CPU at its highest is
      the greatest share of a core in any tenth of a second; publishing holds one message in such a tenth. Closing is not in it.
      Nothing is published while clients subscribe. message_bus, which has a client of its own, is read by those in C alone.
    TEXT
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [YARDSTICK, "rails-c"])
    setting :subscribers, 100, quick: 30, about: "clients"
    setting :messages, 10, quick: 5, about: "messages published"
    setting :rate, 10, about: "messages a second"
    setting :size, 200, about: "bytes of a message"
    setting :clients, %w[node c], about: "which clients"
    setting :rest, 1_000, quick: 400, about: "milliseconds of rest, in which the link is read"

    MEGABITS = 10_000 # far more than all need
    PROGRAMS = {"node" => "node", "c" => "load"}.freeze
    NATIVE = %w[rails-c hikyaku-c].freeze

    def self.obstacle = Link.obstacle || Node.obstacle

    def self.versions = Node.versions

    def groups = clients.map { |kind| its_entrants(kind).map { |name| of(kind, name) } }.reject(&:empty?)

    def measure(cell)
      Link.run(MEGABITS) do |link|
        on_rested_stage(cell.entrant, first_door(cell.entrant), link: link) do |stage|
          CpuMeter.run(stage.server.pids) { |meter| watched(stage, cell, WireWatch.new(link, meter, rest)) }
        end
      end
    end

    def headline(figures)
      format("subscribing %.1f ms of CPU, %.1f KB on the wire", figures.dig("wire", "subscribe", "cpu_ms"), figures.dig("wire", "subscribe", "bytes") / 1_000.0)
    end

    def targets(results)
      clients.product(NATIVE & entrants).flat_map do |kind, name|
        {"subscribe" => "to subscribe", "publish" => "per delivery"}.map do |phase, what|
          results.ratio_target("bytes on the wire #{what} over Action Cable's, clients in #{kind.capitalize}: fewer", of(kind, name),
            of(kind, YARDSTICK), "wire", phase, "bytes", less_than: 1)
        end
      end
    end

    def tables(results)
      [table(results, "#{subscribers} clients subscribe (table 1 of the paper)", "subscribe", "connect", "bytes_in_each", "bytes_out_each"),
        table(results, "A message is published to them (table 2 of the paper): each", "publish", "delivery", "bytes_each", published: true)]
    end

    private

    def its_entrants(kind) = (kind == "c") ? entrants : entrants - NO_STREAMS

    def of(kind, name) = cell(kind, name, subscribers)

    def watched(stage, cell, watch)
      figures = stage.load(program: PROGRAMS.fetch(cell.test), subscribers: cell.size, messages: messages, rate: rate, size: size,
        settle: rest, linger: rest) { |phase| watch.call(phase) }
      wire = watch.figures
      each = wire["publish"].to_h { |name, value| [name, (name == "highest_share") ? value : value.fdiv(messages)] }
      figures.merge("wire" => wire.merge("publish" => each))
    end

    def table(results, title, phase, section, *application, published: false)
      rows = groups.flatten.map do |its|
        wire = ->(name, scale) { results.spread(its, "wire", phase, name)&.then { |spread| Spread.new(spread.values.map { |value| value * scale }) } }
        [title_of(its.entrant), *(publisher_of(its.entrant) if published), its.test.capitalize, show(wire.call("highest_share", 100), 1), show(wire.call("cpu_ms", 1), 2),
          show(wire.call("sent", 1e-3), 1), show(wire.call("received", 1e-3), 1), *application.map { |name| show(results.spread(its, section, name), 0) }]
      end
      Table.new(title: title, rows: rows,
        head: ["Server", *(PUBLISHED_BY if published), "Clients", "CPU at its highest, %", "CPU, ms", "server sent, KB", "server received, KB",
          *application.map { |name| NAMES_OF_BYTES.fetch(name) }])
    end

    NAMES_OF_BYTES = {
      "bytes_in_each" => "of that to a client, without headers, B", "bytes_out_each" => "from a client, B", "bytes_each" => "a delivery, without headers, B"
    }.freeze
    private_constant :NAMES_OF_BYTES
  end
end
