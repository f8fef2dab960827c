# frozen_string_literal: true

require_relative "../../error"
require_relative "../engine"
require_relative "../level"

module Hikyaku
  module Broker
    class Server
      # The settings of an engine, with the names of hk_broker_options_t, in bytes, milliseconds and numbers.
      class EngineOptions
        def self.of(config, storage:, connections: config.broker_max_connections)
          new(storage: storage, segment_bytes: config.broker_segment_bytes, level: level(config),
            max_memory: config.broker_max_memory, max_storage: config.broker_max_storage || 0,
            max_frame: config.broker_max_frame_bytes, window_messages: config.broker_max_unanswered, window_bytes: config.broker_max_unanswered_bytes,
            lease: milliseconds(config.broker_lease), lease_most: milliseconds(config.broker_max_lease),
            max_failures: config.broker_max_failures, max_crashes: config.broker_max_crashes,
            max_queue_messages: config.broker_max_queue_messages || 0, max_queue_bytes: config.broker_max_queue_bytes || 0,
            max_queues: config.broker_max_queues, max_identities: identities(config, storage), max_sessions: connections, max_subscriptions: config.broker_max_subscriptions)
        end

        def self.level(config) = Level.number(config.broker_level || (config.storage ? :written : :memory))

        def self.milliseconds(seconds) = (seconds * 1000).round

        def self.identities(config, storage)
          wanted = config.broker_max_identities or return 0
          most = Engine.max_identities(config.broker_segment_bytes)
          return wanted if storage.nil? || wanted <= most
          raise ConfigError, "#{config.origin(:broker_max_identities)}: half a segment of #{config.broker_segment_bytes} bytes holds #{most} identities, not #{wanted}; " \
            "give a lower number, or raise #{config.flag(:broker_segment_bytes)}"
        end
        private_class_method :level, :milliseconds, :identities

        def initialize(**values)
          @values = values.freeze
        end

        def storage = @values[:storage]

        def to_h = @values
      end
    end
  end
end
