# frozen_string_literal: true

module Hikyaku
  class Hub
    class Form
      # Bytes that go out whole or not at all, but for a socket that is full: an event, or what is said to one alone.
      class Piece
        attr_reader :bytes
        attr_reader :crc
        attr_reader :size

        def initialize(bytes, crc = nil, size = bytes.bytesize)
          @bytes = bytes.freeze
          @crc = crc
          @size = size
        end

        def bytesize = @bytes.bytesize
      end
    end
  end
end
