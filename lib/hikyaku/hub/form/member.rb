# frozen_string_literal: true

require "zlib"

module Hikyaku
  class Hub
    class Form
      # What is known of one compressed stream: the checksum and the length of what was sent, before it was compressed, and with
      # which epoch it is in step.
      class Member
        MASK = 0xFFFF_FFFF
        private_constant :MASK

        # @return [Integer] CRC-32
        attr_reader :crc
        # @return [Epoch, nil] everything that this epoch sent so far up to the stream's cursor, it has got, and nothing else since
        #   the epoch began; nil: none
        attr_accessor :epoch

        def initialize
          @crc = 0
          @length = nil
          @epoch = nil
        end

        # @return [Boolean] the stream has its header
        def begun? = !@length.nil?

        # @return [Integer] bytes, as the trailer counts them
        def length = @length || 0

        # @param piece [Piece, Portion] that is sent
        # @param epoch [Epoch, nil] with which that leaves the stream in step
        # @return [void]
        def add(piece, epoch = nil)
          @crc = Zlib.crc32_combine(@crc, piece.crc, piece.size)
          @length = ((@length || 0) + piece.size) & MASK
          @epoch = epoch
        end
      end
    end
  end
end
