# frozen_string_literal: true

require_relative "broker"

module Bench
  # The least that a broker can do: src/broker_floor.c, which logs what a level promises and nothing else.
  class BrokerFloor < Broker
    # One message in a receiver's hand, and a request and an answer for each: what any broker does whose clients wait.
    class OneByOne < BrokerFloor
      def initialize
        super("broker-floor", "floor: read, log, answer")
      end

      def speech(**) = {dialect: "beanstalkd"}
    end

    # The project's own frames: many messages to a write, one answer for all that a read has brought.
    class Frames < BrokerFloor
      def initialize
        super("frames-floor", "floor, in the project's frames")
      end

      def speech(level: levels.first, **) = {dialect: "hikyaku", level: level}
    end

    def command(port, folder, settings)
      log = File.join(folder, "log")
      more = {"memory" => [], "written" => [log], "synced" => [log, "synced"]}.fetch(settings[:level])
      [[Build.program("broker_floor"), "#{settings[:host]}:#{port}", *more], {}]
    end
  end
end
