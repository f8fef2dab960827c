# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Codec
    # An array, written item by item: see {Format#each_piece}.
    class Pieces
      include Enumerable

      # What a format puts before, between and behind the items, and how many there must be, or nil.
      Frame = Struct.new(:opening, :separator, :closing, :count, keyword_init: true)

      def initialize(format, enumerable, buffer:, frame:)
        @format = format
        @enumerable = enumerable
        @buffer = buffer
        @frame = frame
      end

      def each
        piece = @frame.opening.b
        seen = 0
        @enumerable.each do |item|
          raise WrongCount, "there are more than the #{seen} items that were announced; the array is broken off" if seen == @frame.count
          piece << @frame.separator unless seen.zero?
          piece << @format.dump(item)
          seen += 1
          next if piece.bytesize < @buffer
          yield piece
          piece = "".b
        end
        raise WrongCount, "there are #{seen} items where #{@frame.count} were announced; the array is broken off" unless [nil, seen].include?(@frame.count)
        yield piece << @frame.closing
      end
    end
  end
end
