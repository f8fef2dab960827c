# frozen_string_literal: true

require "zlib"

module Hikyaku
  class Hub
    class Form
      # What a subscriber knows of itself when its stream is compressed: the checksum and the length of what was sent, before it was
      # compressed, and with which epoch it is in step.
      #
      # Of what an epoch says both are known to the epoch, for all who are in step: to them nothing is added per event, but what the
      # epoch sent up to the cursor, when they leave it.
      module Member
        MASK = 0xFFFF_FFFF
        private_constant :MASK

        # @return [Group, nil] with which it shares what is compressed
        attr_accessor :group
        # @return [Epoch, nil] everything that this epoch has up to the cursor, it has got, and nothing else since the epoch began;
        #   nil: it is in step with none
        attr_reader :epoch

        # @return [Boolean] the stream has its header
        def begun? = !@length.nil?

        # @return [Integer] CRC-32 of what was sent, but for what its epoch sent
        def crc = @crc || 0

        # @return [Integer] bytes of that, as the trailer counts them
        def length = @length || 0

        # Before the cursor is put anywhere but behind what it receives next.
        #
        # @return [void]
        def leave_epoch
          epoch = @epoch or return
          @epoch = nil
          epoch.leave
          count(*epoch.sum_until(sent_until))
        end

        # Before the cursor moves.
        #
        # @param portion [Portion] that is sent, all of it
        # @return [void]
        def receive(portion)
          epoch = portion.epoch
          return if epoch&.equal?(@epoch)
          leave_epoch
          count(*portion.sum)
          enter(epoch)
        end

        # Before the cursor moves. What it gets a part of counts as sent.
        #
        # @param piece [Piece] that is sent
        # @param epoch [Epoch, nil] whose piece it is
        # @return [void]
        def receive_piece(piece, epoch)
          return if epoch&.equal?(@epoch)
          leave_epoch
          count(piece.crc, piece.size) unless epoch
          enter(epoch)
        end

        private

        # What is sent beside the epochs, or when they are left.
        def count(crc, size)
          @crc = Zlib.crc32_combine(self.crc, crc, size)
          @length = (length + size) & MASK
        end

        def enter(epoch)
          @epoch = epoch
          epoch ? epoch.join : @group&.missed!
        end
      end
    end
  end
end
