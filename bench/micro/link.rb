# frozen_string_literal: true

# Compares the link emulator with its settings: rates, delays and losses, each measured over the link.

require "optparse"
require_relative "../link/self_test"

OptionParser.new { |parser|
  parser.banner = <<~TEXT
    usage: bin/bench link

    Compares the link emulator with its settings, in about five minutes: a line each; the exit status is 1 if one is off.
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
