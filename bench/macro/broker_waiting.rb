# frozen_string_literal: true

require_relative "../harness/broker_rates"
require_relative "../harness/scenario"

module Bench
  class BrokerWaiting < Scenario
    include BrokerRates

    suite Suite::BROKER
    title "Senders that wait"
    order 20
    about <<~TEXT
      Ten senders, each of which waits for the acknowledgement of its message before it sends the next, to ten queues in turn;
      ten receivers, a queue each, who free what they get. What a message costs the broker, from SEND to the acknowledged FREE, as a multiple
      of the least that it can cost: a floor that reads, logs as the level demands, and answers. The load gathers what it has to say to
      each connection during one turn of its own. Where the load was busy all the time and the broker was not, the broker can do more
      than is said here: then look at its CPU. What each level is with each broker: `bench/peers`.
    TEXT
    entrants "broker-floor", "broker-c", "broker-ruby", "broker-ruby-yjit", "redis", "beanstalkd", "nats", "rabbitmq"
    BrokerRates.settings(self, messages: 50_000, synced: 10_000, quick: 2_000)

    WINDOW = 1
    FLOOR = "broker-floor"
    HOW = "senders that wait"
    MOST_OVER_FLOOR = 1.2
    LEAST_OVER_PEERS = 1
    LEAST_OF_RUBY = 0.5

    def targets(results) = pairs.flat_map { |level, size| [*of_c(results, level, size), *of_ruby(results, level, size)] }.compact

    private

    def of_c(results, level, size)
      [results.ratio_target("CPU per #{size}-byte message at #{level} over the floor, senders that wait", cell(level, "broker-c", size),
        cell(level, FLOOR, size), *CPU, at_most: MOST_OVER_FLOOR),
        over_best_peer(results, "broker-c", level, size, at_least: LEAST_OVER_PEERS)]
    end

    def of_ruby(results, level, size)
      %w[broker-ruby broker-ruby-yjit].map do |name|
        results.ratio_target("#{size}-byte messages a second at #{level}, senders that wait, over beanstalkd's", cell(level, name, size),
          cell(level, "beanstalkd", size), *RATE, at_least: LEAST_OF_RUBY)
      end
    end
  end
end
