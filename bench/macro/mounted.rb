# frozen_string_literal: true

require_relative "fanout"

module Bench
  class Mounted < Fanout
    title "Mounted in Puma"
    order 9
    about <<~TEXT
      The cost of a delivery when the hub is mounted in Puma, beside an application, over its cost in a process of its own. The CPU
      includes the publish, a request that Puma serves: among few subscribers it is most of the difference.
    TEXT
    headline(*Fanout.headline)
    entrants "hikyaku-c", "puma-c", "hikyaku-ruby", "puma-ruby"

    PAIRS = {"puma-c" => "hikyaku-c", "puma-ruby" => "hikyaku-ruby"}.freeze
    MAX_OVER_STANDALONE = 1.1
    TEST = "mounted"

    def targets
      subscribers.map do |n|
        ratio_target("CPU per delivery over standalone, #{n} subscribers", of("puma-c", n), of("hikyaku-c", n), CPU, at_most: MAX_OVER_STANDALONE)
      end
    end

    def tables
      standalone = ->(its) { ratio(its, of(PAIRS.fetch(its.entrant, its.entrant), its.size), CPU) }
      [table("CPU of the server", [["Server", :title], ["Subscribers", :size], ["µs per delivery", CPU], ["over standalone", standalone]])]
    end

    def plots = {}
  end
end
