# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # What an engine is told: by the names of hk_broker_options_t. 0 or nil where it says so: any number.
      class Limits
        USUAL = {
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
        private_constant :USUAL

        attr_reader(*USUAL.keys)

        # @param values [Hash{Symbol => Integer, nil}]
        # @raise [ArgumentError] one is not known
        def initialize(**values)
          strange = values.keys - USUAL.keys
          raise ArgumentError, "a broker has no limit #{strange.join(", ")}; there are #{USUAL.keys.join(", ")}" if strange.any?
          USUAL.merge(values.compact).each do |name, value|
            # 0 is any number where that makes sense, else the usual one.
            value = USUAL[name] if value.zero?
            instance_variable_set(:"@#{name}", value)
          end
          freeze
        end
      end
    end
  end
end
