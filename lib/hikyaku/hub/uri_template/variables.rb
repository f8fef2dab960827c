# frozen_string_literal: true

require_relative "../topic_program"

module Hikyaku
  class Hub
    class UriTemplate
      # The expression for all texts that {…} can expand to: its variables may be undefined, a string, a list or an associative array.
      #
      # RFC 6570, section 3.2 and appendix A. Percent-encoded octets match in either case; whether they form UTF-8 is checked only where
      # a prefix counts characters.
      class Variables
        Expression = TopicProgram::Expression
        # operator => first, separator, named, after a name without a value, reserved characters too
        OPERATORS = {
          "" => ["", ",", false, nil, false],
          "+" => ["", ",", false, nil, true],
          "#" => ["#", ",", false, nil, true],
          "." => [".", ".", false, nil, false],
          "/" => ["/", "/", false, nil, false],
          ";" => [";", ";", true, "", false],
          "?" => ["?", "&", true, "=", false],
          "&" => ["&", "&", true, "=", false]
        }.freeze
        UNRESERVED = "-._~#{[*"A".."Z", *"a".."z", *"0".."9"].join}".freeze
        RESERVED = ":/?#[]@!$&'()*+,;="
        # A longer prefix than this is not counted: a text of any length matches.
        MAX_COUNTED = 100
        HEX = Expression.set("0123456789abcdefABCDEF").freeze
        private_constant :Expression, :OPERATORS, :UNRESERVED, :RESERVED, :MAX_COUNTED, :HEX

        def initialize(operator, specs)
          @first, @separator, @named, @without_value, reserved = OPERATORS.fetch(operator)
          @chars = reserved ? UNRESERVED + RESERVED : UNRESERVED
          @specs = specs
        end

        def expression
          values = @specs.map { |name, most, explode| explode ? exploded(name) : plain(name, most) }
          return Expression.sequence(values.map { |value| optional(bytes(@separator), value) }) if @first == @separator
          return optional([:chain, bytes(@first), bytes(@separator), values]) if values.size > 1
          # A value that may be empty is optional by itself; a second option would make the program ambiguous.
          @first.empty? ? values.first : optional(bytes(@first), values.first)
        end

        private

        def bytes(text) = Expression.bytes(text)

        def optional(*nodes) = Expression.repeat(Expression.sequence(nodes), 0, 1)

        def octet = Expression.sequence([bytes("%"), HEX, HEX])

        # Any number of characters, and of these others.
        def text(others = "") = Expression.repeat([:either, [Expression.set(@chars + others), octet]], 0, nil)

        # A string, or a list or an associative array whose members are joined with commas.
        def plain(name, most)
          value = if most.nil? then text(",")
          elsif most > MAX_COUNTED then text
          else Expression.repeat(character, 0, most)
          end
          @named ? named(bytes(name), value) : value
        end

        # name=value; of the operator ";" also the name alone.
        def named(name, value)
          with_value = Expression.sequence([bytes("="), value])
          with_value = Expression.repeat(with_value, 0, 1) if @without_value.empty?
          Expression.sequence([name, with_value])
        end

        # The members of a list, or the pairs of an associative array, each like a variable of its own. In named expansions the pairs
        # have names of their own in place of the variable's.
        def exploded(name)
          return several(named([:either, [bytes(name), text]], text)) if @named
          pair = Expression.sequence([text, bytes("="), text])
          [:either, [several(text), several(pair)]]
        end

        def several(node) = Expression.sequence([node, Expression.repeat(Expression.sequence([bytes(@separator), node]), 0, nil)])

        # One character of a value: as it is, or the percent-encoded octets of its UTF-8. Where reserved characters may stand,
        # also an octet that the value had percent-encoded already.
        def character
          continuation = Expression.sequence([bytes("%"), Expression.set("89abAB"), HEX])
          lead = ->(first, second, count) { Expression.sequence([bytes("%"), Expression.set(first), second] + [continuation] * count) }
          nodes = [Expression.set(@chars), lead.call("01234567", HEX, 0), lead.call("cdCD", HEX, 1), lead.call("eE", HEX, 2),
            lead.call("fF", Expression.set("01234567"), 3)]
          nodes << octet if @chars.include?("/")
          [:either, nodes]
        end
      end
      private_constant :Variables
    end
  end
end
