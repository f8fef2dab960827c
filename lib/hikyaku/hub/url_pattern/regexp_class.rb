# frozen_string_literal: true

module Hikyaku
  class Hub
    class UrlPattern
      # Parses a character class after its "[": characters and ranges, classes in it, intersection (&&) and subtraction (--).
      #
      # ECMAScript, "ClassContents" under the flag "v".
      class RegexpClass
        DOUBLE = "&!#$%*+,.:;<=>?@^`~"
        SYNTAX = "()[]{}/-|"
        # What may be escaped in a class beside what may be anywhere.
        ALSO_ESCAPED = "&-!#%,:;<=>@`~"
        MAX_DEPTH = 50
        private_constant :DOUBLE, :SYNTAX, :ALSO_ESCAPED, :MAX_DEPTH

        def initialize(reader, depth = 1)
          @reader = reader
          @depth = depth
          reader.refuse("has classes more than #{MAX_DEPTH} deep") if depth > MAX_DEPTH
        end

        def mask
          negated = @reader.skip("^")
          mask = contents
          @reader.skip("]") or @reader.refuse("has a class that is not closed, or that mixes operators")
          negated ? @reader.complement(mask) : mask
        end

        private

        def contents
          return 0 if @reader.peek == "]"
          first = operand
          if @reader.peek(2) == "&&" then operation("&&", first) { |mask, other| mask & other }
          elsif @reader.peek(2) == "--" then operation("--", first) { |mask, other| mask & @reader.complement(other) }
          else union(first)
          end
        end

        def operation(operator, first)
          mask = mask_of(first)
          while @reader.skip(operator)
            @reader.refuse("has a class with three & in a row") if operator == "&&" && @reader.peek == "&"
            mask = yield(mask, mask_of(operand))
          end
          mask
        end

        def union(first)
          mask = with_range(first)
          mask |= with_range(operand) until @reader.ended? || @reader.peek == "]"
          mask
        end

        # A character may be the beginning of a range.
        def with_range(first)
          return mask_of(first) unless @reader.peek == "-"
          @reader.refuse("mixes operators in a class") if @reader.peek(2) == "--"
          @reader.take
          last = operand
          @reader.refuse("has a range in a class that does not go from a character to a character") unless first[0] == :char && last[0] == :char
          @reader.refuse("has a range in a class that runs backwards") if first[1] > last[1]
          (first[1]..[last[1], 127].min).sum { |code| 1 << code }
        end

        # [:char, code] or [:mask, mask]
        def operand
          char = @reader.take
          case char
          when "[" then [:mask, RegexpClass.new(@reader, @depth + 1).mask]
          when "\\" then escape
          else
            @reader.refuse("has a #{char} in a class that must be escaped with a backslash") if SYNTAX.include?(char)
            @reader.refuse("has #{char}#{char} in a class, which is reserved") if DOUBLE.include?(char) && @reader.peek == char
            [:char, char.ord]
          end
        end

        def escape
          case @reader.peek
          when "p", "P" then @reader.unsupported("Unicode properties")
          when "q" then @reader.unsupported("strings in classes")
          when "b"
            @reader.take
            return [:char, 8]
          end
          mask = @reader.class_escape
          mask ? [:mask, mask] : [:char, @reader.character_escape(also: ALSO_ESCAPED)]
        end

        def mask_of(operand)
          return operand[1] if operand[0] == :mask
          (operand[1] < 128) ? 1 << operand[1] : 0
        end
      end
      private_constant :RegexpClass
    end
  end
end
