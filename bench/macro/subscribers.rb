# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Subscribers < Scenario
    title "Ordinary requests beside subscribers"
    order 10
    about <<~TEXT
      One Puma process with 5 threads: an ordinary route, and the hub. Ordinary requests are made while the
      subscribers are silent ("idle"), and while updates go to all of them ("publishing"). The load runs on one core,
      so the times of ordinary requests include their wait for a client that is reading thousands of events.
    TEXT
    entrants "puma-c", "puma-ruby"
    setting :subscribers, [0, 5_000, 10_000], quick: [0, 500], about: "numbers of subscribers"
    setting :seconds, 4, quick: 1, about: "of each measurement"
    setting :rate, 4, about: "updates a second, each to all subscribers"
    setting :requests, 200, about: "ordinary requests a second"
    setting :connections, 5, about: "connections that make them"

    # Milliseconds around a measurement of ordinary requests, for it to begin and end within its phase.
    MARGIN_MS = 1_000
    LEAST_SUBSCRIBERS = 5_000
    STATES = %w[idle publishing].freeze
    TIMES = %w[mean median min max p99].freeze

    def groups = subscribers.map { |n| entrants.map { |name| of(name, n) } }

    def measure(cell)
      on_stage(cell.entrant) do |stage|
        phases = Queue.new
        asking = Thread.new { STATES.to_h { |state| phases.pop && [state, ask(stage)] } }
        figures = stage.load(subscribers: cell.size, rate: rate, messages: rate * seconds + rate * MARGIN_MS / 1_000,
          settle: seconds * 1_000 + MARGIN_MS) { |phase| phases << phase }
        figures.merge("ordinary" => asking.value)
      ensure
        phases.close # it waits for no phase that does not come
      end
    end

    def headline(figures)
      figures["ordinary"].compact.map { |state, its| format("%s %.2f ms", state, its.dig("publish", "answer_ms", "median")) }.join(", ")
    end

    # Each figure is 1 when all stayed and all was answered.
    def targets(results)
      entrants.map do |name|
        cells = subscribers.select { |n| n >= [LEAST_SUBSCRIBERS, subscribers.max].min }.map { |n| of(name, n) }
        numbers = cells.map(&:size).join(" and ")
        Target.new(name: "share of ordinary requests answered beside #{numbers} subscribers, none of whom lost anything", entrant: name,
          at_least: 1, spread: answered(results, cells), whole: results.whole?(*cells))
      end
    end

    def tables(results)
      requests = subscribers.product(entrants, STATES).map do |n, name, state|
        [title_of(name), n, state, *TIMES.map { |time| show(results.spread(of(name, n), "ordinary", state, "publish", "answer_ms", time)) }]
      end
      updates = subscribers.product(entrants).map do |n, name|
        [title_of(name), n, *%w[median p99 max].map { |time| show(results.spread(of(name, n), "delivery", "latency_ms", time)) }]
      end
      [Table.new(title: "Ordinary requests, ms until answered", head: ["Server", "Subscribers", "State", *TIMES], rows: requests),
        Table.new(title: "Updates to all, ms until received", head: ["Server", "Subscribers", "median", "p99", "max"], rows: updates)]
    end

    private

    def of(name, n) = cell("beside", name, n)

    def ask(stage)
      Load.run(port: stage.server.port, subscribers: 0, settle: 0, method: "GET", publish_path: "/ordinary", publishers: connections,
        rate: requests, messages: requests * seconds)
    end

    def answered(results, cells)
      shares = cells.product(STATES).flat_map { |its, state| results.spread(its, "ordinary", state, "publish", "accepted")&.values || [] }
      shares.empty? ? nil : Spread.new(shares.map { |count| count / (requests * seconds) })
    end
  end
end
