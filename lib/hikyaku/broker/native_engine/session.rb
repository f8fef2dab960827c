# frozen_string_literal: true

module Hikyaku
  module Broker
    class NativeEngine
      # A connection of a client, as the engine in C has it.
      class Session
        # @return [Integer] which the engine knows it by
        # @api private
        attr_reader :number

        # @param number [Integer]
        # @return [self]
        # @api private
        def known_as(number)
          @number = number
          self
        end

        # @return [Boolean] it has no connection any more
        def ended? = _ended

        # @return [String]
        def inspect = "#<#{self.class.name} #{number}#{" ended" if ended?}>"
      end
    end
  end
end
