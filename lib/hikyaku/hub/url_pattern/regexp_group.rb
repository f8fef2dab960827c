# frozen_string_literal: true

require_relative "../../error"
require_relative "../topic_program"
require_relative "regexp_class"
require_relative "regexp_reader"

module Hikyaku
  class Hub
    class UrlPattern
      # Parses the regular expression of a group: JavaScript's syntax under the flag "v", of which a finite automaton holds
      # characters, classes, groups, alternatives, quantifiers and the anchors ^ and $. What is a syntax error there is one here;
      # lookaround, back references, word boundaries, inline flags and Unicode properties are refused as not supported.
      #
      # What is matched is a component of a parsed URL, which is all printable ASCII. So "." is any byte, and a character above
      # ASCII, however it is written, is one that never comes.
      #
      # ECMAScript, "Patterns"; URL Pattern Standard, "compile a component".
      class RegexpGroup
        include RegexpReader

        Expression = TopicProgram::Expression
        ANY = [:set, Expression::EVERY_BYTE].freeze
        # Groups within groups: what follows recurses.
        MAX_DEPTH = 50
        # A quantifier's number above this is too large for any program.
        MAX_COUNT = 1_000_000
        private_constant :Expression, :ANY, :MAX_DEPTH, :MAX_COUNT

        def initialize(source, names: {})
          start(source)
          @names = names
          @depth = 0
        end

        def expression
          node = disjunction
          refuse("has a closing parenthesis too many") unless ended?
          TopicProgram.check!(node)
          node
        end

        private

        def disjunction
          @depth += 1
          refuse("has groups more than #{MAX_DEPTH} deep") if @depth > MAX_DEPTH
          alternatives = apart { alternative }
          @depth -= 1
          (alternatives.size == 1) ? alternatives.first : [:either, alternatives]
        end

        # The alternatives, of which two may name their groups the same.
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
      end
      private_constant :RegexpGroup
    end
  end
end
