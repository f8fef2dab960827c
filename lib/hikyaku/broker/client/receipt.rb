# frozen_string_literal: true

require_relative "../level"

module Hikyaku
  module Broker
    class Client
      # The broker's acknowledgement of a message.
      class Receipt
        # @return [Integer, nil] of the message; nil when it was taken before and only that is known
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

        # @return [Symbol] what was reached: `:memory`, `:written` or `:synced`
        def level = Level::NAMES[@level]

        # It was sent again after its connection had broken, and the broker had it already.
        #
        # @return [Boolean]
        def duplicate? = @duplicate

        # @return [Boolean] for telling the results of a batch apart: refused messages have an error in its place
        def taken? = true

        # @return [String]
        def inspect = "#<#{self.class.name} #{id || "?"} #{level}#{" duplicate" if duplicate?}>"
      end
    end
  end
end
