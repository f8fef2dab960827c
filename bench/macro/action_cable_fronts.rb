# frozen_string_literal: true

require "rbconfig"
require_relative "../harness/doors"
require_relative "../harness/front"
require_relative "../harness/node"
require_relative "../harness/scenario"
require_relative "../link/shaped_link"

module Bench
  class ActionCableFronts < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "HTTP/2 and HTTP/3, near and far"
    order 46
    at_most_rounds 1
    about <<~TEXT
      The paper's future work: the same behind a proxy that speaks HTTP/2 or HTTP/3, with a page in headless Chromium as the client. Server
      and proxy are in one network, Chromium in another; between them the shaper of bench/link: without delay, or with a round trip
      of so many milliseconds and a share of all packets lost, either way. The page listens to ten topics, to which messages are published in
      turn: with HTTP/2 and HTTP/3 by a stream each, over one connection; with HTTP/1.1, where a browser has only six, by one stream; with Action
      Cable by ten subscriptions over one WebSocket. Where a packet is lost, TCP holds back all that follows on the connection, QUIC only
      what follows on the same stream. *Until the page is there* is from a cold start: handshakes, and one request.
    TEXT
    entrants "hikyaku-c", YARDSTICK
    setting :fronts, %w[nginx-http/1.1 nginx-h2 caddy-h2 caddy-h3 nginx-websocket caddy-websocket],
      quick: %w[nginx-h2 caddy-h3 nginx-websocket], about: "proxy and protocol"
    setting :links, ["0 0", "100 1"], about: "ms of a round trip, and percent of the packets that are lost"
    setting :topics, 10, about: "topics"
    setting :messages, 1_000, quick: 40, about: "messages"
    setting :rate, 50, quick: 40, about: "messages a second"
    setting :size, 200, about: "bytes of a message"
    setting :timeout, 30, about: "seconds of silence after which what has not come is lost"

    WEBSOCKET = "websocket"
    TIMES = %w[mean median min max p90 p99].freeze
    LATENCY = %w[latency_ms].freeze
    PAGE = File.expand_path("../link/page.rb", __dir__)
    PATH = "/.well-known/mercure"

    def self.obstacle = ShapedLink.obstacle || Node.obstacle

    def self.versions
      proxies = Front::ALL.values.map do |front|
        front.new.tap(&:prepare).versions
      rescue Front::Unavailable
        {} # its runs say why
      end
      proxies.reduce({"chromium" => `chromium --version 2>#{File::NULL}`[/Chromium ([\d.]+)/, 1]}.compact, :merge)
    end

    def groups = links.map { |link| fronts.filter_map { |front| cell("#{front} #{link}", server_of(front), topics) if entrants.include?(server_of(front)) } }

    def measure(cell)
      front, milliseconds, percent = cell.test.split
      proxy, protocol = front.split("-", 2)
      proxy = Front::ALL.fetch(proxy).new
      proxy.prepare
      ShapedLink.run(delay: Float(milliseconds) / 2, loss: Float(percent) / 100) do |link|
        Entrants.fetch(cell.entrant).run(link: link) { |server| proxy.run(link, server) { |before| read(cell, link, server, proxy, before, protocol) } }
      end
    end

    def headline(figures) = format("%.1f ms in the mean, p99 %.1f ms", *%w[mean p99].map { |time| figures.dig(*LATENCY, time) })

    def tables(results)
      links.map do |link|
        milliseconds, percent = link.split
        rows = fronts.map do |front|
          its = cell("#{front} #{link}", server_of(front), topics)
          [title_of(its.entrant), publisher_of(its.entrant), *words(front), *TIMES.map { |time| show(results.spread(its, *LATENCY, time), 1) },
            show(results.spread(its, "page_ms"), 0), show(results.spread(its, "open_ms"), 0)]
        end
        Table.new(title: "#{milliseconds} ms of round trip, #{percent} % lost", rows: rows,
          head: ["Server", PUBLISHED_BY, "Behind", "Protocol", *TIMES.map { |time| "#{time}, ms" }, "until the page is there, ms", "until all streams stand, ms"])
      end
    end

    def plots(results)
      links.each_with_index.map { |link, index|
        figures = fronts.to_h { |front| [words(front).join(", "), results.spread(cell("#{front} #{link}", server_of(front), topics), *LATENCY, "p99")] }
        bars("fronts-#{index + 1}.svg", figures, title: "99th percentile of latency, #{link.sub(" ", " ms, ")} % lost", unit: "ms")
      }.reduce({}, :merge)
    end

    private

    def server_of(front) = front.end_with?(WEBSOCKET) ? YARDSTICK : "hikyaku-c"

    def words(front)
      proxy, protocol = front.split("-", 2)
      [Front::ALL.fetch(proxy).new.title, {"http/1.1" => "HTTP/1.1, one stream", "h2" => "HTTP/2", "h3" => "HTTP/3", WEBSOCKET => "WebSocket"}.fetch(protocol)]
    end

    # The page says when its streams stand; then somebody beside the server publishes.
    def read(cell, link, server, proxy, before, protocol)
      speech = Entrants.fetch(cell.entrant).speech
      options = {host: Front::HOST, port: before.port, address: link.host, fingerprint: proxy.fingerprint, messages: messages, timeout: timeout,
                 protocol: (protocol == WEBSOCKET) ? "http/1.1" : protocol, **reading(protocol, speech)}
      publishing = nil
      figures = Load.report([*link.load, RbConfig.ruby, PAGE, JSON.generate(options)]) do |phase|
        publishing = Thread.new { publish(link, server, speech) } if phase == "connected"
      end
      published = publishing&.value
      figures.merge("publish" => published, "whole" => figures["whole"] && published["whole"] && figures["protocol"] == options[:protocol])
    end

    def reading(protocol, speech)
      numbers = Array.new(topics) { |number| number.to_s }
      if protocol == WEBSOCKET
        identifier = JSON.parse(JSON.parse(speech.fetch(:cable))["identifier"])
        return {cable: speech.fetch(:subscribe_path), identifiers: numbers.map { |number| identifier.merge("topic" => number) }}
      end
      paths = numbers.map { |number| speech.fetch(:subscribe_path).gsub("{t}", number) }
      {paths: (protocol == "http/1.1") ? ["#{PATH}?#{paths.map { |path| path.split("?", 2).last }.join("&")}"] : paths}
    end

    def publish(link, server, speech)
      Load.run(within: link.broker, host: link.host, port: server.port, subscribers: 0, publishers: 1, topics: topics, messages: messages, rate: rate,
        size: size, settle: 200, **speech.slice(:publish_path, :publish_prefix, :publish_header))
    end
  end
end
