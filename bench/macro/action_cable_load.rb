# frozen_string_literal: true

require_relative "../harness/doors"
require_relative "../harness/meter"
require_relative "../link/link"

module Bench
  class ActionCableLoad < Scenario
    include Doors
    extend NodeClients

    title "A hundred clients: CPU, and bytes on the wire"
    order 40
    about <<~TEXT
      The cost of 100 clients that subscribe at once to one topic, and of a message to all of them: the server's CPU, and the bytes on a link
      between two networks that has room to spare, as Ethernet frames, acknowledgements included. The clients are those of pages, in Node.js
      (`eventsource` for streams, Action Cable's own for its WebSocket), and those of the load generator in C, which send as little as
      possible. A separate connection publishes ten messages in a second. The highest CPU is the greatest share of a core in any tenth of a
      second, which contains one message. Nothing is published while clients subscribe; closing is not measured. message_bus has another
      client: only the clients in C read it.
    TEXT
    headline "subscribing %.1f ms of CPU, %.0f bytes on the wire", "wire.subscribe.cpu_ms", "wire.subscribe.bytes"
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [YARDSTICK, "rails-c"])
    setting :subscribers, 100, quick: 30, about: "clients"
    setting :messages, 10, quick: 5, about: "messages published"
    setting :rate, 10, about: "messages a second"
    setting :clients, %w[node c], about: "the clients"
    setting :rest, 1_000, quick: 400, about: "milliseconds of rest, in which the link is read"

    MEGABITS = 10_000 # far more than any needs
    PROGRAMS = {"node" => "node", "c" => "load"}.freeze
    NATIVE = %w[rails-c hikyaku-c].freeze

    def self.obstacle = EthernetLink.obstacle || super

    def groups = clients.map { |kind| ((kind == "c") ? entrants : entrants - NO_STREAMS).map { |name| of(kind, name) } }.reject(&:empty?)

    def measure(cell)
      EthernetLink.run(MEGABITS) do |link|
        on_rested_stage(cell.entrant, link: link) do |stage|
          CpuMeter.run(stage.server.pids) { |meter| watched(stage, cell, WireMeter.new(link, meter, rest)) }
        end
      end
    end

    def targets
      clients.product(NATIVE & entrants, [["subscribe", "to subscribe"], ["publish", "per delivery"]]).map do |kind, name, (phase, what)|
        ratio_target("bytes on the wire #{what} over Action Cable's, clients in #{kind.capitalize}: fewer", of(kind, name), of(kind, YARDSTICK), "wire.#{phase}.bytes",
          less_than: 1)
      end
    end

    def tables
      kind = ["Clients", ->(its) { its.test.capitalize }]
      [table("#{subscribers} clients subscribe (table 1 of the paper)", [["Server", :title], kind, *wire("subscribe"),
        ["of that to a client, without headers, B", "connect.bytes_in_each:0"], ["from a client, B", "connect.bytes_out_each:0"]]),
        table("A message is published to them (table 2 of the paper): each", [*server_columns, kind, *wire("publish"),
          ["a delivery, without headers, B", "delivery.bytes_each:0"]])]
    end

    private

    def of(kind, name) = cell(kind, name, subscribers)

    def watched(stage, cell, watch)
      figures = stage.load(program: PROGRAMS.fetch(cell.test), subscribers: cell.size, messages: messages, rate: rate, size: size, settle: rest,
        linger: rest) { |phase| watch.call(phase) }
      wire = watch.figures
      each = wire["publish"].to_h { |name, value| [name, (name == "highest_share") ? value : value.fdiv(messages)] }
      figures.merge("wire" => wire.merge("publish" => each))
    end

    def wire(phase)
      {"CPU at its highest, %" => ["highest_share", 100, 1], "CPU, ms" => ["cpu_ms", 1, 2], "server sent, KB" => ["sent", 1e-3, 1], "server received, KB" => ["received", 1e-3, 1]}
        .map { |head, (name, scale, digits)| [head, ->(its) { show(spread(its, "wire.#{phase}.#{name}")&.scale(scale), digits) }] }
    end
  end
end
