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

        attr_accessor :group
        attr_reader :epoch

        def begun? = !@length.nil?

        def crc = @crc || 0

        def length = @length || 0

        # Before the cursor is put anywhere but behind what it receives next.
        def leave_epoch
          epoch = @epoch or return
          @epoch = nil
          epoch.leave
          count(*epoch.sum_until(sent_until))
        end

        # Before the cursor moves.
        def receive(portion)
          epoch = portion.epoch
          return if epoch&.equal?(@epoch)
          leave_epoch
          count(*portion.sum)
          enter(epoch)
        end

        # Before the cursor moves. What it gets a part of counts as sent.
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
