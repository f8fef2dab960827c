# frozen_string_literal: true

require_relative "../pipelining/visits"

module Bench
  class PipeliningLoopback < Scenario
    include Visits

    title "A fast link"
    order 65
    at_once 1
    about <<~TEXT
      The images of 256 B that a library fetches from nginx in a second over the loopback, from one thread, and its CPU for a request: one after
      another on a kept connection, or a hundred at once, as the library does that best; each has another URL, and nothing is cached. Server
      and client each have a core.
    TEXT
    headline "%.0f requests a second, %.0f µs of CPU each", "per_second", "cpu_us_each"
    entrants "net-http", "excon", "httpx", "hikyaku"
    setting :styles, %w[each batch], about: "each: one after another; batch: a hundred at once"
    setting :requests, 20_000, quick: 2_000, about: "requests of a run"

    OTHERS = %w[httpx excon].freeze
    RATE = "per_second"
    NAMES = {"each" => "one after another", "batch" => "a hundred at once"}.freeze

    def self.obstacle = nil

    def self.versions = super.slice("nginx") # there is no link

    def groups = styles.map { |style| ((style == "batch") ? entrants - ["net-http"] : entrants).map { |name| cell(style, name, requests) } }

    def measure_in(_round, cell)
      sheet = Sheet.new(256, 100)
      Site.run(YARDSTICK, sheets: [sheet]) { |site| Entrants.fetch(cell.entrant).rate(site, sheet, cell.test, cell.size) }
    end

    def targets
      return [] unless entrants.include?(OURS)
      styles.product(OTHERS & entrants).map do |style, other|
        ratio_target("loopback, requests a second, #{NAMES.fetch(style)}, over #{title_of(other)}", cell(style, OURS, requests), cell(style, other, requests), RATE, at_least: 1)
      end
    end

    def tables
      styles.zip(groups).map do |style, its|
        table("Requests a second, #{NAMES.fetch(style)}", [["Client", :title], ["a second", "#{RATE}:0"], ["CPU µs each", "cpu_us_each:0"],
          ["Hikyaku's over it", ->(one) { ratio(cell(style, OURS, requests), one, RATE) }]], its)
      end
    end

    def plots
      styles.zip(groups).map { |style, its| bars("loopback-#{style}.svg", RATE, its, title: "Requests a second, #{NAMES.fetch(style)}", unit: "loopback") }.reduce({}, :merge)
    end
  end
end
