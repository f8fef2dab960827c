# frozen_string_literal: true

require_relative "../harness/broker_rates"

module Bench
  class BrokerWaiting < Scenario
    include BrokerRates

    title "Senders that wait"
    order 20
    about <<~TEXT
      Ten senders wait for the acknowledgement of each message before they send the next, to ten queues in turn; ten receivers, a queue each,
      acknowledge what they get. The broker's CPU for a message, from SEND to the acknowledged FREE, is given as a multiple of the least: a
      floor that reads, logs as the level demands, and answers. The load gathers its output for a connection during one turn of its loop.
      Where the load was busy all the time and the broker was not, the broker can do more than the rate: then look at its CPU. The meaning of
      each level with each broker: `bench/peers`.
    TEXT
    entrants "broker-floor", "broker-c", "broker-ruby", "broker-ruby-yjit", "redis", "beanstalkd", "nats", "rabbitmq"
    BrokerRates.count(self, messages: 50_000, synced: 10_000, quick: 2_000)

    WINDOW = 1
    FLOOR = "broker-floor"
    HOW = "senders that wait"
    MAX_OVER_FLOOR = 1.2
    MIN_OVER_PEERS = 1
    MIN_OF_RUBY = 0.5

    def targets
      pairs.flat_map { |level, size|
        [ratio_target("CPU per #{size}-byte message at #{level} over the floor, senders that wait", cell(level, "broker-c", size), cell(level, FLOOR, size), CPU,
          at_most: MAX_OVER_FLOOR), over_best_peer("broker-c", level, size, at_least: MIN_OVER_PEERS),
          *%w[broker-ruby broker-ruby-yjit].map { |name|
            ratio_target("#{size}-byte messages a second at #{level}, senders that wait, over beanstalkd's", cell(level, name, size), cell(level, "beanstalkd", size), RATE,
              at_least: MIN_OF_RUBY)
          }]
      }.compact
    end
  end
end
