# frozen_string_literal: true

require_relative "../harness/packaged_broker"

module Bench
  # RabbitMQ: durable classic queues, persistent messages, publisher confirms: an answer says that a message is on the disk, or was
  # consumed and acknowledged before it got there. One scheduler, for it has one core. rabbitmq.sh starts it.
  class Rabbitmq < PackagedBroker
    SCRIPT = File.join(__dir__, "rabbitmq.sh")
    SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    def initialize
      super("rabbitmq", "RabbitMQ", package: "rabbitmq-server", programs: %w[rabbitmqctl epmd], levels: ["synced"])
    end

    def command(port, folder, settings)
      distribution, mapper = Array.new(2) { Server.free_port }
      [["/bin/sh", SCRIPT], {
        "HOME" => folder, "ERL_EPMD_PORT" => mapper.to_s, "ERL_EPMD_ADDRESS" => HOST, "RABBITMQ_SERVER" => SERVER,
        "RABBITMQ_NODENAME" => "bench#{port}@localhost", "RABBITMQ_NODE_IP_ADDRESS" => settings[:host], "RABBITMQ_NODE_PORT" => port.to_s,
        "RABBITMQ_DIST_PORT" => distribution.to_s, "RABBITMQ_MNESIA_BASE" => folder, "RABBITMQ_LOG_BASE" => folder,
        "RABBITMQ_CONF_ENV_FILE" => File::NULL, "RABBITMQ_CONFIG_FILE" => File.join(folder, "none"),
        "RABBITMQ_ADVANCED_CONFIG_FILE" => File.join(folder, "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE" => File.join(folder, "plugins"), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS" => "+S 1:1"
      }]
    end

    def speech(**) = {dialect: "amqp"}

    private

    def installed? = super && File.executable?(SERVER)
  end

  Entrants.add Rabbitmq.new
end
