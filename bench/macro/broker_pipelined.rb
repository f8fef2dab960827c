# frozen_string_literal: true

require_relative "../harness/broker_rates"
require_relative "../harness/scenario"

module Bench
  class BrokerPipelined < Scenario
    include BrokerRates

    suite Suite::BROKER
    title "Senders that do not wait"
    order 21
    about <<~TEXT
      The same with up to 100 unacknowledged messages of each sender, and as many in the hands of a receiver as its broker allows; what a
      read has brought is freed at once. The floor speaks the project's frames here, for one message at a time is no ceiling: what it shows is how
      far the load goes. The latency is that of the queueing.
    TEXT
    entrants "frames-floor", "broker-c", "broker-ruby", "broker-ruby-yjit", "redis", "beanstalkd", "nats", "rabbitmq"
    BrokerRates.settings(self, messages: 500_000, synced: 200_000, quick: 10_000)

    WINDOW = 100
    FLOOR = "frames-floor"
    HOW = "pipelined"
    LEAST_OVER_PEERS = {"memory" => 2, "written" => 3, "synced" => 3}.freeze
    LARGE = 10_000
    LEAST_WHEN_LARGE = 1.2

    def targets(results)
      pairs.filter_map do |level, size|
        over_best_peer(results, "broker-c", level, size, at_least: (size >= LARGE) ? LEAST_WHEN_LARGE : LEAST_OVER_PEERS.fetch(level))
      end
    end

    private

    # beanstalkd answers each command with a write of its own, and takes as long for them as if nobody pipelined; RabbitMQ is slow, too.
    def count(cell) = %w[beanstalkd rabbitmq broker-ruby broker-ruby-yjit].include?(cell.entrant) ? [super / SLOWER, 1].max : super

    SLOWER = 10
    private_constant :SLOWER
  end
end
