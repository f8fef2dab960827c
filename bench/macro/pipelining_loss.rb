# frozen_string_literal: true

require_relative "../pipelining/visits"

module Bench
  class PipeliningLoss < Scenario
    include Visits

    title "With packets lost"
    order 63
    about <<~TEXT
      The pages on links that lose one packet of a hundred, either way, and on the same links without loss. A seed determines the lost packets:
      a run is the median of several visits with different seeds, which are the same for all clients of a round.
    TEXT
    entrants "curl-6", "curl-h2", "httpx", "hikyaku", quick: %w[httpx hikyaku]
    setting :links, %w[wcdma-260 satellite weak-4g], quick: %w[wcdma-260], about: "links without loss, see bench/link/link.rb"
    setting :pages, %w[D G Y], quick: %w[D], about: "D, G, Y"
    setting :draws, 5, quick: 2, about: "visits of a run with loss"

    LOSSY = "-lossy"
    MAX_OVER_WITHOUT = 1.15
    # Where a round trip is a small part of the visit: elsewhere one retransmission costs more than the target allows.
    TARGETED = %w[wcdma-260].freeze

    def groups = links.product(pages).map { |link, page| entrants.flat_map { |name| ["", LOSSY].map { |loss| of(link + loss, page, name) } } }

    # Both are measured at the same place, one after another.
    def place(cell) = [cell.test.sub(LOSSY, ""), cell.size]

    def measure_in(round, cell)
      return super unless cell.test.split.first.end_with?(LOSSY)
      visits = Array.new(draws) { |number| super(round * draws + number, cell) }
      times = visits.filter_map { |visit| visit[SECONDS] }.sort
      middle = visits.find { |visit| visit[SECONDS] == times[(times.size - 1) / 2] } || visits.first
      middle.merge("all_seconds" => visits.map { |visit| visit[SECONDS] }, "whole" => visits.all? { |visit| visit["whole"] })
    end

    def targets
      return [] if pages.empty? || !entrants.include?(OURS)
      (links & TARGETED).map do |link|
        both = pages.to_h { |page| [page, [of(link + LOSSY, page, OURS), of(link, page, OURS)]] }
        worst("#{link}: with 1 % of the packets lost, over Hikyaku's own time without", OURS, both.transform_values { |cells| ratio(*cells, SECONDS) }, both.values.flatten,
          at_most: MAX_OVER_WITHOUT)
      end
    end

    def tables
      lossy = ->(its) { of(its.test.split.first + LOSSY, its.test.split.last, its.entrant) }
      [table("Seconds with loss and without", [["Link", ->(its) { its.test.split.first }], ["Page", ->(its) { its.test.split.last }], ["Client", :title], ["without, s", SECONDS],
        ["with, s", ->(its) { spread(lossy.call(its), SECONDS) }], ["with over without", ->(its) { ratio(lossy.call(its), its, SECONDS) }]],
        cells.reject { |its| its.test.include?(LOSSY) })]
    end

    private

    def of(link, page, name) = cell("#{link} #{YARDSTICK} #{page}", name, Sheet::SAMPLES.fetch(page).count)
  end
end
