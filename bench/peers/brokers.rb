# frozen_string_literal: true

require_relative "../harness/entrant"

module Bench
  # Redis streams, a consumer group each, no snapshots. With appendfsync everysec a reply says that the kernel has the message, with
  # always that the disk has it.
  Entrants.add(Broker.new("redis", "Redis streams", dialect: {dialect: "redis"}, needs: [DebianPackage.new("redis-server", "redis-server")]) { |port, folder, settings|
    fsync = {"written" => "everysec", "synced" => "always"}[settings[:level]]
    ["redis-server", "--port", port.to_s, "--bind", settings[:host], "--dir", folder, "--save", "", "--protected-mode", "no",
      *(fsync ? ["--appendonly", "yes", "--appendfsync", fsync] : ["--appendonly", "no"])]
  })

  # beanstalkd without a binlog; with one that is synced every 50 ms (its default); with one that is synced each time (-f0).
  Entrants.add(Broker.new("beanstalkd", "beanstalkd", dialect: {dialect: "beanstalkd"}, needs: [DebianPackage.new("beanstalkd", "beanstalkd")]) { |port, folder, settings|
    binlog = {"written" => ["-b", folder], "synced" => ["-f0", "-b", folder]}[settings[:level]]
    ["beanstalkd", "-l", settings[:host], "-p", port.to_s, "-z", "1000000", *binlog]
  })

  # NATS JetStream: a stream in memory, or in files, which are synced every two minutes. It has no other level.
  Entrants.add(Broker.new("nats", "NATS JetStream", levels: %w[memory written], needs: [DebianPackage.new("nats-server", "nats-server")],
    dialect: ->(level) { {dialect: "nats", storage: (level == "memory") ? "memory" : "file"} }) { |port, folder, settings|
      [DebianPackage.find("nats-server") || "nats-server", "--addr", settings[:host], "--port", port.to_s, "--jetstream", "--store_dir", folder]
    })

  # RabbitMQ: durable classic queues, persistent messages, publisher confirms: a confirm says that the disk has the message, or that
  # it was consumed and acknowledged before. One scheduler, because it has one core.
  RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
  Entrants.add(Broker.new("rabbitmq", "RabbitMQ", levels: ["synced"], dialect: {dialect: "amqp"},
    needs: [DebianPackage.new("rabbitmq-server", "rabbitmqctl", "epmd", RABBITMQ)]) { |port, folder, settings|
      distribution, mapper = Array.new(2) { Server.free_port.to_s }
      none = File.join(folder, "none")
      [["/bin/sh", Entrant::BOTH], {
        "FIRST" => "epmd -address #{Entrant::LOOPBACK} -port #{mapper}", "SECOND" => RABBITMQ, "STOP" => "KILL", # its data is thrown away
        "HOME" => folder, "ERL_EPMD_PORT" => mapper, "ERL_EPMD_ADDRESS" => Entrant::LOOPBACK,
        "RABBITMQ_NODENAME" => "bench#{port}@localhost", "RABBITMQ_NODE_IP_ADDRESS" => settings[:host], "RABBITMQ_NODE_PORT" => port.to_s,
        "RABBITMQ_DIST_PORT" => distribution, "RABBITMQ_MNESIA_BASE" => folder, "RABBITMQ_LOG_BASE" => folder, "RABBITMQ_CONF_ENV_FILE" => File::NULL,
        "RABBITMQ_CONFIG_FILE" => none, "RABBITMQ_ADVANCED_CONFIG_FILE" => none, "RABBITMQ_ENABLED_PLUGINS_FILE" => File.join(folder, "plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS" => "+S 1:1"
      }]
    })
end
