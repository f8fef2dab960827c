# frozen_string_literal: true

require_relative "../pipelining/visits"

module Bench
  class PipeliningPages < Scenario
    include Visits

    at_once Etc.nprocessors # a browser uses more than a tenth of a core
    title "Pages"
    order 61
    about <<~TEXT
      The paper's three pages, from the request for the HTML until the last image has arrived: 77 images of 1.2 kB (D), 24 of 2.0 kB (G), 5 of
      6.2 kB (Y). Each visit is a new process with new connections, unless the client is marked *connections open*. Programs fetch a small page
      on the loopback before the clock runs, browsers have an empty profile. Every body is checked. Where the origin is known, the client or
      proxy has visited it before, in another process, and remembers it; *origin not known* is the time without that. curl's time excludes its
      start; Chromium's is its own, from the start of the navigation to the load event. HTTP/2 is over TLS 1.3, handshake included; all else
      is plain HTTP. In the paper the page of 77 images took 27 seconds without pipelining, and 8 with.
    TEXT
    entrants "net-http", "curl-6", "curl-h2", "httpx", "hikyaku", "hikyaku-list", "hikyaku-open", "hikyaku-new", "chromium", "chromium-h2",
      "chromium-proxy", "chromium-proxy-open", "chromium-proxy-new", quick: %w[net-http curl-6 curl-h2 httpx hikyaku hikyaku-list chromium chromium-proxy]
    setting :links, %w[wcdma-550 wcdma-260 satellite weak-4g], quick: %w[wcdma-260 weak-4g], about: "links, see bench/link/link.rb"
    setting :servers, %w[nginx puma], quick: %w[nginx], about: "nginx, puma"
    setting :pages, %w[D G Y], about: "D, G, Y"

    MAX_OF_SERIAL = {"wcdma-260" => 0.14}.freeze
    MAX_OF_DIRECT = {
      "wcdma-260" => {"D" => 0.58, "G" => 0.76, "Y" => 0.86}, "weak-4g" => {"D" => 0.5, "G" => 0.75, "Y" => 0.95}, "satellite" => {"D" => 0.4, "G" => 0.75, "Y" => 1.0}
    }.freeze
    MAX_OF_H2 = {"wcdma-260" => 0.74, "weak-4g" => 0.94, "satellite" => 0.9}.freeze
    # The bars of a page.
    PAIRS = {"net-http" => "one by one", "hikyaku" => "Hikyaku", "chromium" => "Chromium", "chromium-proxy" => "through the proxy"}.freeze

    def groups = links.product(servers, pages).map { |link, server, page| clients_of(server).map { |name| of(link, server, page, name) } }

    def targets
      links.flat_map do |link|
        [*over_serial(link), *over_bound(link, "pages") { |name| its(link, name, pages.select { |page| Sheet::SAMPLES[page].count >= MANY }) },
          *over_others(link, "pages") { |name| its(link, name) }, *unknown(link, "pages") { |name| its(link, name) }, *browsers(link)]
      end
    end

    def tables
      links.product(servers).flat_map { |link, server| [times_of(link, server), details(link, server)] }
    end

    # The paper's figure 5.2: without and with, beside each other.
    def plots
      links.product(servers).map { |link, server|
        cells = pages.product(PAIRS.keys & clients_of(server)).map { |page, name| of(link, server, page, name) }
        bars("pages-#{link}-#{server}.svg", SECONDS, cells, title: "Pages, #{link}, #{server}", unit: "s") { |one| "#{one.test.split.last}, #{PAIRS.fetch(one.entrant)}" }
      }.reduce({}, :merge)
    end

    private

    def of(link, server, page, name) = cell("#{link} #{server} #{page}", name, Sheet::SAMPLES.fetch(page).count)

    # The cells of a client by page, on the server of the targets.
    def its(link, name, pages = self.pages) = pages.to_h { |page| [page, of(link, YARDSTICK, page, name)] }

    def over_serial(link)
      return [] unless MAX_OF_SERIAL.key?(link) && pages.include?("D") && taking_part?(OURS, SERIAL)
      [ratio_target("#{link}: 77 × 1.2 kB, Hikyaku over one serial connection", its(link, OURS)["D"], its(link, SERIAL)["D"], SECONDS, at_most: MAX_OF_SERIAL[link])]
    end

    def browsers(link)
      through, direct, h2 = %w[chromium-proxy chromium chromium-h2].map { |name| its(link, name) }
      found = pages.filter_map do |page|
        most = MAX_OF_DIRECT.dig(link, page)
        next unless most && taking_part?("chromium-proxy", "chromium")
        ratio_target("#{link}: #{Sheet::SAMPLES[page]}, Chromium through the proxy over Chromium", through[page], direct[page], SECONDS, at_most: most)
      end
      return found unless MAX_OF_H2.key?(link) && pages.include?("D") && taking_part?("chromium-proxy", "chromium-h2")
      found << ratio_target("#{link}: #{Sheet::SAMPLES["D"]}, Chromium through the proxy over Chromium with HTTP/2", through["D"], h2["D"], SECONDS, at_most: MAX_OF_H2[link])
    end

    def times_of(link, server)
      rows = clients_of(server).map do |name|
        [title_of(name), *pages.flat_map { |page| [SECONDS, OVER_BOUND].map { |path| show(spread(of(link, server, page, name), path)) } }]
      end
      bounds = pages.flat_map { |page| [brief(bound_of(clients_of(server).map { |name| of(link, server, page, name) })), ""] }
      Table.new(heading(link, server), ["Client", *pages.flat_map { |page| ["#{page}, s", "over the bound"] }], [["the bound", *bounds], *rows])
    end

    # What nginx saw of the first page.
    def details(link, server)
      columns = {"Connections" => "connections", "Requests" => "requests", "of them pipelined" => "pipelined", "Bytes of a request" => "request_bytes",
                 "Bytes of a response's head" => "head_bytes"}.map { |head, path| [head, ->(one) { brief(spread(one, path), 0) }] }
      table("What the server saw of #{pages.first}, #{link}, #{server}", [["Client", :title], *columns], clients_of(server).map { |name| of(link, server, pages.first, name) })
    end
  end
end
