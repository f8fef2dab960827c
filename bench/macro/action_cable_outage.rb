# frozen_string_literal: true

require_relative "../harness/doors"

module Bench
  class ActionCableOutage < Scenario
    include Doors
    extend NodeClients

    title "Cut off for a second"
    order 45
    at_most_rounds 1
    about <<~TEXT
      The losses when the network fails: clients of pages, in Node.js, read 1,000 updates, 50 a second. After 250 updates every connection
      breaks, and for a second none can be made. The clients reconnect by their own rules. The figures count the updates that each client
      never received, and those that it received twice. The publisher is not cut off. message_bus has another client, and does not take part.
    TEXT
    headline "%d of %d lost", "delivery.lost", "delivery.expected"
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS - NO_STREAMS, quick: [YARDSTICK, "rails-c"])
    setting :subscribers, 100, quick: 10, about: "clients"
    setting :messages, 1_000, quick: 60, about: "updates"
    setting :rate, 50, quick: 15, about: "updates a second"
    setting :cut_after, 250, quick: 5, about: "updates; then the clients are cut off"
    setting :cut_seconds, 1, about: "of the outage"
    setting :patience, 5, quick: 2, about: "seconds of silence after the last update; then the missing ones are lost"

    LOST = "delivery.lost"

    def measure(cell)
      on_rested_stage(cell.entrant) do |stage|
        stage.load(program: "node", subscribers: cell.size, messages: messages, rate: rate, publishers: 4, size: size, cut_after: cut_after,
          cut_seconds: cut_seconds, patience: patience)
      end
    end

    def targets
      HIKYAKU.intersection(entrants).map { |name| target("messages lost when #{subscribers} clients are cut off for #{cut_seconds} s", of(name), LOST, at_most: 0) }
    end

    def tables
      share = ->(its) { show(spread(its, LOST)&.scale(1.0 / (messages * subscribers)), 3) }
      [table("#{messages} updates to #{subscribers} clients", [*server_columns, ["deliveries lost", "#{LOST}:0"], ["share", share], ["came twice", "delivery.twice:0"],
        ["back after, median, ms", "outage.back_ms.median:0"], ["back after, the last, ms", "outage.back_ms.max:0"], ["not back by the end", "outage.away:0"]])]
    end

    def plots = bars("outage.svg", LOST, title: "Deliveries lost, of #{messages * subscribers}", unit: "deliveries")

    private

    def of(name) = cell("outage", name, subscribers)
  end
end
