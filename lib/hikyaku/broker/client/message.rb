# frozen_string_literal: true

require "json"
require_relative "../wire/properties"

module Hikyaku
  module Broker
    class Client
      # A payload with properties. docs/protocol.md, section 4.
      class Message
        # @return [String] binary
        attr_reader :payload
        # @return [String] the properties as they are on the wire
        # @api private
        attr_reader :packed

        # @param message [Message, Object] a message, or the payload of one without properties
        # @return [Message]
        def self.of(message) = message.is_a?(Message) ? message : new(message)

        # @param payload [String, Object] any other object than a String becomes JSON
        # @param properties [Hash{#to_s => #to_s}] the broker passes them on unchanged
        # @raise [ArgumentError] a name or a value is too long
        def initialize(payload, properties: {})
          @payload = payload.is_a?(String) ? payload : JSON.generate(payload)
          @packed = properties.empty? ? "" : Wire::Properties.pack(properties.transform_values(&:to_s))
        end

        # @api private
        def bytesize = @payload.bytesize + @packed.bytesize
      end
    end
  end
end
