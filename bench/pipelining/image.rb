# frozen_string_literal: true

module Bench
  # An inline image of the pages: a GIF of exactly so many bytes, that cannot be compressed, and says which it is: in words, and
  # by its width, which a browser sees.
  module Image
    HEIGHT = 1
    HEAD = "GIF89a"
    TWO_COLOURS = "\x80\x00\x00\x00\x00\x00\xFF\xFF\xFF".b.freeze # flags, background, aspect, black, white
    COMMENT = "\x21\xFE".b.freeze
    DOT = "\x2C\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3B".b.freeze # one black pixel, and the end
    END_OF_COMMENT = "\x00".b.freeze
    AROUND = HEAD.bytesize + 4 + TWO_COLOURS.bytesize + COMMENT.bytesize + END_OF_COMMENT.bytesize + DOT.bytesize
    MOST_BLOCK = 256 # bytes of a part of a comment, with that of its length
    LEAST = 100
    LABEL_AT = HEAD.bytesize + 4 + TWO_COLOURS.bytesize + COMMENT.bytesize + 1

    class << self
      # @param size [Integer] bytes, from {LEAST}
      # @param number [Integer] from 0
      # @return [String] always the same bytes
      def bytes(size, number)
        raise ArgumentError, "an image has at least #{LEAST} bytes, not #{size}" if size < LEAST
        "#{HEAD}#{[width(number), HEIGHT].pack("v2")}".b << TWO_COLOURS << COMMENT << comment(size - AROUND, size, number) << END_OF_COMMENT << DOT
      end

      # @return [Integer] pixels
      def width(number) = number + 1

      # @param body [String] that somebody got
      # @return [Boolean] whether it is as long as it should be, and this one
      def own?(body, size, number)
        label = label(size, number)
        body.bytesize == size && body.byteslice(LABEL_AT, label.bytesize).b == label
      end

      private

      def label(size, number) = "image #{number} of #{size} bytes;".b

      # So many bytes in parts, of which none is empty: an empty one is the end.
      def comment(left, size, number)
        random = Random.new(size * 1_000 + number)
        said = label(size, number)
        parts = "".b
        while left > 0
          block = [left, MOST_BLOCK].min
          block -= 1 if left - block == 1
          parts << (block - 1) << (said + random.bytes(block)).byteslice(0, block - 1)
          said = ""
          left -= block
        end
        parts
      end
    end
  end
end
