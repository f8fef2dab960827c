# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # Bytes that wait to be sent, in pieces: the first of a turn is a piece as it is, and what follows is put behind it. What was
      # taken is not changed any more.
      class Outbox
        PIECE = 64 * 1024
        private_constant :PIECE

        # @return [Integer] bytes that were not sent yet
        attr_reader :size
        # @return [Integer] how many of them are no deliveries; those of a piece that is being sent count until it was
        attr_reader :answers

        def initialize
          @pieces = []
          @shares = [] # answers in each piece, that at the front included
          @last = nil
          @front = nil
          @sent = 0
          @size = @answers = 0
        end

        # @param bytes [String] an answer, or what else is not a delivery; its own from now on
        # @return [self]
        def <<(bytes)
          size = bytes.bytesize
          push(bytes)
          @answers += size
          @shares[-1] += size
          self
        end

        # @param bytes [String] a delivery; its own from now on
        # @return [void]
        def push(bytes)
          @size += bytes.bytesize
          if @last
            @last << bytes
          else
            @pieces << (@last = bytes)
            @shares << 0
          end
          @last = nil if @last.bytesize >= PIECE
        end

        # @return [Boolean]
        def empty? = @size.zero?

        # @param max_bytes [Integer]
        # @return [String] the next ones, the same until `wrote`
        def take(max_bytes)
          unless @front
            @front = @pieces.shift or return ""
            @last = nil if @pieces.empty?
          end
          (@sent.zero? && @front.bytesize <= max_bytes) ? @front : @front.byteslice(@sent, max_bytes)
        end

        # @param count [Integer] bytes that were sent
        # @return [void]
        def wrote(count)
          return if count.zero?
          @size -= count
          @sent += count
          return if @sent < @front.bytesize
          @front = nil
          @sent = 0
          @answers -= @shares.shift
        end
      end
    end
  end
end
