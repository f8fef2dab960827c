# frozen_string_literal: true

# The hub's CPU for topics and matchers: looking up topics that are known, new, or new and not in canonical form, each with the check whether
# it is reserved; compiling URL patterns; and matching.

require_relative "../../lib/hikyaku/hub/matcher"
require_relative "../../lib/hikyaku/hub/topics"
require_relative "../harness/measure"

rounds, seconds = Measure.options(rounds: 7, seconds: 0.1)

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

measured["nothing"] = -> {}
Measure.print(Measure.rounds(measured, rounds, seconds))
