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

        attr_reader :count
        attr_reader :bytesize
        attr_reader :after
        attr_reader :first
        attr_reader :within
        attr_reader :epoch
        attr_reader :said
        attr_accessor :to

        def initialize
          @parts = []
          @count = @bytesize = 0
          @epoch = @said = @to = @bytes = @sum = nil
          @of = @after = @first = @newest = @within = nil
        end

        # A stream begins with it.
        def begin! = put(Part.new(HEADER, nil, nil))

        def say(piece, frame)
          @said = frame
          put(Part.new(piece, nil, nil))
        end

        def add(piece, position, epoch)
          @count += 1
          put(Part.new(piece, position, epoch))
        end

        def bytes = @bytes ||= (@parts.size == 1) ? @parts.first.piece.bytes : @parts.map { |part| part.piece.bytes }.join.freeze

        def sum = @sum ||= sum_of(@epoch ? @parts.reverse.drop_while { |part| @epoch.equal?(part.epoch) }.reverse : @parts)

        def each
          @parts.each { |part| yield part.piece, part.position, part.epoch }
        end

        # Others may have it, too: those who receive nothing else of `of`.
        def share(of, after, newest)
          first = @parts.first
          @of = of
          @after = after
          @first = first.position
          @newest = newest
          @within = first.epoch&.needed_at(@first)
          self
        end

        def of_epochs? = @parts.all?(&:epoch)

        def alone? = @parts.none? { |part| part.epoch || part.position.nil? }

        def last = @parts.last.position

        def positions = @parts.map(&:position)

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
