# frozen_string_literal: true

# Chromium: from the start of the navigation to the page's load event, by its own clock. `fingerprint=…`: it accepts the certificate of
# that public key; `proxy=HOST:PORT`: it uses that proxy.

require "bundler/setup"
require "json"
require_relative "../../harness/browser"
require_relative "visit"

FIGURES = <<~JS
  (() => {
    const navigation = performance.getEntriesByType("navigation")[0]
    const sizes = new Map(performance.getEntriesByType("resource").map((entry) => [new URL(entry.name).pathname, entry.encodedBodySize]))
    const images = [...document.images].map((image) => {
      const path = new URL(image.src).pathname
      return [path, image.complete ? image.naturalWidth : 0, sizes.get(path)]
    })
    return { milliseconds: navigation.loadEventStart, protocol: navigation.nextHopProtocol, bytes: navigation.encodedBodySize, images }
  })()
JS

*settings, url = ARGV
visit = Visit.new(url, settings.to_h { |word| word.split("=", 2) })
proxy, fingerprint = visit.options.values_at("proxy", "fingerprint")
switches = {"disable-quic" => nil, **{"proxy-server" => proxy, "proxy-bypass-list" => ("<-loopback>" if proxy), "ignore-certificate-errors-spki-list" => fingerprint}.compact}
told = Timeout.timeout(Visit::LIMIT) do
  Browser.open(switches, timeout: Visit::LIMIT, pending_connection_errors: false) do |page|
    page.go_to(url)
    sleep 0.05 until (its = page.evaluate(FIGURES))["milliseconds"].positive?
    its
  end
end
# Each image has the width of its number, see Bench::Image.
right = visit.sheet.images.each_with_index.map { |path, number| [path, Bench::Image.width(number), visit.sheet.size] }
whole = told["images"] == right && told["protocol"] == ((visit.uri.scheme == "https") ? "h2" : "http/1.1")
puts JSON.generate("seconds" => told["milliseconds"] / 1_000.0, "objects" => told["images"].count { |image| right.include?(image) },
  "bytes" => told["bytes"] + told["images"].sum { |_, _, bytes| bytes.to_i }, "protocol" => told["protocol"], "whole" => whole)
exit whole ? 0 : 1
