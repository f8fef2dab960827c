# frozen_string_literal: true

require_relative "../harness/packaged_broker"

module Bench
  # NATS with JetStream: a stream in memory, or in files, which its manual says are synced every two minutes. There is no other level.
  class Nats < PackagedBroker
    STORAGE = {"memory" => "memory", "written" => "file"}.freeze

    def initialize
      super("nats", "NATS JetStream", package: "nats-server", programs: ["nats-server"], levels: STORAGE.keys)
    end

    def command(port, folder, settings)
      [[find("nats-server"), "--addr", settings[:host], "--port", port.to_s, "--jetstream", "--store_dir", folder], {}]
    end

    def speech(level: levels.first, **) = {dialect: "nats", storage: STORAGE.fetch(level)}
  end

  Entrants.add Nats.new
end
