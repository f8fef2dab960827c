# frozen_string_literal: true

# Milliseconds of CPU for URL patterns that were made to be expensive: compiling one, and the first publish to a topic of 4 KB with as many of
# them as a hub accepts by default, in either engine. See docs/topic-program.md, section "Cost".

require_relative "../../lib/hikyaku/config"
require_relative "../../lib/hikyaku/hub"

HUB = "https://hub.example.com/.well-known/mercure"
TOPIC_BYTES = 4_096
Matcher = Hikyaku::Hub::Matcher
CONFIG = Hikyaku::Config.new(anonymous: true)

def milliseconds
  start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  yield
  (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start) * 1_000
end

compiled = {
  "counted repetition" => "https://example.com/:x([a-z]{4000})",
  "refused: counted repetition" => "https://example.com/:x([a-z]{0,8000})",
  "refused: in every component" => "https://:u([a-z]{0,2000})::w([a-z]{0,2000})@:h([a-z]{0,2000}).com/:x([a-z]{0,2000})?:y([a-z]{0,2000})#:z([a-z]{0,2000})",
  "alternatives" => "https://example.com/:x(#{(0..900).map { |number| number.to_s(36) }.join("|")})",
  "wildcards" => "https://example.com/#{"*a" * 500}"
}
puts "milliseconds of CPU to compile one pattern; Ruby #{RUBY_VERSION}", ""
compiled.each do |name, pattern|
  taken = Array.new(5) do
    milliseconds do
      Matcher.build(type: "urlpattern", pattern: pattern, base: HUB).program
    rescue Hikyaku::LimitExceeded
      raise unless name.start_with?("refused")
    end
  end
  puts format("  %-32s %8.2f", name, taken.min)
end

def fill(hub, shape)
  count = 0
  loop do
    hub.subscribe(Hikyaku::Hub::Grant.new(matchers: [hub.matcher("urlpattern", format(shape, count))]))
    count += 1
  end
rescue Hikyaku::PatternsTooCostly
  count
end

engines = {"ruby" => Hikyaku::Hub::RubyEngine}
begin
  require_relative "../../lib/hikyaku/hub/native_engine"
  engines["c"] = Hikyaku::Hub::NativeEngine
rescue Hikyaku::NativeUnavailable => error
  warn error.message
end

puts "", "milliseconds of CPU for the first publish to a topic, beside as many patterns as a hub takes", ""
engines.each do |name, engine|
  {"32 steps a byte" => "https://example.com/*%da*a*a*a*a*a*a*a*b", "17 steps a byte" => "https://example.com/*%da*a*a*b"}.each do |costs, shape|
    limits = %i[max_pattern_cost_total max_pattern_cost_per_beginning].to_h { |limit| [limit, CONFIG.public_send(limit)] }
    limits[:max_pattern_cost_per_beginning] = 512 if name == "ruby" # as Hikyaku::Web does
    hub = Hikyaku::Hub.new(hub_url: HUB, engine: engine, **limits)
    count = fill(hub, shape)
    taken = [100, TOPIC_BYTES].map do |size|
      topic = "https://example.com/0".ljust(size, "a")
      [milliseconds { hub.publish(Hikyaku::Hub::Update.new(topics: topic, data: "")) }, milliseconds { hub.publish(Hikyaku::Hub::Update.new(topics: topic, data: "")) }]
    end
    puts format("  %-6s %-16s %4d patterns   100 bytes: %8.2f, again %6.3f   %d bytes: %8.2f, again %6.3f", name, costs, count, *taken[0], TOPIC_BYTES, *taken[1])
  end
end
