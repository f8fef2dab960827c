# frozen_string_literal: true

require_relative "../level"

module Hikyaku
  module Broker
    class Client
      # The broker's acknowledgement of a message.
      class Receipt
        # @return [Integer, nil] id of the message; nil: the broker has recognised a duplicate, whose first id it does not remember
        attr_reader :id

        # @param id [Integer, nil]
        # @param level [Integer]
        # @param duplicate [Boolean]
        def initialize(id, level, duplicate: false)
          @id = id
          @level = level
          @duplicate = duplicate
          freeze
        end

        # @return [Symbol] the level that was reached: `:memory`, `:written` or `:synced`
        def level = Level::NAMES[@level]

        # @return [Boolean] the message was sent again after its connection had broken, and the broker had it already
        def duplicate? = @duplicate

        # @return [Boolean] true; in the result of a batch an error stands in the place of a refused message
        def taken? = true

        # @return [String]
        def inspect = "#<#{self.class.name} #{id || "?"} #{level}#{" duplicate" if duplicate?}>"
      end
    end
  end
end
