# frozen_string_literal: true

require_relative "../harness/doors"
require_relative "../harness/node"
require_relative "../harness/scenario"

module Bench
  class ActionCableOutage < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "Cut off for a second"
    order 45
    at_most_rounds 1
    about <<~TEXT
      What is lost when the network is: clients as pages have them, in Node.js, read 1,000 updates, 50 a second; after 250 every connection breaks
      off, and for a second none comes about. The clients come back by themselves, when their own rules let them: nobody helps them. Counted is what
      each of them never got, and what it got twice. The publisher is not cut off. message_bus has a client of its own, and has no part in this.
    TEXT
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS - NO_STREAMS, quick: [YARDSTICK, "rails-c"])
    setting :subscribers, 100, quick: 10, about: "clients"
    setting :messages, 1_000, quick: 60, about: "updates"
    setting :rate, 50, quick: 15, about: "updates a second"
    setting :cut_after, 250, quick: 5, about: "updates; then they are cut off"
    setting :cut_seconds, 1, about: "for so long"
    setting :patience, 5, quick: 2, about: "seconds of silence after the last, then what is missing is lost"
    setting :size, 200, about: "bytes of a message"

    LOST = %w[delivery lost].freeze

    def self.obstacle = Node.obstacle

    def self.versions = Node.versions

    def groups = [entrants.map { |name| of(name) }]

    def measure(cell)
      on_rested_stage(cell.entrant, first_door(cell.entrant)) do |stage|
        stage.load(program: "node", subscribers: cell.size, messages: messages, rate: rate, publishers: 4, size: size, cut_after: cut_after,
          cut_seconds: cut_seconds, patience: patience)
      end
    end

    def headline(figures) = format("%d of %d lost", *%w[lost expected].map { |name| figures.dig("delivery", name) })

    def targets(results)
      (MOUNTED + STANDALONE).intersection(entrants).map do |name|
        results.target("messages lost when #{subscribers} clients are cut off for #{cut_seconds} s", of(name), *LOST, at_most: 0)
      end
    end

    def tables(results)
      rows = entrants.map do |name|
        [title_of(name), publisher_of(name), show(results.spread(of(name), *LOST), 0), show(results.share(of(name), LOST, %w[delivery expected]), 3),
          show(results.spread(of(name), "delivery", "twice"), 0), *%w[median max].map { |time| show(results.spread(of(name), "outage", "back_ms", time), 0) },
          show(results.spread(of(name), "outage", "away"), 0)]
      end
      [Table.new(title: "#{messages} updates to #{subscribers} clients", rows: rows,
        head: ["Server", PUBLISHED_BY, "deliveries lost", "share", "came twice", "back after, median, ms", "back after, the last, ms",
          "not back by the end"])]
    end

    def plots(results)
      figures = entrants.to_h { |name| [title_of(name), results.spread(of(name), *LOST)] }
      bars("outage.svg", figures, title: "Deliveries lost, of #{messages * subscribers}", unit: "deliveries")
    end

    private

    def of(name) = cell("outage", name, subscribers)
  end
end
