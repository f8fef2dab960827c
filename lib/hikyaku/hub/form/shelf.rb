# frozen_string_literal: true

module Hikyaku
  class Hub
    class Form
      # What was made of the log's records, by position: until so many bytes are there, or the ring has passed the records. The
      # oldest goes first.
      class Shelf
        # What an entry costs beside its bytes.
        OVERHEAD = 160
        private_constant :OVERHEAD

        def initialize(log, capacity)
          @log = log
          @capacity = capacity
          @pieces = {}
          @bytes = 0
        end

        def fetch(position)
          @pieces[position] || yield.tap do |piece|
            @pieces[position] = piece
            @bytes += piece.bytesize + OVERHEAD
            tidy
          end
        end

        def size = @pieces.size

        private

        def tidy
          while @bytes > @capacity || @pieces.first.first < @log.first
            _, piece = @pieces.shift
            @bytes -= piece.bytesize + OVERHEAD
            break if @pieces.empty?
          end
        end
      end
    end
  end
end
