# frozen_string_literal: true

require "zlib"
require_relative "blocks"
require_relative "piece"

module Hikyaku
  class Hub
    class Form
      # What one `take` hands out: pieces, one behind the other, and where they lead.
      class Portion
        HEADER = Piece.new(Blocks::HEADER, 0, 0)
        Part = Struct.new(:piece, :position, :epoch)
        private_constant :Part

        # @return [Integer] how many events are in it
        attr_reader :count
        # @return [Integer] how many bytes go out
        attr_reader :bytesize
        # @return [Integer, nil] it serves cursors from here on …
        attr_reader :after
        # @return [Integer, nil] … and before here: the position of its first event
        attr_reader :first
        # @return [Epoch, nil] only for who is in step with it; nil: for everybody of the group or form
        attr_reader :within
        # @return [Epoch, nil] with which it leaves a stream in step
        attr_reader :epoch
        # @return [String, nil] what of it is said to one alone, as Server-Sent Events
        attr_reader :said
        # @return [Integer, nil] the cursor of whoever has received it; nil: where it was
        attr_accessor :to

        def initialize
          @parts = []
          @count = @bytesize = 0
          @epoch = @said = @to = @bytes = @sum = nil
          @of = @after = @first = @newest = @within = nil
        end

        # A stream begins with it.
        #
        # @return [void]
        def begin! = put(Part.new(HEADER, nil, nil))

        # @param piece [Piece]
        # @param frame [String] what it says, as Server-Sent Events
        # @return [void]
        def say(piece, frame)
          @said = frame
          put(Part.new(piece, nil, nil))
        end

        # @param piece [Piece]
        # @param position [Integer] of the event
        # @param epoch [Epoch, nil] whose piece it is
        # @return [void]
        def add(piece, position, epoch)
          @count += 1
          put(Part.new(piece, position, epoch))
        end

        # @return [String] frozen
        def bytes = @bytes ||= (@parts.size == 1) ? @parts.first.piece.bytes : @parts.map { |part| part.piece.bytes }.join.freeze

        # @return [Array(Integer, Integer)] CRC-32 and length of what is compressed in it, but for what its last epoch says
        def sum = @sum ||= sum_of(@epoch ? @parts.reverse.drop_while { |part| @epoch.equal?(part.epoch) }.reverse : @parts)

        # @yieldparam piece [Piece]
        # @yieldparam position [Integer, nil] of the event; nil: it is none
        # @yieldparam epoch [Epoch, nil] whose piece it is
        # @return [void]
        def each
          @parts.each { |part| yield part.piece, part.position, part.epoch }
        end

        # Others may have it, too: those who receive nothing else of `of`.
        #
        # @param of [Group, Feed]
        # @param after [Integer] it serves cursors from here on
        # @param newest [Integer] of what they receive
        # @return [self]
        def share(of, after, newest)
          first = @parts.first
          @of = of
          @after = after
          @first = first.position
          @newest = newest
          @within = first.epoch&.needed_at(@first)
          self
        end

        # @return [Boolean] it is of epochs from beginning to end
        def of_epochs? = @parts.all?(&:epoch)

        # @return [Boolean] nothing of it is of an epoch, nor does a stream begin with it
        def alone? = @parts.none? { |part| part.epoch || part.position.nil? }

        # @return [Integer] the position of the last event
        def last = @parts.last.position

        # @return [Array<Integer>] of the events
        def positions = @parts.map(&:position)

        # @param of [Group, Feed]
        # @param cursor [Integer]
        # @param epoch [Epoch, nil] with which the stream is in step
        # @param newest [Integer] as of `share`
        # @return [Boolean] it is what a stream of these receives next
        def serves?(of, cursor, epoch, newest)
          cursor < @first && cursor >= @after && newest == @newest && (@within.nil? || @within.equal?(epoch)) && of.equal?(@of)
        end

        private

        def put(part)
          @bytesize += part.piece.bytesize
          @epoch = part.epoch
          @parts << part
        end

        def sum_of(parts)
          parts.reduce([0, 0]) { |(crc, size), part| [Zlib.crc32_combine(crc, part.piece.crc, part.piece.size), size + part.piece.size] }
        end
      end
    end
  end
end
