# frozen_string_literal: true

module Hikyaku
  class Hub
    class Form
      # Bytes that go out whole or not at all, but for a socket that is full: an event, or what is said to one alone.
      class Piece
        # @return [String] frozen
        attr_reader :bytes
        # @return [Integer, nil] CRC-32 of what it is when it is decoded; nil where nothing is coded
        attr_reader :crc
        # @return [Integer] how many bytes that has
        attr_reader :size

        # @param bytes [String]
        # @param crc [Integer, nil]
        # @param size [Integer]
        def initialize(bytes, crc = nil, size = bytes.bytesize)
          @bytes = bytes.freeze
          @crc = crc
          @size = size
        end

        # @return [Integer] how many bytes go out
        def bytesize = @bytes.bytesize
      end
    end
  end
end
