# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module HTTP
    module ContentCoding
      # Undoes the codings of one body, the last that was applied first. What comes out of one goes to the next in pieces of a megabyte at most, so that a
      # little that becomes very much is refused when it is beyond the limit, and not after. Made by {ContentCoding.decoder}.
      class Decoder
        # Bytes that a single piece may become, where there is no other limit.
        MOST_AT_ONCE = 134_217_728

        # @api private
        # @param stages [Array] what undoes each coding
        # @param max_bytes [Integer, nil]
        def initialize(stages, max_bytes:)
          @stages = stages
          @max_bytes = max_bytes
          @sizes = Array.new(stages.size + 1, 0)
          @failure = nil
        end

        # @param piece [String] of the body, as it came
        # @return [String] what it becomes, binary; it may be empty
        # @raise [Corrupt] and again by every call that follows
        # @raise [TooLarge] the same; the limit holds for what lies between two codings, too
        def <<(piece)
          guarded do |decoded|
            @before = @sizes.dup
            pass(piece.b, 0, decoded)
          end
        end

        # Says that nothing more comes.
        #
        # @return [String] what was held back, binary
        # @raise [Corrupt] it ended too early
        def finish
          guarded do
            @stages.each_with_index do |stage, index|
              next if @sizes[index].zero? || stage.complete?
              raise Corrupt, "the body ended in the middle of its content coding"
            end
          end
        end

        # @return [Boolean] whether it was labelled gzip, is not, and was left as it is
        def mislabelled? = @stages.any?(&:mislabelled?)

        # @return [String] without the bytes
        def inspect = "#<#{self.class} #{@sizes.join(" ")}>"

        private

        def guarded
          raise @failure if @failure
          String.new(encoding: Encoding::BINARY).tap { |decoded| yield decoded }
        rescue Corrupt, TooLarge => error
          @failure = error
          raise
        end

        def pass(bytes, index, decoded)
          count(bytes.bytesize, index)
          return decoded << bytes if index == @stages.size
          @stages[index].decode(bytes) { |piece| pass(piece, index + 1, decoded) } unless bytes.empty?
        end

        def count(bytes, index)
          @sizes[index] += bytes
          return if index.zero?
          size, limit = @max_bytes ? [@sizes[index], @max_bytes] : [@sizes[index] - @before[index], MOST_AT_ONCE]
          raise TooLarge, "the body becomes larger than #{limit} bytes when its content coding is undone" if size > limit
        end
      end
    end
  end
end
