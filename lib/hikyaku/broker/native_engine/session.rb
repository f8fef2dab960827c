# frozen_string_literal: true

module Hikyaku
  module Broker
    class NativeEngine
      # A connection of a client, as the engine in C has it.
      class Session
        attr_reader :number

        def known_as(number)
          @number = number
          self
        end

        def ended? = _ended

        def inspect = "#<#{self.class.name} #{number}#{" ended" if ended?}>"
      end
    end
  end
end
