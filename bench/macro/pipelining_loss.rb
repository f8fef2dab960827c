# frozen_string_literal: true

require_relative "../harness/pipelining_conclusion"
require_relative "../pipelining/visits"
require_relative "pipelining_pages"

module Bench
  class PipeliningLoss < Scenario
    include Visits

    title "With packets lost"
    order 63
    about <<~TEXT
      The pages on links that lose one packet of a hundred, either way, and on the same links without loss. Which packets are lost is drawn: a run
      is the median of several visits, each with another draw, which are the same for all clients of a round.
    TEXT
    entrants "curl-6", "curl-h2", "httpx", "hikyaku", quick: %w[httpx hikyaku]
    setting :links, %w[wcdma-260 satellite weak-4g], quick: %w[wcdma-260], about: "links without loss, see bench/link/profiles.rb"
    setting :pages, %w[D G Y], quick: %w[D], about: "D, G, Y"
    setting :draws, 5, quick: 2, about: "visits of a run with loss"

    OURS = PipeliningPages::OURS
    MOST_OVER_WITHOUT = 1.15
    # Where a round trip is a small part of the visit: elsewhere a single packet that is sent again costs more than is allowed.
    TARGETED = %w[wcdma-260].freeze

    def groups = links.product(pages).map { |link, page| entrants.flat_map { |name| [link, lossy(link)].map { |one| of(one, page, name) } } }

    # Both are measured at the same place, one after another.
    def place(cell) = [cell.test.sub(Profiles::LOSSY, ""), cell.size]

    def measure_in(round, cell)
      return super unless cell.test.split.first.end_with?(Profiles::LOSSY)
      visits = Array.new(draws) { |number| super(round * draws + number, cell) }
      times = visits.filter_map { |visit| visit[SECONDS] }.sort
      middle = visits.find { |visit| visit[SECONDS] == times[(times.size - 1) / 2] } || visits.first
      middle.merge("all_seconds" => visits.map { |visit| visit[SECONDS] }, "whole" => visits.all? { |visit| visit["whole"] })
    end

    def targets(results)
      return [] if pages.empty? || !entrants.include?(OURS)
      (links & TARGETED).map do |link|
        cells = pages.to_h { |page| [page, [of(lossy(link), page, OURS), of(link, page, OURS)]] }
        spreads = cells.transform_values { |with, without| results.ratio(with, without, SECONDS) }
        worst("#{link}: with 1 % of the packets lost, over Hikyaku's own time without", OURS, spreads, cells.values.flatten, results,
          at_most: MOST_OVER_WITHOUT)
      end
    end

    def tables(results)
      rows = links.product(pages, entrants).map do |link, page, name|
        with, without = of(lossy(link), page, name), of(link, page, name)
        [link, page, title_of(name), *[without, with].map { |its| show(results.spread(its, SECONDS)) }, show(results.ratio(with, without, SECONDS))]
      end
      [Table.new(title: "Seconds with loss and without", head: ["Link", "Page", "Client", "without, s", "with, s", "with over without"], rows: rows)]
    end

    private

    def lossy(link) = "#{link}#{Profiles::LOSSY}"

    def of(link, page, name) = cell("#{link} #{YARDSTICK} #{page}", name, Sheet::SAMPLES.fetch(page).count)
  end
end
