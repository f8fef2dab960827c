# frozen_string_literal: true

# Whether bench/link does what it is set to: rates, the time under way, and losses, each measured over the link.

require "optparse"
require_relative "../link/self_test"

OptionParser.new { |parser|
  parser.banner = <<~TEXT
    usage: bin/bench link

    Measures what the link emulator does beside what it was set to, in about five minutes: one line each, and 1 if one is off.
    Example: bin/bench link
  TEXT
}.parse!

if (why = Bench::ShapedLink.obstacle)
  warn "bench link: #{why}"
  exit 2
end
test = Bench::LinkSelfTest.new
puts test
exit test.passed? ? 0 : 1
