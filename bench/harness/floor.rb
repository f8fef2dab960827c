# frozen_string_literal: true

require_relative "build"
require_relative "entrant"

module Bench
  # The least that a fan-out server can do: src/floor.c.
  class Floor < Entrant
    def initialize
      super("floor", "bare send() loop in C")
    end

    def suites = [Suite::HUB, Suite::ACTION_CABLE]

    # @param settings [Hash] `flood: true` lets it wait for a full socket, instead of forgetting what that did not take
    def command(port, _folder, settings)
      [[Build.program("floor"), port.to_s, *("wait" if settings[:flood])], {}]
    end

    # It sends everything to everyone, or for a topic to those who have asked for that; what it receives is what a hub
    # receives.
    #
    # @param own [Boolean] whether topics are told apart
    def speech(match: TOPIC, type: "exact", topics: [match], own: false, **)
      {publish_prefix: form(topics), **(own ? {subscribe_path: "/{t}", publish_path: "/{t}"} : {})}
    end
  end
end
