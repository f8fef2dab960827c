# frozen_string_literal: true

# A page in headless Chromium that reads pushed messages, as a load generator at the client's end of a link. It takes one JSON object,
# prints "connected" when its streams stand and "published" when it has all messages, and then the latencies.
#
#     ruby page.rb '{"host":…, "port":…, "address":…, "fingerprint":…, "protocol":"h3", "paths":[…], "messages":…, "timeout":…}'

require "bundler/setup"
require "json"
require_relative "../harness/browser"

SCRIPT = File.read(File.expand_path("page.js", __dir__))
ACTION_CABLE = File.expand_path("../node/node_modules/@rails/actioncable/app/assets/javascripts/actioncable.js", __dir__)
OPTIONS = JSON.parse(ARGV.fetch(0))
ORIGIN = "#{OPTIONS["host"]}:#{OPTIONS["port"]}"
PROTOCOLS = {
  "http/1.1" => {"disable-quic" => nil, "disable-http2" => nil}, "h2" => {"disable-quic" => nil}, "h3" => {"enable-quic" => nil, "origin-to-force-quic-on" => ORIGIN}
}.freeze
CLOCK_LOOKS = 60

def now(unit = :float_second) = Process.clock_gettime(Process::CLOCK_MONOTONIC, unit)

def open_streams(page)
  if OPTIONS["cable"]
    page.execute(File.read(ACTION_CABLE))
    page.execute("bench.cable(arguments[0], arguments[1])", OPTIONS["cable"], OPTIONS["identifiers"])
  else
    page.execute("bench.streams(arguments[0])", OPTIONS["paths"])
  end
  wait_for((OPTIONS["identifiers"] || OPTIONS["paths"]).size) { page.evaluate("bench.open") } || raise("not all streams stand")
end

# The machine's clock, in nanoseconds, when the page's was at 0: by the look that took the least time.
def clock_offset(page)
  looks = Array.new(CLOCK_LOOKS) do
    before = now(:nanosecond)
    page_ms = page.evaluate("performance.now()")
    after = now(:nanosecond)
    [after - before, (before + after) / 2 - page_ms * 1e6]
  end
  looks.min.last
end

# Waits for so many, as long as there is progress.
def wait_for(count)
  seen = 0
  deadline = now + OPTIONS["timeout"]
  until (is = yield) >= count
    deadline = now + OPTIONS["timeout"] if is > seen
    seen = is
    return false if now > deadline
    sleep 0.05
  end
  true
end

def summary(sorted)
  last = sorted.size - 1
  {"count" => sorted.size, "mean" => sorted.sum / sorted.size, "median" => (sorted[last / 2] + sorted[(last + 1) / 2]) / 2,
   "min" => sorted.first, "max" => sorted.last, "p90" => sorted[last * 90 / 100], "p99" => sorted[last * 99 / 100]}
end

own = {"ignore-certificate-errors-spki-list" => OPTIONS["fingerprint"], "host-resolver-rules" => "MAP #{OPTIONS["host"]} #{OPTIONS["address"]}"}
figures = Browser.open(own.merge(PROTOCOLS.fetch(OPTIONS["protocol"])), timeout: OPTIONS["timeout"]) do |page|
  began = now
  page.go_to("https://#{ORIGIN}/")
  loaded = now
  page.execute(SCRIPT)
  open_streams(page)
  opened = now
  offset = clock_offset(page)
  warn "connected"
  complete = wait_for(OPTIONS["messages"]) { page.evaluate("bench.got.length") }
  warn "published"
  latencies = page.evaluate("bench.got").map { |sent, came| came + offset / 1e6 - sent / 1e6 }.sort
  stream = OPTIONS["cable"] ? "websocket" : page.evaluate("bench.protocol(arguments[0])", OPTIONS["paths"].first.split("?").first)
  {"delivered" => latencies.size, "expected" => OPTIONS["messages"], "latency_ms" => latencies.empty? ? {} : summary(latencies),
   "protocol" => page.evaluate("bench.protocol(arguments[0])", nil), "stream_protocol" => stream, "page_ms" => (loaded - began) * 1e3,
   "open_ms" => (opened - loaded) * 1e3, "whole" => complete}
end
puts JSON.generate(figures)
exit figures["whole"] ? 0 : 1
