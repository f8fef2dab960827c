# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # How long each phase of a request may take, seconds.
      class Timeouts
        PHASES = {resolve: 10, connect: 10, handshake: 10, write: 30, first_byte: 60, head: 60, read: 30}.freeze
        private_constant :PHASES

        attr_reader :resolve
        attr_reader :connect
        attr_reader :handshake
        attr_reader :write
        attr_reader :first_byte
        attr_reader :head
        attr_reader :read

        def initialize(**seconds)
          unknown = seconds.keys - PHASES.keys
          raise ArgumentError, "there is no timeout #{unknown.first.inspect}; there are #{PHASES.keys.join(", ")}, and total: of a request" if unknown.any?
          PHASES.merge(seconds).each do |phase, value|
            raise ArgumentError, "the timeout #{phase} is a number of seconds above 0, not #{value.inspect}" unless value.is_a?(Numeric) && value.positive?
            instance_variable_set(:"@#{phase}", value)
          end
          freeze
        end
      end
    end
  end
end
