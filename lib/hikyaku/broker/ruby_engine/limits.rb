# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # The limits of an engine, by the names of hk_broker_options_t. 0 is any number where that makes sense, else the default.
      class Limits
        DEFAULTS = {
          max_memory: 1024 * 1024 * 1024, # bytes that messages take in memory
          max_storage: 0, # bytes of segments; 0: any number
          max_frame: 1024 * 1024, # bytes
          heartbeat_least: 1000, heartbeat_most: 60_000, # ms
          window_messages: 4096, window_bytes: 8 * 1024 * 1024, # without an answer
          lease: 30_000, lease_most: 12 * 3600 * 1000, # ms
          max_failures: 20, max_crashes: 3,
          max_queue_messages: 0, max_queue_bytes: 0, # 0: any number
          max_identities: 10_000, # that are remembered; no more than fit into half a segment
          max_queues: 100_000, max_sessions: 10_000, max_subscriptions: 1024, # the last of one session
          queue_idle: 3600, producer_idle: 7 * 24 * 3600 # s
        }.freeze
        private_constant :DEFAULTS

        attr_reader(*DEFAULTS.keys)

        def initialize(**values)
          unknown = values.keys - DEFAULTS.keys
          raise ArgumentError, "a broker has no limit #{unknown.join(", ")}; there are #{DEFAULTS.keys.join(", ")}" if unknown.any?
          DEFAULTS.merge(values.compact).each do |name, value|
            value = DEFAULTS[name] if value.zero?
            instance_variable_set(:"@#{name}", value)
          end
          freeze
        end

        # The lease, in milliseconds, for one that a client asks for.
        def lease_of(milliseconds) = milliseconds.zero? ? lease : [milliseconds, lease_most].min
      end
    end
  end
end
