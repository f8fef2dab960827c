# frozen_string_literal: true

require_relative "../harness/one_at_a_time"
require_relative "../harness/scenario"

module Bench
  class Mounted < Scenario
    include OneAtATime

    title "Mounted in Puma"
    order 9
    about <<~TEXT
      What a delivery costs when the hub is mounted in Puma, beside an application, over what it costs in a process of
      its own. The CPU is that of the publish too, which is a request that Puma serves: among few subscribers it is most of
      the difference.
    TEXT
    entrants "hikyaku-c", "puma-c", "hikyaku-ruby", "puma-ruby"
    OneAtATime.settings(self)

    PAIRS = {"puma-c" => "hikyaku-c", "puma-ruby" => "hikyaku-ruby"}.freeze
    MOST_OVER_STANDALONE = 1.1

    def groups = subscribers.map { |n| entrants.map { |name| cell("mounted", name, n) } }

    def targets(results)
      subscribers.map do |n|
        results.ratio_target("CPU per delivery over standalone, #{n} subscribers",
          cell("mounted", "puma-c", n), cell("mounted", "hikyaku-c", n), *CPU, at_most: MOST_OVER_STANDALONE)
      end
    end

    def tables(results)
      rows = subscribers.product(entrants).map do |n, name|
        its = cell("mounted", name, n)
        alone = cell("mounted", PAIRS.fetch(name, name), n)
        [title_of(name), n, show(results.spread(its, *CPU)), show(results.ratio(its, alone, *CPU))]
      end
      [Table.new(title: "CPU of the server", head: ["Server", "Subscribers", "µs per delivery", "over standalone"], rows: rows)]
    end
  end
end
