# frozen_string_literal: true

# Chromium, headless, with an empty profile: from the beginning of the navigation to the page's load event, by its own clock. With
# `fingerprint=…` it takes the certificate of that public key, with `proxy=HOST:PORT` it asks there.

require "bundler/setup"
require "ferrum"
require "json"
require_relative "visit"

# The browser, and what it says of the page.
class BrowserVisit
  SWITCHES = {
    "no-sandbox" => nil, "disable-gpu" => nil, "no-first-run" => nil, "disable-background-networking" => nil,
    "disable-component-update" => nil, "disable-sync" => nil, "disable-default-apps" => nil, "disable-quic" => nil
  }.freeze
  PROGRAMS = %w[chromium chromium-browser google-chrome].freeze
  STEP = 0.05
  TELL = <<~JS
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

  def initialize(visit)
    @visit = visit
    @sheet = visit.sheet
  end

  # @return [Hash] see {Visit#to_h}
  def run
    @browser = Ferrum::Browser.new(browser_path: program, headless: true, timeout: Visit::LIMIT, process_timeout: 40,
      pending_connection_errors: false, browser_options: SWITCHES.merge(own_switches))
    page = @browser.create_page
    page.go_to(@visit.url)
    told = page.evaluate(TELL)
    until told["milliseconds"].positive?
      sleep STEP
      told = page.evaluate(TELL)
    end
    figures(told)
  ensure
    @browser&.quit
  end

  private

  def own_switches
    proxy, fingerprint = @visit.options.values_at("proxy", "fingerprint")
    {"proxy-server" => proxy, "proxy-bypass-list" => ("<-loopback>" if proxy), "ignore-certificate-errors-spki-list" => fingerprint}.compact
  end

  def program
    ENV.fetch("PATH").split(":").product(PROGRAMS).map { |folder, name| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  # Each image has the width of its number, see Bench::Image.
  def figures(told)
    right = @sheet.images.each_with_index.map { |path, number| [path, Bench::Image.width(number), @sheet.size] }
    {"seconds" => told["milliseconds"] / 1_000.0, "objects" => told["images"].count { |image| right.include?(image) },
     "bytes" => told["bytes"] + told["images"].sum { |_, _, bytes| bytes.to_i }, "protocol" => told["protocol"],
     "whole" => told["images"] == right && told["protocol"] == protocol}
  end

  def protocol = (@visit.uri.scheme == "https") ? "h2" : "http/1.1"
end

*settings, url = ARGV
figures = Timeout.timeout(Visit::LIMIT) { BrowserVisit.new(Visit.new(url, settings.to_h { |word| word.split("=", 2) })).run }
puts JSON.generate(figures)
exit figures["whole"] ? 0 : 1
