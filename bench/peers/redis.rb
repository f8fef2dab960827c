# frozen_string_literal: true

require_relative "../harness/packaged_broker"

module Bench
  # Redis streams, a consumer group each. No snapshots. With appendfsync everysec an answer says that the kernel has it; with
  # always, that the disk has it.
  class Redis < PackagedBroker
    FSYNC = {"written" => "everysec", "synced" => "always"}.freeze

    def initialize
      super("redis", "Redis streams", package: "redis-server", programs: ["redis-server"])
    end

    def command(port, folder, settings)
      fsync = FSYNC[settings[:level]]
      kept = fsync ? ["--appendonly", "yes", "--appendfsync", fsync] : ["--appendonly", "no"]
      [[find("redis-server"), "--port", port.to_s, "--bind", settings[:host], "--dir", folder, "--save", "", "--protected-mode", "no", *kept], {}]
    end

    def speech(**) = {dialect: "redis"}
  end

  Entrants.add Redis.new
end
