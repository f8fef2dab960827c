# frozen_string_literal: true

module Hikyaku
  module Log
    # Finds positions by the event ids that publishers chose. Ids that the hub makes need no index: they are
    # enciphered positions (PositionCipher).
    #
    # An id may be used again; it stands for the earliest retained record that bears it
    # (Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing").
    class IdIndex
      def initialize
        @positions = {}
      end

      # @param id [String]
      # @param position [Integer] greater than any added before
      # @return [void]
      def add(id, position)
        case (known = @positions[id])
        when nil then @positions[id] = position
        when Integer then @positions[id] = [known, position]
        else known << position
        end
      end

      # @param id [String]
      # @return [Integer, nil] the earliest retained position that bears the id
      def [](id)
        known = @positions[id]
        known.is_a?(Array) ? known.first : known
      end

      # Forgets one evicted record.
      #
      # @param id [String]
      # @param position [Integer]
      # @return [void]
      def remove(id, position)
        known = @positions[id]
        if known.is_a?(Array)
          known.delete(position)
          @positions[id] = known.first if known.one?
        elsif known == position
          @positions.delete(id)
        end
      end

      # @return [Integer] how many different ids are known
      def size = @positions.size
    end
  end
end
