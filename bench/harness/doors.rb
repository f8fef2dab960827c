# frozen_string_literal: true

require_relative "entrants"

module Bench
  # What the scenarios beside Action Cable have in common: who takes part, and through which door one publishes to whom. The
  # doors of what runs in Rails are explained in peers/rails.rb.
  module Doors
    CABLES = %w[cable-async cable-redis].freeze
    MOUNTED = %w[rails-c rails-ruby].freeze
    STANDALONE = %w[hikyaku-c hikyaku-ruby].freeze
    OTHERS = %w[message-bus iodine threads naive].freeze
    # Those of the others that have clients of their own: of ours only the load generator in C speaks to them.
    NO_STREAMS = %w[message-bus].freeze
    PUBLISHED_BY = "Published by"
    FLOOR = "floor"
    # Whom the targets compare with.
    YARDSTICK = "cable-async"
    NAMES = {
      "action" => "an action", "within" => "a thread within", "hub" => "the hub's own address", "socket" => "the readers' sockets", "post" => "a POST"
    }.freeze

    private

    # @param name [String] of an entrant
    # @return [Array<String>] the first is what comes nearest to an action of an application
    def doors_of(name)
      entrant = Entrants.fetch(name)
      return entrant.doors if entrant.respond_to?(:doors)
      STANDALONE.include?(name) ? ["hub"] : ["post"]
    end

    def first_door(name) = doors_of(name).first

    # By whom is published where a scenario goes through one door alone, for a table.
    def publisher_of(name) = NAMES.fetch(first_door(name))

    # @param topics [Integer]
    # @return [Hash] see {Entrant#speech}
    def speech_through(door, topics: 1) = {door: door, own: topics > 1}

    # Starts a server, wakes it, and lets it come to rest before it is loaded; see {Scenario#on_stage}.
    def on_rested_stage(name, door, topics: 1, **more)
      on_stage(name, speech: speech_through(door, topics: topics), **more) do |stage|
        stage.server.rest
        yield stage
      end
    end
  end
end
