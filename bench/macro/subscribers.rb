# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  class Subscribers < Scenario
    title "Ordinary requests beside subscribers"
    order 10
    about <<~TEXT
      One Puma process with 5 threads serves an ordinary route and the hub. Ordinary requests are made while the subscribers wait ("idle"),
      and while updates go to all of them ("publishing"). The load runs on one core: the times of ordinary requests include their wait
      for a client that reads thousands of events.
    TEXT
    headline "idle %.2f ms, publishing %.2f ms", "ordinary.idle.publish.answer_ms.median", "ordinary.publishing.publish.answer_ms.median"
    entrants "puma-c", "puma-ruby"
    setting :subscribers, [0, 5_000, 10_000], quick: [0, 500], about: "numbers of subscribers"
    setting :seconds, 4, quick: 1, about: "of each measurement"
    setting :rate, 4, about: "updates a second, each to all subscribers"
    setting :requests, 200, about: "ordinary requests a second"
    setting :connections, 5, about: "connections that make them"

    MARGIN_MS = 1_000 # so that ordinary requests are measured within their phase
    MIN_SUBSCRIBERS = 5_000
    STATES = %w[idle publishing].freeze

    def groups = subscribers.map { |n| entrants.map { |name| of(name, n) } }

    def measure(cell)
      on_stage(cell.entrant) do |stage|
        phases = Queue.new
        asking = Thread.new { STATES.to_h { |state| phases.pop && [state, ask(stage)] } }
        figures = stage.load(subscribers: cell.size, rate: rate, messages: rate * seconds + rate * MARGIN_MS / 1_000,
          settle: seconds * 1_000 + MARGIN_MS) { |phase| phases << phase }
        figures.merge("ordinary" => asking.value)
      ensure
        phases.close # a phase may not begin
      end
    end

    # A figure is 1 when all subscribers stayed and all requests were answered.
    def targets
      entrants.map do |name|
        its = subscribers.select { |n| n >= [MIN_SUBSCRIBERS, subscribers.max].min }.map { |n| of(name, n) }
        shares = its.product(STATES).flat_map { |one, state| spread(one, "ordinary.#{state}.publish.accepted")&.values || [] }
        Target.new(name: "share of ordinary requests answered beside #{its.map(&:size).join(" and ")} subscribers, none of whom lost anything", entrant: name,
          at_least: 1, spread: (Spread.new(shares).scale(1.0 / (requests * seconds)) if shares.any?), whole: whole?(*its))
      end
    end

    def tables
      ordinary = subscribers.product(entrants, STATES).map do |n, name, state|
        [title_of(name), n, state, *times("ordinary.#{state}.publish.answer_ms").map { |_, path| content(of(name, n), path) }]
      end
      [Table.new("Ordinary requests, ms until answered", ["Server", "Subscribers", "State", *TIMES], ordinary),
        table("Updates to all, ms until received", [["Server", :title], ["Subscribers", :size], *times("delivery.latency_ms", names: %w[median p99 max])])]
    end

    private

    def of(name, n) = cell("beside", name, n)

    def ask(stage)
      Load.run(port: stage.server.port, subscribers: 0, settle: 0, method: "GET", publish_path: "/ordinary", publishers: connections, rate: requests,
        messages: requests * seconds)
    end
  end
end
