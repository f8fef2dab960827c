# frozen_string_literal: true

module Hikyaku
  module Codec
    module Reading
      # Breaks text into lines: what stands between two brackets is in one line where it fits, and else each entry has a line of its own. It waits for no more
      # than a line, so that anything can be written as it comes.
      #
      # After D. C. Oppen, "Prettyprinting", ACM Transactions on Programming Languages and Systems, 1980, with breaks that all agree.
      class Layout
        INDENTATION = "  "
        private_constant :INDENTATION

        def initialize(out, width:, max_bytes: Float::INFINITY)
          @out = out
          @width = width
          @left = max_bytes
          @column = @levels = 0
          @waiting = @between = nil
          @nested = @length = 0
        end

        def full? = @left.negative?

        def text(text)
          return write(text) unless @waiting
          wait(:text, text)
        end

        def open(text)
          return write(text) unless @width
          @waiting ||= []
          @nested += 1
          wait(:open, text)
        end

        # Where a line may end.
        def break(text)
          return write(text) unless @width
          @waiting ? wait(:break, text) : line
        end

        # Where a line ends if what follows does not fit into it, wherever else it ends.
        def fill(text)
          return write(text) unless @width
          @waiting ? wait(:fill, text) : @between = text
        end

        def close(text)
          return write(text) unless @width
          if @waiting
            wait(:close, text)
          else
            @levels -= 1
            line
            write(text)
          end
        end

        def finish
          flat = @waiting or return
          @waiting = nil
          flat.each { |_, text| write(text) }
        end

        private

        def wait(kind, text)
          @waiting << [kind, text]
          @length += text.size
          # A comma may follow.
          return broken if @column + @length >= @width
          settled if kind == :close && (@nested -= 1).zero?
        end

        # Everything between two brackets fits.
        def settled
          finish
          @nested = @length = 0
        end

        # The outermost brackets do not fit: their entries get lines, and what is in them is looked at anew.
        def broken
          pieces = @waiting
          @waiting = nil
          @nested = @length = 0
          write(pieces.shift.last)
          @levels += 1
          pieces.each { |kind, text| public_send(kind, text) }
        end

        def line
          write("\n#{INDENTATION * @levels}")
          @column = INDENTATION.size * @levels
        end

        def write(text)
          if @between
            between, @between = @between, nil
            (@column + between.size + text.size < @width) ? write(between) : line
          end
          @column += text.size
          return if full?
          @left -= text.bytesize
          @out << text unless full?
        end
      end
    end
  end
end
