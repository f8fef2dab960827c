# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # How long each phase of a request may take, seconds.
      class Timeouts
        PHASES = {resolve: 10, connect: 10, handshake: 10, write: 30, first_byte: 60, head: 60, read: 30}.freeze
        private_constant :PHASES

        # @return [Numeric] until a name has an address
        attr_reader :resolve
        # @return [Numeric] until an address answers
        attr_reader :connect
        # @return [Numeric] for a proxy's CONNECT and for TLS, each
        attr_reader :handshake
        # @return [Numeric] without the other side taking a byte
        attr_reader :write
        # @return [Numeric] from the last byte of a request, or of the answer before its own, to the first of its answer
        attr_reader :first_byte
        # @return [Numeric] from the first byte of an answer's head to its last, however they come
        attr_reader :head
        # @return [Numeric] without a byte in the middle of an answer
        attr_reader :read

        # @param seconds [Hash{Symbol => Numeric}] what differs from 10 to resolve, 10 to connect, 10 for a handshake, 30 to write, 60 for the first byte, 60 for the head and 30 between bytes
        # @raise [ArgumentError]
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
