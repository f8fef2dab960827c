# frozen_string_literal: true

# At least 5,000 subscribers on one Puma process with 5 threads, while ordinary requests are answered: how long those
# take with no subscriber, with many that are silent, and while updates go out to all of them.

require_relative "subscribers/options"
require_relative "subscribers/page"
require_relative "subscribers/runs"
require_relative "../harness/machine"

options = Bench::Subscribers::Options.parse(ARGV)
facts = Bench::Machine.facts # before the runs: the tree may change meanwhile
runs = Bench::Subscribers::Runs.new(options).call { |line| warn line }
page = Bench::Subscribers::Page.new(runs, options: options, facts: facts)

puts page.tables
puts "Written: #{page.write(options.out).join(", ")}"
exit 1 if options.check && !page.met?
