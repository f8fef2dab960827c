# frozen_string_literal: true

require_relative "blocks"
require_relative "epoch"

module Hikyaku
  class Hub
    class Form
      # The compressed streams that receive the same events: those with the same form and the same matchers, whose grants admit
      # nothing private. They share one deflate context, so that an event is compressed once for all of them, and well. What only
      # some of them receive never goes into it, and the length of what they receive tells nothing of what they do not.
      #
      #     epoch     1 2 3 … 64 | 65 66 …       each event behind those of its epoch
      #     joins       ─ ─ … ── | 65 66 …       blocks that stand alone, until the next epoch begins
      class Group
        # An event of more bytes stands alone, for everybody: what is less can be kept for those who have a part of it.
        LARGE = 61_440
        private_constant :LARGE

        # @return [Array] what says who belongs to it
        attr_reader :key
        # @return [Epoch, nil] the newest
        attr_reader :epoch
        # @return [Integer] how many streams belong to it
        attr_accessor :streams
        # @return [Portion, nil] what those receive next that are in step: gathered once
        attr_accessor :portion

        # @param key [Array]
        # @param newest [Integer] the position from which on it compresses
        def initialize(key, newest)
          @key = key
          @newest = newest
          @blocks = Blocks.new
          @epoch = nil
          @streams = 0
          @portion = nil
        end

        # @param position [Integer] of an event that the group receives
        # @param cursor [Integer] of who wants it
        # @param epoch [Epoch, nil] with which that is in step
        # @yieldreturn [String] the event, not compressed
        # @return [Piece, nil] of the newest epoch; nil: for this one it has to stand alone
        def piece(position, cursor, epoch)
          add(position, yield) if position > @newest
          @epoch&.piece(position, cursor, epoch.equal?(@epoch))
        end

        # @param portion [Portion] whose events stand alone
        # @param epoch [Epoch, nil] with which a stream is in step
        # @return [Boolean] the group has nothing of it for that stream
        def passes?(portion, epoch) = portion.last <= @newest && (epoch.nil? || !epoch.equal?(@epoch))

        # @return [String] without what it holds
        def inspect = "#<#{self.class.name} #{@streams} streams>"

        private

        def add(position, bytes)
          @newest = position
          return @epoch = nil if bytes.bytesize > LARGE
          if @epoch.nil? || @epoch.full?
            @blocks.begin_anew
            @epoch = Epoch.new
          end
          @epoch.add(position, @blocks.follow(bytes))
        end
      end
    end
  end
end
