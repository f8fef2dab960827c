# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module HTTP
    module ContentCoding
      # Undoes the codings of one body, the last that was applied first. What it becomes is taken piece by piece: of what nobody takes nothing is decoded, so
      # that a little that becomes very much is refused when it is beyond the limit, or waits as the little that it is. Made by {ContentCoding.decoder}.
      class Decoder
        # Bytes that what is given to {#<<} may become, where there is no other limit.
        MOST_AT_ONCE = 134_217_728

        # What a piece has at the least, where there is so much: the steps of most stages give little.
        ENOUGH = 65_536
        private_constant :ENOUGH

        def initialize(stages, max_bytes:)
          @stages = stages
          @max_bytes = max_bytes
          @sizes = Array.new(stages.size + 1, 0)
          @inputs = Array.new(stages.size)
          @queue = []
          @failure = @before = nil
        end

        def <<(piece)
          @before = @sizes.dup
          feed(piece)
          decoded = String.new(encoding: Encoding::BINARY)
          while (bytes = self.next)
            decoded << bytes
          end
          decoded
        ensure
          @before = nil
        end

        # Takes a piece, and decodes nothing of it yet.
        def feed(piece)
          @queue << piece.b unless piece.empty?
        end

        def next
          guarded do
            decoded = nil
            while (decoded.nil? || decoded.bytesize < ENOUGH) && (bytes = pull(@stages.size - 1))
              (decoded ||= String.new(encoding: Encoding::BINARY)) << bytes
            end
            decoded
          end
        end

        # Says that nothing more comes. All that there is has to be taken before.
        def finish
          guarded do
            @stages.each_with_index do |stage, index|
              next if @sizes[index].zero? || stage.complete?
              raise Corrupt, "the body ended in the middle of its content coding"
            end
          end
          "".b
        end

        def mislabelled? = @stages.any?(&:mislabelled?)

        def inspect = "#<#{self.class} #{@sizes.join(" ")}>"

        private

        def guarded
          raise @failure if @failure
          yield
        rescue Corrupt, TooLarge => error
          @failure = error
          raise
        end

        # What comes out of a stage, which asks the one before it where it has nothing to go on with.
        def pull(index)
          return @queue.shift&.tap { |bytes| count(bytes.bytesize, 0) } if index.negative?
          loop do
            input = @inputs[index] || pull(index - 1) or return
            piece, @inputs[index] = @stages[index].step(input)
            count(piece.bytesize, index + 1)
            return piece unless piece.empty?
          end
        end

        def count(bytes, index)
          @sizes[index] += bytes
          return if index.zero?
          return refuse(@max_bytes) if @max_bytes && @sizes[index] > @max_bytes
          refuse(MOST_AT_ONCE) if @max_bytes.nil? && @before && @sizes[index] - @before[index] > MOST_AT_ONCE
        end

        def refuse(limit) = raise(TooLarge, "the body becomes larger than #{limit} bytes when its content coding is undone")
      end
    end
  end
end
