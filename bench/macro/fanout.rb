# frozen_string_literal: true

# What a delivery costs, beside the least that it can cost: one update at a time to N subscribers, Hikyaku and a
# bare send() loop in the same run. And whether a publish costs the same when 10,000 others listen to other topics.

require_relative "fanout/options"
require_relative "fanout/runs"
require_relative "fanout/summary"
require_relative "fanout/page"
require_relative "../harness/machine"

options = Bench::Fanout::Options.parse(ARGV)
facts = Bench::Machine.facts # before the runs: the tree may change meanwhile
runs = Bench::Fanout::Runs.new(options).call { |line| warn line }
summary = Bench::Fanout::Summary.new(runs)
page = Bench::Fanout::Page.new(summary, options: options, facts: facts)

puts page.tables
written = page.write(options.out)
puts "Written: #{written.join(", ")}"
exit 1 if options.check && !summary.targets.all?(&:met?)
