# frozen_string_literal: true

require "rbconfig"
require_relative "../harness/doors"
require_relative "../harness/front"
require_relative "../link/link"

module Bench
  class ActionCableFronts < Scenario
    include Doors

    title "HTTP/2 and HTTP/3, near and far"
    order 46
    at_most_rounds 1
    about <<~TEXT
      The paper's future work: the server behind a proxy that speaks HTTP/2 or HTTP/3, and a page in headless Chromium as the client. Server
      and proxy are in one network, Chromium in another; the shaper of bench/link is between them: without delay, or with a round trip of so
      many milliseconds and a share of the packets lost, either way. The page listens to ten topics, to which messages are published in turn:
      with HTTP/2 and HTTP/3 by a stream each, over one connection; with HTTP/1.1, where a browser has only six connections, by one stream;
      with Action Cable by ten subscriptions over one WebSocket. After a lost packet TCP holds back all that follows on the connection, QUIC
      only what follows on the same stream. *Until the page is there* is a cold start: handshakes, and one request.
    TEXT
    headline "%.1f ms in the mean, p99 %.1f ms", "latency_ms.mean", "latency_ms.p99"
    entrants "hikyaku-c", YARDSTICK
    setting :fronts, %w[nginx-http/1.1 nginx-h2 caddy-h2 caddy-h3 nginx-websocket caddy-websocket], quick: %w[nginx-h2 caddy-h3 nginx-websocket], about: "proxy and protocol"
    setting :links, ["0 0", "100 1"], about: "ms of a round trip, and percent of the packets that are lost"
    setting :topics, 10, about: "topics"
    setting :messages, 1_000, quick: 40, about: "messages"
    setting :rate, 50, quick: 40, about: "messages a second"
    setting :timeout, 30, about: "seconds of silence; then the missing messages are lost"

    PROXIES = {"nginx" => "nginx.conf", "caddy" => "Caddyfile"}.freeze
    PROTOCOLS = {"http/1.1" => "HTTP/1.1, one stream", "h2" => "HTTP/2", "h3" => "HTTP/3", "websocket" => "WebSocket"}.freeze
    PAGE = File.expand_path("../link/page.rb", __dir__)

    def self.obstacle = ShapedLink.obstacle || NodePackages.obstacle

    def self.versions
      proxies = PROXIES.values.map do |template|
        Front.new(template).tap(&:prepare).versions
      rescue Unavailable
        {} # its runs say why
      end
      proxies.reduce({"chromium" => `chromium --version 2>#{File::NULL}`[/Chromium ([\d.]+)/, 1]}.compact, :merge)
    end

    def groups = links.map { |link| fronts.map { |front| of(front, link) }.select { |its| entrants.include?(its.entrant) } }

    def measure(cell)
      front, milliseconds, percent = cell.test.split
      proxy, protocol = front.split("-", 2)
      proxy = Front.new(PROXIES.fetch(proxy)).tap(&:prepare)
      ShapedLink.run(delay: Float(milliseconds) / 2, loss: Float(percent) / 100) do |link|
        Entrants.fetch(cell.entrant).run(link: link) do |server|
          place = {"address" => link.host, "server" => "#{link.host}:#{server.port}"}
          proxy.run(place, within: link.server) { |before, _| read(cell, link, server, proxy, before, protocol) }
        end
      end
    end

    def tables
      links.map do |link|
        milliseconds, percent = link.split
        columns = [*server_columns, ["Behind", ->(its) { words(its).first }], ["Protocol", ->(its) { words(its).last }],
          *times("latency_ms", names: %w[mean median min max p90 p99], head: "%s, ms", digits: 1), ["until the page is there, ms", "page_ms:0"],
          ["until all streams stand, ms", "open_ms:0"]]
        table("#{milliseconds} ms of round trip, #{percent} % lost", columns, fronts.map { |front| of(front, link) })
      end
    end

    def plots
      links.each_with_index.map { |link, index|
        bars("fronts-#{index + 1}.svg", "latency_ms.p99", fronts.map { |front| of(front, link) }, title: "99th percentile of latency, #{link.sub(" ", " ms, ")} % lost",
          unit: "ms") { |its| words(its).join(", ") }
      }.reduce({}, :merge)
    end

    private

    def of(front, link) = cell("#{front} #{link}", front.end_with?("websocket") ? YARDSTICK : "hikyaku-c", topics)

    def words(its)
      proxy, protocol = its.test.split.first.split("-", 2)
      [Front.new(PROXIES.fetch(proxy)).title, PROTOCOLS.fetch(protocol)]
    end

    # When the page's streams stand, a load generator beside the server publishes.
    def read(cell, link, server, proxy, before, protocol)
      speech = Entrants.fetch(cell.entrant).speech
      options = {host: Front::HOST, port: before.port, address: link.host, fingerprint: proxy.fingerprint, messages: messages, timeout: timeout,
                 protocol: (protocol == "websocket") ? "http/1.1" : protocol, **reading(protocol, speech)}
      publishing = nil
      figures = Load.report([*link.load, RbConfig.ruby, PAGE, JSON.generate(options)]) do |phase|
        publishing = Thread.new { publish(link, server, speech) } if phase == "connected"
      end
      published = publishing&.value
      figures.merge("publish" => published, "whole" => figures["whole"] && published["whole"] && figures["protocol"] == options[:protocol])
    end

    def reading(protocol, speech)
      numbers = Array.new(topics, &:to_s)
      if protocol == "websocket"
        identifier = JSON.parse(JSON.parse(speech.fetch(:cable))["identifier"])
        return {cable: speech.fetch(:subscribe_path), identifiers: numbers.map { |number| identifier.merge("topic" => number) }}
      end
      paths = numbers.map { |number| speech.fetch(:subscribe_path).gsub("{t}", number) }
      {paths: (protocol == "http/1.1") ? ["#{Hub::PATH}?#{paths.map { |path| path.split("?", 2).last }.join("&")}"] : paths}
    end

    def publish(link, server, speech)
      Load.run(within: link.server, host: link.host, port: server.port, subscribers: 0, publishers: 1, topics: topics, messages: messages, rate: rate, size: size, settle: 200,
        **speech.slice(:publish_path, :publish_prefix, :publish_header))
    end
  end
end
