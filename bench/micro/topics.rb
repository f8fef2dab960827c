# frozen_string_literal: true

# What a topic and a matcher cost the hub: microseconds of CPU for looking up topics that are known, new, or new and not in
# canonical form, each with the verdict whether it is reserved; for compiling URL patterns; and for matching. The median, least
# and greatest of several rounds, in which everything is measured in turn.

require "optparse"
require_relative "../../lib/hikyaku/hub/matcher"
require_relative "../../lib/hikyaku/hub/topics"

rounds = 7
seconds = 0.1
OptionParser.new do |parser|
  parser.banner = "usage: bin/bench topics [options]"
  parser.on("--rounds N", Integer, "how often everything is measured (#{rounds})") { |n| rounds = n }
  parser.on("--seconds S", Float, "for how long each time (#{seconds})") { |s| seconds = s }
end.parse!(ARGV)

HUB = "https://hub.example.com/.well-known/mercure"
TOPIC = "https://example.com/books/123456"
Matcher = Hikyaku::Hub::Matcher

topics = Hikyaku::Hub::Topics.new(hub_url: HUB)
number = 0

looked_up = {
  "known" => -> { topics[TOPIC].reserved? },
  "new, canonical" => -> { topics["https://example.com/books/#{number += 1}"].reserved? },
  "new, a path" => -> { topics["/books/#{number += 1}"].reserved? },
  "new, relative" => -> { topics["books/#{number += 1}"].reserved? },
  "new, percent-encoded" => -> { topics["https://example.com/%62ooks/#{number += 1}"].reserved? },
  "new, an IDNA host" => -> { topics["https://exämple.com/books/#{number += 1}"].reserved? },
  "new, not a URL" => -> { topics["http://a b/#{number += 1}"].reserved? }
}
patterns = {
  "fixed" => TOPIC,
  "one segment" => "https://example.com/books/:id",
  "everything below" => "https://example.com/books/*",
  "two segments" => "https://example.com/:collection/:id",
  "digits" => "https://example.com/books/:id(\\d+)",
  "two wildcards" => "https://*.com/*/*",
  "any (simulated)" => "https://example.com/books/:id?{.:format}?"
}
template = Matcher.build(type: "uri_template", pattern: "https://example.com/books/{id}", base: HUB)
topic = topics[TOPIC]

measured = looked_up.transform_keys { |name| "look up: #{name}" }
patterns.each { |name, pattern| measured["compile: #{name}"] = -> { Matcher.build(type: "urlpattern", pattern: pattern, base: HUB) } }
patterns.each do |name, pattern|
  matcher = Matcher.build(type: "urlpattern", pattern: pattern, base: HUB)
  raise "#{pattern} does not match #{TOPIC}" unless matcher.match?(topic)
  measured["match: #{name}"] = -> { matcher.match?(topic) }
end
measured["match: URI Template"] = -> { template.match?(topic) }

# Microseconds of CPU for one call, less those of a call that does nothing.
def microseconds(work, seconds)
  calls = 0
  start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  until (taken = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start) > seconds
    100.times { work.call }
    calls += 100
  end
  taken / calls * 1_000_000
end

samples = Hash.new { |hash, name| hash[name] = [] }
rounds.times do |round|
  nothing = microseconds(-> {}, seconds / 5)
  measured.to_a.rotate(round).each do |name, work|
    GC.start
    samples[name] << microseconds(work, seconds) - nothing
  end
end

puts "microseconds of CPU, median (least to greatest) of #{rounds} rounds; Ruby #{RUBY_VERSION}", ""
measured.each_key do |name|
  sorted = samples[name].sort
  puts format("  %-32s %8.2f   (%.2f to %.2f)", name, sorted[sorted.size / 2], sorted.first, sorted.last)
end
