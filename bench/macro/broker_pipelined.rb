# frozen_string_literal: true

require_relative "../harness/broker_rates"

module Bench
  class BrokerPipelined < Scenario
    include BrokerRates

    title "Senders that do not wait"
    order 21
    about <<~TEXT
      The same with up to 100 unacknowledged messages of each sender, and as many in a receiver's hands as its broker allows; a receiver
      acknowledges all messages of a read at once. The floor speaks Hikyaku's frames here: one message at a time would not be a ceiling. It
      shows the limit of the load. The latency is that of queueing.
    TEXT
    entrants "frames-floor", "broker-c", "broker-ruby", "broker-ruby-yjit", "redis", "beanstalkd", "nats", "rabbitmq"
    BrokerRates.count(self, messages: 500_000, synced: 200_000, quick: 10_000)

    WINDOW = 100
    FLOOR = "frames-floor"
    HOW = "pipelined"
    MIN_OVER_PEERS = {"memory" => 2, "written" => 3, "synced" => 3}.freeze
    LARGE = 10_000
    MIN_WHEN_LARGE = 1.2
    # beanstalkd answers each command with a write of its own: pipelining does not make it faster.
    SLOW = %w[beanstalkd rabbitmq broker-ruby broker-ruby-yjit].freeze

    def targets
      pairs.filter_map { |level, size| over_best_peer("broker-c", level, size, at_least: (size >= LARGE) ? MIN_WHEN_LARGE : MIN_OVER_PEERS.fetch(level)) }
    end

    private

    def count(cell) = SLOW.include?(cell.entrant) ? [super / 10, 1].max : super
  end
end
