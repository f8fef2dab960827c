# frozen_string_literal: true

# A page in headless Chromium that reads pushed messages, as a load generator: it takes one JSON object, says "connected" when its
# streams stand, "published" when it has all, and prints the latencies. To be run at the client's end of a link.
#
#     ruby page.rb '{"host":…, "port":…, "address":…, "fingerprint":…, "protocol":"h3", "paths":[…], "messages":…, "timeout":…}'

require "bundler/setup"
require "ferrum"
require "json"

# The page, and the clock that it has beside the machine's.
class BenchPage
  SCRIPT = File.read(File.expand_path("page.js", __dir__))
  ACTION_CABLE = File.expand_path("../node/node_modules/@rails/actioncable/app/assets/javascripts/actioncable.js", __dir__)
  SWITCHES = {
    "no-sandbox" => nil, "disable-gpu" => nil, "no-first-run" => nil, "disable-background-networking" => nil,
    "disable-component-update" => nil, "disable-sync" => nil
  }.freeze
  PROTOCOLS = {
    "http/1.1" => ->(_) { {"disable-quic" => nil, "disable-http2" => nil} },
    "h2" => ->(_) { {"disable-quic" => nil} },
    "h3" => ->(origin) { {"enable-quic" => nil, "origin-to-force-quic-on" => origin} }
  }.freeze
  STEP = 0.05
  CLOCK_LOOKS = 60
  PROGRAMS = %w[chromium chromium-browser google-chrome].freeze

  def initialize(options)
    @options = options
    @origin = "#{options["host"]}:#{options["port"]}"
  end

  def run
    browse
    began = now
    @page.go_to("https://#{@origin}/")
    loaded = now
    @page.execute(SCRIPT)
    open
    opened = now
    offset = clock_offset
    say("connected")
    complete = wait_for(@options["messages"]) { @page.evaluate("bench.got.length") }
    say("published")
    figures(offset).merge("page_ms" => (loaded - began) * 1e3, "open_ms" => (opened - loaded) * 1e3, "whole" => complete)
  ensure
    @browser&.quit
  end

  private

  def browse
    own = {"ignore-certificate-errors-spki-list" => @options["fingerprint"], "host-resolver-rules" => "MAP #{@options["host"]} #{@options["address"]}"}
    @browser = Ferrum::Browser.new(browser_path: program, headless: true, timeout: @options["timeout"], process_timeout: 40,
      browser_options: SWITCHES.merge(own, PROTOCOLS.fetch(@options["protocol"]).call(@origin)))
    @page = @browser.create_page
  end

  def program
    ENV.fetch("PATH").split(":").product(PROGRAMS).map { |folder, name| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  def open
    if @options["cable"]
      @page.execute(File.read(ACTION_CABLE))
      @page.execute("bench.cable(arguments[0], arguments[1])", @options["cable"], @options["identifiers"])
    else
      @page.execute("bench.streams(arguments[0])", @options["paths"])
    end
    count = (@options["identifiers"] || @options["paths"]).size
    wait_for(count) { @page.evaluate("bench.open") } || raise("not all streams stand")
  end

  # Nanoseconds of the machine's clock when the page's was at 0: by the look that took the least time.
  def clock_offset
    Array.new(CLOCK_LOOKS) {
      before = nanoseconds
      page_ms = @page.evaluate("performance.now()")
      after = nanoseconds
      [after - before, (before + after) / 2 - page_ms * 1e6]
    }.min.last
  end

  def figures(offset)
    latencies = @page.evaluate("bench.got").map { |sent, came| came + offset / 1e6 - sent / 1e6 }.sort
    {"delivered" => latencies.size, "expected" => @options["messages"], "latency_ms" => latencies.empty? ? {} : summary(latencies),
     "protocol" => @page.evaluate("bench.protocol(arguments[0])", nil), "stream_protocol" => stream_protocol}
  end

  def stream_protocol = @options["cable"] ? "websocket" : @page.evaluate("bench.protocol(arguments[0])", @options["paths"].first.split("?").first)

  def summary(sorted)
    middle = sorted.size - 1
    {"count" => sorted.size, "mean" => sorted.sum / sorted.size, "median" => (sorted[middle / 2] + sorted[(middle + 1) / 2]) / 2,
     "min" => sorted.first, "max" => sorted.last, "p90" => sorted[middle * 90 / 100], "p99" => sorted[middle * 99 / 100]}
  end

  # Until so many, or for as long as there is news.
  def wait_for(count)
    seen = 0
    deadline = now + @options["timeout"]
    until (is = yield) >= count
      deadline = now + @options["timeout"] if is > seen
      seen = is
      return false if now > deadline
      sleep STEP
    end
    true
  end

  def say(phase) = warn(phase)

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

figures = BenchPage.new(JSON.parse(ARGV.fetch(0))).run
puts JSON.generate(figures)
exit figures["whole"] ? 0 : 1
