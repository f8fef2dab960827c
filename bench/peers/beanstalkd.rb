# frozen_string_literal: true

require_relative "../harness/packaged_broker"

module Bench
  # beanstalkd: without a binlog; with one, synced every 50 ms at most (its default); with one that is synced each time (-f0).
  class Beanstalkd < PackagedBroker
    BINLOG = {"memory" => [], "written" => ["-b"], "synced" => ["-f0", "-b"]}.freeze

    def initialize
      super("beanstalkd", "beanstalkd", package: "beanstalkd", programs: ["beanstalkd"])
    end

    def command(port, folder, settings)
      binlog = BINLOG.fetch(settings[:level])
      [[find("beanstalkd"), "-l", settings[:host], "-p", port.to_s, "-z", "1000000", *binlog, *(folder if binlog.any?)], {}]
    end

    def speech(**) = {dialect: "beanstalkd"}
  end

  Entrants.add Beanstalkd.new
end
