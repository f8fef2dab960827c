# frozen_string_literal: true

require_relative "../harness/pipelining_conclusion"
require_relative "../pipelining/visits"

module Bench
  class PipeliningPages < Scenario
    include Visits

    # Browsers do not only wait.
    at_once Etc.nprocessors
    title "Pages"
    order 61
    about <<~TEXT
      The paper's three pages, from the request for the HTML until the last image is there: 77 images of 1.2 kB (D), 24 of 2.0 kB (G), 5 of
      6.2 kB (Y). Each visit is a new process with new connections, but where it is said that they are open; programs have fetched a small page
      on the loopback before the clock runs, browsers have an empty profile. Every body is checked to be the right one. Where an origin is known, the
      client or proxy has been there before, in another process, and remembers how it went; beside it is what it takes where nothing is known.
      curl's time is less what it takes to start; Chromium's is its own, from the beginning of the navigation to the load event. HTTP/2 is over
      TLS 1.3, with the handshake; all else is plain HTTP. In the paper the page of 77 took 27 seconds without pipelining, and 8 with.
    TEXT
    entrants "net-http", "curl-6", "curl-h2", "httpx", "hikyaku", "hikyaku-list", "hikyaku-open", "hikyaku-new", "chromium", "chromium-h2",
      "chromium-proxy", "chromium-proxy-open", "chromium-proxy-new",
      quick: %w[net-http curl-6 curl-h2 httpx hikyaku hikyaku-list chromium chromium-proxy]
    setting :links, %w[wcdma-550 wcdma-260 satellite weak-4g], quick: %w[wcdma-260 weak-4g], about: "links, see bench/link/profiles.rb"
    setting :servers, %w[nginx puma], quick: %w[nginx], about: "nginx, puma"
    setting :pages, %w[D G Y], about: "D, G, Y"

    SERIAL = "net-http"
    OURS = "hikyaku"
    LISTED = "hikyaku-list"
    OPEN = "hikyaku-open"
    UNKNOWN = "hikyaku-new"
    LISTED_OTHERS = %w[curl-6 curl-h2].freeze
    READING_OTHERS = %w[httpx].freeze
    BROWSER = "chromium"
    BROWSER_H2 = "chromium-h2"
    THROUGH = "chromium-proxy"
    THROUGH_UNKNOWN = "chromium-proxy-new"

    MOST_OF_SERIAL = {"wcdma-260" => 0.14}.freeze
    MOST_OVER_BOUND = {"wcdma-260" => 1.12, "weak-4g" => 1.2, "satellite" => 1.65}.freeze
    MOST_OVER_BOUND_OPEN = {"satellite" => 0.8}.freeze
    MANY = 20 # images
    MOST_OVER_OTHERS = 1.03
    MOST_MORE_ROUND_TRIPS = 2
    MOST_OF_DIRECT = {
      "wcdma-260" => {"D" => 0.58, "G" => 0.76, "Y" => 0.86}, "weak-4g" => {"D" => 0.5, "G" => 0.75, "Y" => 0.95},
      "satellite" => {"D" => 0.4, "G" => 0.75, "Y" => 1.0}
    }.freeze
    MOST_OF_H2 = {"wcdma-260" => 0.74, "weak-4g" => 0.94, "satellite" => 0.9}.freeze

    def groups = links.product(servers, pages).map { |link, server, page| clients_of(server).map { |name| of(link, server, page, name) } }

    def targets(results)
      links.flat_map do |link|
        [*over_serial(results, link), *over_bound(results, link), *over_others(results, link), *unknown(results, link), *browsers(results, link)]
      end
    end

    def tables(results)
      links.product(servers).flat_map { |link, server| [times(results, link, server), details(results, link, server)] }
    end

    def plots(results)
      links.product(servers).map { |link, server| bars_of(results, link, server) }.reduce({}, :merge)
    end

    private

    def of(link, server, page, name) = cell("#{link} #{server} #{page}", name, Sheet::SAMPLES.fetch(page).count)

    def its(link, page, name) = of(link, YARDSTICK, page, name)

    # Whether all of these are measured, on nginx.
    def taking_part?(*names) = servers.include?(YARDSTICK) && (names - entrants).empty?

    def over_serial(results, link)
      return [] unless MOST_OF_SERIAL.key?(link) && pages.include?("D") && taking_part?(OURS, SERIAL)
      [results.ratio_target("#{link}: 77 × 1.2 kB, Hikyaku over one serial connection", its(link, "D", OURS), its(link, "D", SERIAL), SECONDS,
        at_most: MOST_OF_SERIAL[link])]
    end

    def over_bound(results, link)
      many = pages.select { |page| Sheet::SAMPLES[page].count >= MANY }
      [[OURS, MOST_OVER_BOUND, "new connections"], [OPEN, MOST_OVER_BOUND_OPEN, "connections open"]].filter_map do |name, most, how|
        next unless most.key?(link) && many.any? && taking_part?(name)
        cells = many.to_h { |page| [page, its(link, page, name)] }
        worst("#{link}: pages, Hikyaku over the bound, #{how}", name, cells.transform_values { |one| results.spread(one, OVER_BOUND) }, cells.values,
          results, at_most: most[link])
      end
    end

    def over_others(results, link)
      [[LISTED, LISTED_OTHERS, "the best of curl's, given the URLs"], [OURS, READING_OTHERS, "httpx, reading the HTML"]].filter_map do |name, others, what|
        others &= entrants
        next unless others.any? && pages.any? && taking_part?(name)
        spreads = pages.to_h { |page| [page, over_best(results, its(link, page, name), others.map { |other| its(link, page, other) })] }
        cells = pages.product([name, *others]).map { |page, one| its(link, page, one) }
        worst("#{link}: pages, Hikyaku over #{what}", name, spreads, cells, results, at_most: MOST_OVER_OTHERS)
      end
    end

    def unknown(results, link)
      [[UNKNOWN, OURS], [THROUGH_UNKNOWN, THROUGH]].filter_map do |name, known|
        next unless pages.any? && taking_part?(name, known)
        cells = pages.to_h { |page| [page, [its(link, page, name), its(link, page, known)]] }
        spreads = cells.transform_values { |both| results.combine(both, ROUND_TRIPS) { |new, old| new - old } }
        worst("#{link}: pages, round trips more where the origin is not known", name, spreads, cells.values.flatten, results,
          at_most: MOST_MORE_ROUND_TRIPS)
      end
    end

    def browsers(results, link)
      direct = pages.filter_map do |page|
        most = MOST_OF_DIRECT.dig(link, page)
        next unless most && taking_part?(THROUGH, BROWSER)
        results.ratio_target("#{link}: #{Sheet::SAMPLES[page]}, Chromium through the proxy over Chromium", its(link, page, THROUGH), its(link, page, BROWSER),
          SECONDS, at_most: most)
      end
      return direct unless MOST_OF_H2.key?(link) && pages.include?("D") && taking_part?(THROUGH, BROWSER_H2)
      direct << results.ratio_target("#{link}: #{Sheet::SAMPLES["D"]}, Chromium through the proxy over Chromium with HTTP/2", its(link, "D", THROUGH),
        its(link, "D", BROWSER_H2), SECONDS, at_most: MOST_OF_H2[link])
    end

    def times(results, link, server)
      rows = clients_of(server).map do |name|
        [title_of(name), *pages.flat_map { |page| [SECONDS, OVER_BOUND].map { |figure| show(results.spread(of(link, server, page, name), figure)) } }]
      end
      bounds = pages.flat_map { |page| [brief(bound(results, link, server, page)), ""] }
      Table.new(title: heading(link, server), head: ["Client", *pages.flat_map { |page| ["#{page}, s", "over the bound"] }], rows: [["the bound", *bounds], *rows])
    end

    def bound(results, link, server, page)
      clients_of(server).filter_map { |name| results.spread(of(link, server, page, name), "bound") }.first
    end

    # What nginx saw of it.
    def details(results, link, server)
      page = pages.first
      rows = clients_of(server).map do |name|
        figures = %w[connections requests pipelined request_bytes head_bytes].map { |figure| results.spread(of(link, server, page, name), figure) }
        [title_of(name), *figures.map { |spread| brief(spread, 0) }]
      end
      Table.new(title: "What the server saw of #{page}, #{link}, #{server}", rows: rows,
        head: ["Client", "Connections", "Requests", "of them pipelined", "Bytes of a request", "Bytes of a response's head"])
    end

    # The paper's figure 5.2: without and with, beside each other.
    def bars_of(results, link, server)
      pairs = [[SERIAL, "one by one"], [OURS, "Hikyaku"], [BROWSER, "Chromium"], [THROUGH, "through the proxy"]]
      figures = pages.product(pairs).to_h do |page, (name, words)|
        ["#{page}, #{words}", (results.spread(of(link, server, page, name), SECONDS) if clients_of(server).include?(name))]
      end
      bars("pages-#{link}-#{server}.svg", figures, title: "Pages, #{link}, #{server}", unit: "s")
    end
  end
end
