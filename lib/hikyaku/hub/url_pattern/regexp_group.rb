# frozen_string_literal: true

require_relative "../../error"
require_relative "../topic_program"
require_relative "regexp_class"

module Hikyaku
  class Hub
    class UrlPattern
      # Parses the regular expression of a group: JavaScript's syntax under the flag "v", as far as a finite automaton can express it:
      # characters, classes, groups, alternatives, quantifiers and the anchors ^ and $. Lookaround, back references, word boundaries,
      # inline flags and Unicode properties are refused as not supported.
      #
      # The components of a parsed URL consist of printable ASCII. So "." is any byte, and a character above ASCII never matches.
      #
      # ECMAScript, "Patterns"; URL Pattern Standard, "compile a component".
      class RegexpGroup
        Expression = TopicProgram::Expression
        ANY = [:set, Expression::EVERY_BYTE].freeze
        CONTROLS = {"f" => 12, "n" => 10, "r" => 13, "t" => 9, "v" => 11}.freeze
        SYNTAX = "^$\\.*+?()[]{}|/"
        DIGIT = Expression.set("0123456789")[1]
        WORD = Expression.set(48..57, 65..90, 97..122, 95)[1]
        SPACE = Expression.set(9..13, 32)[1]
        # Nesting of groups, which are parsed by recursion.
        MAX_DEPTH = 50
        # A repetition above this is too large for any program.
        MAX_COUNT = 1_000_000
        private_constant :Expression, :ANY, :CONTROLS, :SYNTAX, :DIGIT, :WORD, :SPACE, :MAX_DEPTH, :MAX_COUNT

        def initialize(source, names: {})
          @source = source
          @at = 0
          @names = names
          @depth = 0
        end

        def expression
          node = disjunction
          refuse("has a closing parenthesis too many") unless ended?
          TopicProgram.check!(node)
          node
        end

        # The reader, which RegexpClass uses as well.

        def ended? = @at >= @source.size

        def peek(count = 1) = ended? ? nil : @source[@at, count]

        def take
          refuse("ends too early") if ended?
          @at += 1
          @source[@at - 1]
        end

        def skip(text) = (@at += text.size if @source[@at, text.size] == text)

        def scan(pattern)
          text = @source.match(pattern, @at)&.to_s or return
          @at += text.size
          text
        end

        def class_escape
          case scan(/\G[dDwWsS]/)
          when "d" then DIGIT
          when "w" then WORD
          when "s" then SPACE
          when "D" then complement(DIGIT)
          when "W" then complement(WORD)
          when "S" then complement(SPACE)
          end
        end

        def character_escape(also: "")
          char = take
          if CONTROLS.key?(char) then CONTROLS[char]
          elsif SYNTAX.include?(char) || also.include?(char) then char.ord
          elsif char == "0" && !peek&.match?(/[0-9]/) then 0
          elsif char == "c" && (letter = scan(/\G[A-Za-z]/)) then letter.ord % 32
          elsif char == "x" && (hex = scan(/\G\h{2}/)) then hex.hex
          elsif char == "u" && (code = unicode_escape) then code
          else refuse("has an escape \\#{char} that JavaScript's flag v does not know")
          end
        end

        def complement(mask) = Expression::EVERY_BYTE ^ mask

        def refuse(reason) = raise(InvalidMatcher, "URL pattern group (#{@source}) #{reason}")

        def unsupported(feature) = refuse("uses #{feature}, which this hub does not support")

        private

        def disjunction
          @depth += 1
          refuse("has groups more than #{MAX_DEPTH} deep") if @depth > MAX_DEPTH
          alternatives = apart { alternative }
          @depth -= 1
          (alternatives.size == 1) ? alternatives.first : [:either, alternatives]
        end

        # The alternatives; groups in two of them may have the same name.
        def apart
          names = @names
          alternatives = []
          branches = []
          loop do
            @names = names.dup
            alternatives << yield
            branches << @names
            break unless skip("|")
          end
          @names = names.merge!(*branches)
          alternatives
        end

        def alternative
          terms = []
          terms << term until ended? || peek == "|" || peek == ")"
          Expression.sequence(terms)
        end

        def term
          return [:start] if skip("^")
          return [:finish] if skip("$")
          quantified(atom)
        end

        def atom
          char = take
          case char
          when "." then ANY
          when "(" then group
          when "[" then set(RegexpClass.new(self).mask)
          when "\\" then escape
          when "*", "+", "?", "{" then refuse("has a quantifier #{char} with nothing before it")
          when "]", "}" then refuse("has a #{char} that must be escaped with a backslash")
          else literal(char.ord)
          end
        end

        def group
          unless skip("?:")
            unsupported("lookaround and inline flags") unless skip("?<") && !["=", "!"].include?(peek)
            name
          end
          node = disjunction
          skip(")") or refuse("has a group that is not closed")
          node
        end

        def name
          name = scan(/\G[A-Za-z_$][A-Za-z0-9_$]*>/) or refuse("has a group with an invalid name")
          refuse("names two groups #{name.delete_suffix(">")}") if @names[name]
          @names[name] = true
        end

        def escape
          char = peek
          case char
          when "b", "B" then unsupported("word boundaries")
          when "k", "1".."9" then unsupported("back references")
          when "p", "P" then unsupported("Unicode properties")
          end
          mask = class_escape
          mask ? set(mask) : literal(character_escape)
        end

        def literal(code) = (code < 128) ? Expression.bytes(code.chr) : Expression::NEVER

        def set(mask) = [:set, mask]

        def quantified(node)
          bounds = quantifier or return node
          skip("?")
          refuse("has a quantifier after a quantifier") if ["*", "+", "?", "{"].include?(peek)
          Expression.repeat(node, *bounds)
        end

        def quantifier
          case peek
          when "*" then take && [0, nil]
          when "+" then take && [1, nil]
          when "?" then take && [0, 1]
          when "{"
            text = scan(/\G\{[0-9]+(?:,[0-9]*)?\}/) or refuse("has a brace that must be escaped with a backslash")
            counts(text)
          end
        end

        def counts(text)
          from, comma, to = text[1..-2].partition(",")
          min = from.to_i
          max = if comma.empty? then min
          elsif !to.empty? then to.to_i
          end
          refuse("has a quantifier whose numbers are in the wrong order") if max && max < min
          refuse("repeats more than #{MAX_COUNT} times") if [min, max.to_i].max > MAX_COUNT
          [min, max]
        end

        def unicode_escape
          if (braced = scan(/\G\{\h+\}/))
            code = braced[1..-2].hex
            code if code <= 0x10FFFF
          elsif (hex = scan(/\G\h{4}/))
            # Two surrogates are one character; whichever it is, it is none of ASCII.
            scan(/\G\\u[dD][c-fC-F]\h{2}/) if (0xD800..0xDBFF).cover?(hex.hex)
            hex.hex
          end
        end
      end
      private_constant :RegexpGroup
    end
  end
end
