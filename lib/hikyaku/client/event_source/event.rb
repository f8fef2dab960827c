# frozen_string_literal: true

module Hikyaku
  class EventSource
    # One event of a stream.
    class Event
      # @return [String] "message" when the server named none
      attr_reader :type
      # @return [String] lines joined by LF
      attr_reader :data
      # @return [String] the last event id when the event came: its own, or that of an earlier one; "" before any
      attr_reader :id

      # @param type [String]
      # @param data [String]
      # @param id [String]
      def initialize(type:, data:, id:)
        @type = type
        @data = data
        @id = id
        freeze
      end

      # @return [Boolean]
      def ==(other) = other.is_a?(Event) && to_a == other.to_a
      alias_method :eql?, :==

      # @return [Integer]
      def hash = to_a.hash

      # @return [Array(String, String, String)] type, data and id
      def to_a = [@type, @data, @id]

      # @return [Hash{Symbol => String}] for pattern matching
      def deconstruct_keys(_keys) = {type: @type, data: @data, id: @id}

      # @return [String]
      def inspect = "#<#{self.class.name} #{@type} #{@id.inspect} #{@data.bytesize} bytes>"
    end
  end
end
