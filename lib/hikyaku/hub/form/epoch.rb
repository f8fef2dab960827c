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

        def initialize(former = nil)
          @former = former
          @positions = []
          @pieces = []
          @crcs = []
          @sizes = []
          @members = 0
          @entered = false
        end

        def add(position, piece)
          @crcs << (@crcs.empty? ? piece.crc : Zlib.crc32_combine(@crcs.last, piece.crc, piece.size))
          @sizes << (@sizes.last || 0) + piece.size
          @positions << position
          @pieces << piece
        end

        def count = @positions.size

        def full? = @positions.size >= EVENTS || (@sizes.last || 0) >= BYTES

        def sends?(position, cursor, epoch)
          place = @positions.rindex(position)
          return false if place.nil? || @pieces.empty?
          return epoch.equal?(self) && @positions[place - 1] <= cursor if place > 0
          @former.nil? || (@former.equal?(epoch) && @former.last <= cursor)
        end

        def [](position) = @pieces[@positions.rindex(position)]

        def of_use?(portion, epoch)
          epoch.equal?(self) || ((@former.nil? || @former.equal?(epoch)) && @positions.first.between?(portion.first, portion.last))
        end

        def needed_at(position) = (@positions.first == position) ? @former : self

        def sum_until(cursor)
          place = @positions.bsearch_index { |position| position > cursor } || @positions.size
          place.zero? ? [0, 0] : [@crcs[place - 1], @sizes[place - 1]]
        end

        # Somebody is in step with it from now on.
        def join
          @members += 1
          @entered = true
        end

        # And is no more.
        def leave = @members -= 1

        def deserted? = @entered && @members.zero?

        # What it sent is not sent again. What it has still to say is how much that was.
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
