# frozen_string_literal: true

require_relative "../harness/pipelining_conclusion"
require_relative "../harness/plot"
require_relative "../pipelining/visits"
require_relative "pipelining_pages"

module Bench
  class PipeliningGrid < Scenario
    include Visits

    title "Number and size of images"
    order 62
    about <<~TEXT
      The paper's grid: pages with 1 to 100 images of 256 B to 16 kB, by number and size. *Without* is one connection and one request
      after another, *with* is Hikyaku's client where the origin is known; their ratio is the last plot of each link. Else as for the pages above.
    TEXT
    entrants "net-http", "curl-6", "curl-h2", "httpx", "hikyaku", "hikyaku-list", "hikyaku-open", "hikyaku-new", "chromium", "chromium-proxy",
      quick: %w[net-http curl-6 curl-h2 httpx hikyaku hikyaku-list]
    setting :links, %w[wcdma-550 wcdma-260 satellite weak-4g], quick: %w[wcdma-260 weak-4g], about: "links, see bench/link/profiles.rb"
    setting :servers, %w[nginx], about: "nginx, puma"
    setting :sizes, [256, 2_000, 4_000, 8_000, 16_000], quick: [256, 4_000], about: "bytes of an image"
    setting :counts, [1, 20, 40, 80, 100], quick: [1, 20, 40], about: "images of a page"
    setting :browser_links, %w[wcdma-260], quick: %w[wcdma-260], about: "links on which browsers take part"

    SERIAL = PipeliningPages::SERIAL
    OURS = PipeliningPages::OURS
    LINES = %w[net-http hikyaku curl-6 curl-h2 httpx].freeze # of a plot

    def groups
      links.product(servers, sizes, counts).map { |link, server, size, count| clients_on(link, server).map { |name| of(link, server, size, count, name) } }
    end

    def targets(results) = links.flat_map { |link| [*over_bound(results, link), *over_others(results, link), *unknown(results, link)] }

    def tables(results)
      links.product(servers).flat_map { |link, server| [times(results, link, server), over_the_bound(results, link, server)] }
    end

    def plots(results)
      links.product(servers).flat_map { |link, server|
        [*sizes.map { |size| ["grid-#{link}-#{server}-#{size}.svg", by_number(results, link, server, size)] },
          ["grid-#{link}-#{server}-ratio.svg", ratios(results, link, server)]]
      }.to_h.compact
    end

    private

    def of(link, server, size, count, name) = cell("#{link} #{server} #{size}", name, count)

    def clients_on(link, server) = clients_of(server).reject { |name| Entrants.fetch(name).browser? && !browser_links.include?(link) }

    # By what is said of them.
    def cells(link, name, least: 1)
      sizes.product(counts.select { |count| count >= least }).to_h { |size, count| [Sheet.new(size, count).to_s, of(link, YARDSTICK, size, count, name)] }
    end

    def taking_part?(*names) = servers.include?(YARDSTICK) && (names - entrants).empty?

    def over_bound(results, link)
      [[OURS, PipeliningPages::MOST_OVER_BOUND, "new connections"],
        [PipeliningPages::OPEN, PipeliningPages::MOST_OVER_BOUND_OPEN, "connections open"]].filter_map do |name, most, how|
        its = cells(link, name, least: PipeliningPages::MANY)
        next unless most.key?(link) && its.any? && taking_part?(name)
        worst("#{link}: grid from #{PipeliningPages::MANY} images on, Hikyaku over the bound, #{how}", name,
          its.transform_values { |one| results.spread(one, OVER_BOUND) }, its.values, results, at_most: most[link])
      end
    end

    def over_others(results, link)
      [[PipeliningPages::LISTED, PipeliningPages::LISTED_OTHERS, "the best of curl's, given the URLs"],
        [OURS, PipeliningPages::READING_OTHERS, "httpx, reading the HTML"]].filter_map do |name, others, what|
        others &= entrants
        next unless others.any? && taking_part?(name)
        theirs = others.map { |other| cells(link, other) }
        own = cells(link, name)
        spreads = own.to_h { |words, one| [words, over_best(results, one, theirs.map { |its| its.fetch(words) })] }
        worst("#{link}: whole grid, Hikyaku over #{what}", name, spreads, [own, *theirs].flat_map(&:values), results,
          at_most: PipeliningPages::MOST_OVER_OTHERS)
      end
    end

    def unknown(results, link)
      return [] unless taking_part?(PipeliningPages::UNKNOWN, OURS)
      known, new = [OURS, PipeliningPages::UNKNOWN].map { |name| cells(link, name) }
      spreads = new.to_h { |words, one| [words, results.combine([one, known.fetch(words)], ROUND_TRIPS) { |more, less| more - less }] }
      [worst("#{link}: whole grid, round trips more where the origin is not known", PipeliningPages::UNKNOWN, spreads, new.values + known.values, results,
        at_most: PipeliningPages::MOST_MORE_ROUND_TRIPS)]
    end

    def times(results, link, server)
      rows = each_page(link, server) do |its|
        [brief(bound(results, its)), *its.map { |one| brief(results.spread(one, SECONDS)) }, brief(ratio(results, its))]
      end
      Table.new(title: "Seconds (medians), #{heading(link, server)}", rows: rows,
        head: ["Images", "the bound", *clients_on(link, server).map { |name| title_of(name) }, "without over with"])
    end

    def over_the_bound(results, link, server)
      rows = each_page(link, server) { |its| its.map { |one| show(results.spread(one, OVER_BOUND)) } }
      Table.new(title: "Over the bound, #{heading(link, server)}", rows: rows, head: ["Images", *clients_on(link, server).map { |name| title_of(name) }])
    end

    def each_page(link, server)
      sizes.product(counts).map { |size, count| [Sheet.new(size, count), *yield(clients_on(link, server).map { |name| of(link, server, size, count, name) })] }
    end

    def bound(results, its) = its.filter_map { |one| results.spread(one, "bound") }.first

    # The paper's: without over with.
    def ratio(results, its)
      serial, ours = [SERIAL, OURS].map { |name| its.find { |one| one.entrant == name } }
      results.ratio(serial, ours, SECONDS) if serial && ours
    end

    # The paper's figure 5.1: one plot a size.
    def by_number(results, link, server, size)
      series = (LINES & clients_on(link, server)).filter_map do |name|
        points = counts.filter_map { |count| point(count, results.spread(of(link, server, size, count, name), SECONDS)) }
        {name: title_of(name), points: points} if points.any?
      end
      series << bound_line(results, link, server, size) if series.any?
      Plot.new(title: "Images of #{size} B, #{link}, #{server}", x: "images", y: "s", x_log: false, series: series) if series.any?
    end

    def bound_line(results, link, server, size)
      points = counts.filter_map do |count|
        point(count, bound(results, clients_on(link, server).map { |name| of(link, server, size, count, name) }))
      end
      {name: "the bound", points: points}
    end

    # And its sixth: without over with, a line for each size.
    def ratios(results, link, server)
      series = sizes.filter_map do |size|
        points = counts.filter_map { |count| point(count, ratio(results, [SERIAL, OURS].map { |name| of(link, server, size, count, name) })) }
        {name: "#{size} B", points: points} if points.any?
      end
      Plot.new(title: "Without over with, #{link}, #{server}", x: "images", y: "ratio of the times", x_log: false, series: series) if series.any?
    end

    def point(count, spread) = spread && [count, spread.median, spread.min, spread.max]
  end
end
