# frozen_string_literal: true

module Hikyaku
  module Log
    # Finds positions by the event ids that publishers chose. Ids that the hub makes need no index: they are
    # enciphered positions (PositionCipher).
    #
    # An id may be used again; it stands for the earliest retained record that bears it
    # (Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing").
    class IdIndex
      # What an id costs in memory, beside its text (measured: 110 to 190 bytes).
      OVERHEAD = 200
      private_constant :OVERHEAD

      def initialize
        @positions = {}
        @ids = []
        @oldest_first = []
      end

      def add(id, position)
        @ids << id
        @oldest_first << position
        case (known = @positions[id])
        when nil then @positions[id] = position
        when Integer then @positions[id] = [known, position]
        else known << position
        end
      end

      def [](id)
        known = @positions[id]
        known.is_a?(Array) ? known.first : known
      end

      # Forgets the records before a position.
      def keep_from(position)
        while (oldest = @oldest_first.first) && oldest < position
          @oldest_first.shift
          remove(@ids.shift)
        end
      end

      def size = @positions.size

      def bytes = @ids.size * OVERHEAD

      private

      # The earliest that bears an id goes first.
      def remove(id)
        known = @positions[id]
        return @positions.delete(id) unless known.is_a?(Array)
        known.shift
        @positions[id] = known.first if known.one?
      end
    end
  end
end
