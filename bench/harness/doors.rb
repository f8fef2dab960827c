# frozen_string_literal: true

require_relative "scenario"

module Bench
  # What the scenarios beside Action Cable share: the entrants, and the doors through which one publishes, see peers/hubs.rb.
  module Doors
    CABLES = %w[cable-async cable-redis].freeze
    MOUNTED = %w[rails-c rails-ruby].freeze
    STANDALONE = %w[hikyaku-c hikyaku-ruby].freeze
    HIKYAKU = [*MOUNTED, *STANDALONE].freeze
    OTHERS = %w[message-bus iodine threads naive].freeze
    # Only the load generator in C speaks the protocol of its client.
    NO_STREAMS = %w[message-bus].freeze
    FLOOR = "floor"
    YARDSTICK = "cable-async" # of the targets
    LATENCY = "delivery.latency_ms"
    NAMES = {
      "action" => "an action", "within" => "a thread within", "hub" => "the hub's own address", "socket" => "the readers' sockets", "post" => "a POST"
    }.freeze

    # Of the scenarios with the clients of Node.js.
    module NodeClients
      def obstacle = NodePackages.obstacle

      def versions = NodePackages.versions
    end

    def self.included(scenario)
      super
      scenario.suite "action_cable"
      scenario.setting :size, 200, about: "bytes of a message"
    end

    private

    def doors_of(name) = Entrants.fetch(name).doors

    def first_door(name) = doors_of(name).first

    # Where a scenario uses one door of each entrant.
    def server_columns = [["Server", :title], ["Published by", ->(its) { NAMES.fetch(first_door(its.entrant)) }]]

    # Starts a server, warms it up, and waits until it is at rest.
    def on_rested_stage(name, door = first_door(name), topics: 1, **more)
      on_stage(name, speech: {door: door, own: topics > 1}, **more) do |stage|
        stage.server.rest
        yield stage
      end
    end
  end
end
