# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Memory < Scenario
    title "Memory of an idle subscriber"
    order 2
    about <<~TEXT
      By how much the server's resident memory grows when subscribers connect, and wait; divided by their number. What
      the kernel keeps for their sockets is not in it. One update at the end proves that all are there.
    TEXT
    entrants "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers"
    setting :rest, 1_000, quick: 300, about: "milliseconds of rest before memory is looked at"

    MOST_KB = 2
    EACH = %w[connect rss_kb_each].freeze

    def groups = [entrants.map { |name| cell("memory", name, subscribers) }]

    def measure(cell)
      on_stage(cell.entrant) { |stage| stage.load(subscribers: cell.size, settle: rest, messages: 1, sync: true) }
    end

    def headline(figures) = format("%.2f KB a subscriber", figures.dig(*EACH))

    def targets(results)
      [results.target("KB of memory per idle subscriber, #{subscribers} subscribers", of("hikyaku-c"), *EACH, at_most: MOST_KB)]
    end

    def tables(results)
      rows = entrants.map { |name| [title_of(name), show(results.spread(of(name), *EACH)), show(megabytes(results, name), 1)] }
      [Table.new(title: "Resident memory", head: ["Server", "KB per subscriber", "MB in the end"], rows: rows)]
    end

    def plots(results)
      figures = entrants.to_h { |name| [title_of(name), results.spread(of(name), *EACH)] }
      bars("memory.svg", figures, title: "Memory per idle subscriber", unit: "KB", guide: {y: MOST_KB, label: "target"})
    end

    private

    def of(name) = cell("memory", name, subscribers)

    def megabytes(results, name)
      results.spread(of(name), "memory", "rss_kb")&.then { |spread| Spread.new(spread.values.map { |kb| kb / 1024 }) }
    end
  end
end
