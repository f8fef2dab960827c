# frozen_string_literal: true

require_relative "../harness/pipelining_conclusion"
require_relative "../pipelining/visits"

module Bench
  class PipeliningLoopback < Scenario
    include Visits

    title "A fast link"
    order 65
    at_once 1
    about <<~TEXT
      How many images of 256 B a library fetches from nginx in a second over loopback, from one thread, and what a request costs it of CPU: one
      after another on a kept connection, or a hundred at once, as the library does that best; each has another URL, and nothing is cached.
      Server and client each have a core.
    TEXT
    entrants "net-http", "excon", "httpx", "hikyaku"
    setting :styles, %w[each batch], about: "each: one after another; batch: a hundred at once"
    setting :requests, 20_000, quick: 2_000, about: "requests of a run"

    OURS = "hikyaku"
    OTHERS = %w[httpx excon].freeze
    WITHOUT_BATCH = %w[net-http].freeze
    RATE = "per_second"
    NAMES = {"each" => "one after another", "batch" => "a hundred at once"}.freeze

    def self.obstacle = nil

    # There is no link.
    def self.versions = super.slice("nginx")

    def groups = styles.map { |style| those_of(style).map { |name| cell(style, name, requests) } }

    def measure_in(_round, cell) = measure(cell)

    def measure(cell)
      sheet = Sheet.new(256, 100)
      Site.run(YARDSTICK, sheets: [sheet]) { |site| Entrants.fetch(cell.entrant).rate(site, sheet, cell.test, cell.size) }
    end

    def headline(figures) = format("%.0f requests a second, %.0f µs of CPU each", figures.dig(RATE), figures.dig("cpu_us_each"))

    def targets(results)
      return [] unless entrants.include?(OURS)
      styles.product(OTHERS & entrants).map do |style, other|
        results.ratio_target("loopback, requests a second, #{NAMES.fetch(style)}, over #{title_of(other)}", cell(style, OURS, requests),
          cell(style, other, requests), RATE, at_least: 1)
      end
    end

    def tables(results)
      styles.map do |style|
        rows = those_of(style).map do |name|
          its = cell(style, name, requests)
          [title_of(name), show(results.spread(its, RATE), 0), show(results.spread(its, "cpu_us_each"), 0), show(results.ratio(cell(style, OURS, requests), its, RATE))]
        end
        Table.new(title: "Requests a second, #{NAMES.fetch(style)}", head: ["Client", "a second", "CPU µs each", "Hikyaku's over it"], rows: rows)
      end
    end

    def plots(results)
      styles.map { |style|
        figures = those_of(style).to_h { |name| [title_of(name), results.spread(cell(style, name, requests), RATE)] }
        bars("loopback-#{style}.svg", figures, title: "Requests a second, #{NAMES.fetch(style)}", unit: "loopback")
      }.reduce({}, :merge)
    end

    private

    def those_of(style) = (style == "batch") ? entrants - WITHOUT_BATCH : entrants
  end
end
