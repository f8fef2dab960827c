# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Memory < Scenario
    title "Memory of an idle subscriber"
    order 2
    about <<~TEXT
      The growth of the server's resident memory when subscribers connect and wait, divided by their number. The kernel's memory for
      their sockets is not included. One update at the end proves that all are connected.
    TEXT
    headline "%.2f KB a subscriber", "connect.rss_kb_each"
    entrants "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers"
    setting :rest, 1_000, quick: 300, about: "milliseconds of rest before memory is read"

    MAX_KB = 2
    EACH = "connect.rss_kb_each"

    def measure(cell) = on_stage(cell.entrant) { |stage| stage.load(subscribers: cell.size, settle: rest, messages: 1, sync: true) }

    def targets = [target("KB of memory per idle subscriber, #{subscribers} subscribers", of("hikyaku-c"), EACH, at_most: MAX_KB)]

    def tables
      megabytes = ->(its) { show(spread(its, "memory.rss_kb")&.scale(1.0 / 1024), 1) }
      [table("Resident memory", [["Server", :title], ["KB per subscriber", EACH], ["MB in the end", megabytes]])]
    end

    def plots = bars("memory.svg", EACH, title: "Memory per idle subscriber", unit: "KB", guide: {y: MAX_KB, label: "target"})

    private

    def of(name) = cell("memory", name, subscribers)
  end
end
