# frozen_string_literal: true

# Whether bench/link does what it is set to: rates, the time under way, and losses, each measured over the link.

require_relative "../link/self_test"

if (why = Bench::ShapedLink.obstacle)
  warn "bench link: #{why}"
  exit 2
end
test = Bench::LinkSelfTest.new
puts test
exit test.passed? ? 0 : 1
