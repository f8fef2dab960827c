# frozen_string_literal: true

require "zlib"

module Hikyaku
  class Hub
    class Form
      # Some events of a group that were compressed one with the other: each refers to those before it. Who got all of it so far, and
      # nothing else since it began, is in step and can read the next.
      #
      #     begins anew         the first refers to nothing: everybody can read it
      #     goes on             the first refers to the epoch before: for those who are in step with that
      class Epoch
        # After so many events, or so many bytes that were compressed, the next epoch begins.
        EVENTS = 64
        BYTES = 65_536
        private_constant :EVENTS, :BYTES

        # @param former [Epoch, nil] on which it goes on; nil: it begins anew
        def initialize(former = nil)
          @former = former
          @positions = []
          @pieces = []
          @crcs = []
          @sizes = []
          @members = 0
          @entered = false
        end

        # @param position [Integer] after those before it
        # @param piece [Piece]
        # @return [void]
        def add(position, piece)
          @crcs << (@crcs.empty? ? piece.crc : Zlib.crc32_combine(@crcs.last, piece.crc, piece.size))
          @sizes << (@sizes.last || 0) + piece.size
          @positions << position
          @pieces << piece
        end

        # @return [Integer] how many events it has
        def count = @positions.size

        # @return [Boolean]
        def full? = @positions.size >= EVENTS || (@sizes.last || 0) >= BYTES

        # @param position [Integer]
        # @param cursor [Integer] of who wants what is there
        # @param epoch [Epoch, nil] with which that is in step
        # @return [Boolean] it is here, and refers to nothing that was not sent
        def sends?(position, cursor, epoch)
          place = @positions.rindex(position)
          return false if place.nil? || @pieces.empty?
          return epoch.equal?(self) && @positions[place - 1] <= cursor if place > 0
          @former.nil? || (@former.equal?(epoch) && @former.last <= cursor)
        end

        # @param position [Integer] of one of its events
        # @return [Piece]
        def [](position) = @pieces[@positions.rindex(position)]

        # @param portion [Portion] of events
        # @param epoch [Epoch, nil] with which a stream is in step
        # @return [Boolean] that stream may receive something of it here
        def of_use?(portion, epoch)
          epoch.equal?(self) || ((@former.nil? || @former.equal?(epoch)) && @positions.first.between?(portion.first, portion.last))
        end

        # @param position [Integer] of one of its events
        # @return [Epoch, nil] with which one has to be in step to receive it; nil: with none
        def needed_at(position) = (@positions.first == position) ? @former : self

        # @param cursor [Integer] of who is in step
        # @return [Array(Integer, Integer)] CRC-32 and length of what that has got of it
        def sum_until(cursor)
          place = @positions.bsearch_index { |position| position > cursor } || @positions.size
          place.zero? ? [0, 0] : [@crcs[place - 1], @sizes[place - 1]]
        end

        # Somebody is in step with it from now on.
        #
        # @return [void]
        def join
          @members += 1
          @entered = true
        end

        # And is no more.
        #
        # @return [void]
        def leave = @members -= 1

        # @return [Boolean] nobody who was in step is so any more: to begin anew costs nothing
        def deserted? = @entered && @members.zero?

        # What it sent is not sent again. What it has still to say is how much that was.
        #
        # @return [void]
        def over!
          @former = nil
          @pieces = [].freeze
        end

        protected

        def last = @positions.last
      end
    end
  end
end
