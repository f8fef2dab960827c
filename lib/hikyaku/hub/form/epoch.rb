# frozen_string_literal: true

module Hikyaku
  class Hub
    class Form
      # Some events of a group that were compressed one with the other: the first refers to nothing before it, each other to those
      # before it. Who got all of it so far, and nothing else since it began, is in step and can read the next.
      class Epoch
        # After so many events, or so many bytes that were compressed, the next epoch begins: for those who are not in step.
        EVENTS = 64
        BYTES = 65_536
        private_constant :EVENTS, :BYTES

        def initialize
          @positions = []
          @pieces = []
          @size = 0
        end

        # @param position [Integer] after those before it
        # @param piece [Piece]
        # @return [void]
        def add(position, piece)
          @positions << position
          @pieces << piece
          @size += piece.size
        end

        # @return [Boolean]
        def full? = @positions.size >= EVENTS || @size >= BYTES

        # @param position [Integer]
        # @param cursor [Integer] of who wants it
        # @param in_step [Boolean] it is in step with this epoch
        # @return [Piece, nil] nil when it is not here, or refers to what was not sent
        def piece(position, cursor, in_step)
          place = @positions.rindex(position) or return
          @pieces[place] if place.zero? || (in_step && @positions[place - 1] <= cursor)
        end

        # @param position [Integer]
        # @return [Boolean] the epoch begins there
        def begins_at?(position) = @positions.first == position
      end
    end
  end
end
