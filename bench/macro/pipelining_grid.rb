# frozen_string_literal: true

require_relative "../pipelining/visits"

module Bench
  class PipeliningGrid < Scenario
    include Visits

    title "Number and size of images"
    order 62
    about <<~TEXT
      The paper's grid: pages with 1 to 100 images of 256 B to 16 kB, by number and size. *Without* is one connection and one request after
      another, *with* is Hikyaku's client where the origin is known; the last plot of each link shows their ratio. All else is as for the
      pages above.
    TEXT
    entrants "net-http", "curl-6", "curl-h2", "httpx", "hikyaku", "hikyaku-list", "hikyaku-open", "hikyaku-new", "chromium", "chromium-proxy",
      quick: %w[net-http curl-6 curl-h2 httpx hikyaku hikyaku-list]
    setting :links, %w[wcdma-550 wcdma-260 satellite weak-4g], quick: %w[wcdma-260 weak-4g], about: "links, see bench/link/link.rb"
    setting :servers, %w[nginx], about: "nginx, puma"
    setting :sizes, [256, 2_000, 4_000, 8_000, 16_000], quick: [256, 4_000], about: "bytes of an image"
    setting :counts, [1, 20, 40, 80, 100], quick: [1, 20, 40], about: "images of a page"
    setting :browser_links, %w[wcdma-260], quick: %w[wcdma-260], about: "links on which browsers take part"

    LINES = %w[net-http hikyaku curl-6 curl-h2 httpx].freeze # of a plot
    BOUND = "the bound"

    def groups = links.product(servers, sizes, counts).map { |link, *rest| row(link, *rest) }

    def targets
      links.flat_map do |link|
        [*over_bound(link, "grid from #{MANY} images on") { |name| its(link, name, MANY) }, *over_others(link, "whole grid") { |name| its(link, name) },
          *unknown(link, "whole grid") { |name| its(link, name) }]
      end
    end

    def tables
      links.product(servers).flat_map do |link, server|
        rows = sizes.product(counts).map { |size, count| [Sheet.new(size, count), row(link, server, size, count)] }
        titles = clients_on(link, server).map { |name| title_of(name) }
        [Table.new("Seconds (medians), #{heading(link, server)}", ["Images", BOUND, *titles, "without over with"],
          rows.map { |sheet, its| [sheet, brief(bound_of(its)), *its.map { |one| brief(spread(one, SECONDS)) }, brief(without_over_with(its))] }),
          Table.new("Over the bound, #{heading(link, server)}", ["Images", *titles], rows.map { |sheet, its| [sheet, *its.map { |one| show(spread(one, OVER_BOUND)) }] })]
      end
    end

    # The paper's figure 5.1, one plot a size; and its sixth: without over with, a line for each size.
    def plots
      links.product(servers).flat_map { |link, server|
        sizes.map { |size|
          lines("grid-#{link}-#{server}-#{size}.svg", [*(LINES & clients_on(link, server)), BOUND], counts, title: "Images of #{size} B, #{link}, #{server}", x: "images", y: "s",
            x_log: false) { |name, count| (name == BOUND) ? bound_of(row(link, server, size, count)) : spread(of(link, server, size, count, name), SECONDS) }
        } << lines("grid-#{link}-#{server}-ratio.svg", sizes.map { |size| "#{size} B" }, counts, title: "Without over with, #{link}, #{server}", x: "images",
          y: "ratio of the times", x_log: false) { |size, count| without_over_with(row(link, server, size.to_i, count)) }
      }.reduce({}, :merge)
    end

    private

    def of(link, server, size, count, name) = cell("#{link} #{server} #{size}", name, count)

    def row(link, server, size, count) = clients_on(link, server).map { |name| of(link, server, size, count, name) }

    def clients_on(link, server) = clients_of(server).reject { |name| Entrants.fetch(name).browser? && !browser_links.include?(link) }

    # The cells of a client by page, on the server of the targets.
    def its(link, name, least = 1)
      sizes.product(counts.select { |count| count >= least }).to_h { |size, count| [Sheet.new(size, count).to_s, of(link, YARDSTICK, size, count, name)] }
    end

    def without_over_with(its)
      serial, ours = [SERIAL, OURS].map { |name| its.find { |one| one.entrant == name } }
      ratio(serial, ours, SECONDS) if serial && ours
    end
  end
end
