# frozen_string_literal: true

require_relative "../../error"
require_relative "../topic_program"
require_relative "regexp_group"
require_relative "tokenizer"

module Hikyaku
  class Hub
    class UrlPattern
      # Parses the pattern of one component into an expression for a topic program.
      #
      #     /books/:id(\d+)?     fixed text, then prefix "/", name and regular expression, and a modifier
      #     {-:suffix}?  *       a group with its own prefix; a wildcard
      #
      # URL Pattern Standard, "Parsing" and "Converting part lists to regular expressions".
      class PartList
        Expression = TopicProgram::Expression
        MODIFIERS = {"?" => [0, 1], "*" => [0, nil], "+" => [1, nil]}.freeze
        private_constant :Expression, :MODIFIERS

        def self.expression(pattern, encode:, delimiter: "", prefix: "") = new(pattern, delimiter, prefix, encode).expression

        def initialize(pattern, delimiter, prefix, encode)
          @pattern = pattern
          @prefix = prefix
          @encode = encode
          @tokens = Tokenizer.tokens(pattern)
          @index = 0
          @fixed = +""
          @nodes = []
          @names = {}
          @group_names = {}
          @next_name = 0
          others = Expression::EVERY_BYTE
          others ^= 1 << delimiter.ord unless delimiter.empty?
          @segment = Expression.repeat([:set, others], 1, nil)
        end

        def expression
          group || text || braces || finish while @index < @tokens.size
          Expression.sequence(@nodes)
        end

        private

        # <prefix character> <name> <regular expression or wildcard> <modifier>
        def group
          before = @index
          char = take(:char)
          name = take(:name)
          regexp = regexp_or_wildcard(name)
          unless name || regexp
            @index = before
            return
          end
          prefix = char&.value.to_s
          unless prefix == @prefix
            @fixed << prefix
            prefix = ""
          end
          flush
          add(prefix, name, regexp, "", modifier)
        end

        def text
          token = take(:char) || take(:escaped_char) or return
          @fixed << token.value
        end

        # { <text> <name> <regular expression or wildcard> <text> } <modifier>
        def braces
          return unless take(:open)
          prefix = consume_text
          name = take(:name)
          regexp = regexp_or_wildcard(name)
          suffix = consume_text
          take(:close) or refuse("has a brace that is not closed, or groups within braces")
          add(prefix, name, regexp, suffix, modifier)
        end

        def finish
          flush
          take(:end) or refuse("has #{@tokens[@index].value.inspect} where nothing can be repeated or closed")
        end

        def take(type)
          return unless @tokens[@index].type == type
          @index += 1
          @tokens[@index - 1]
        end

        def regexp_or_wildcard(name) = take(:regexp) || (take(:asterisk) unless name)

        def modifier = MODIFIERS[(take(:other_modifier) || take(:asterisk))&.value]

        def consume_text
          text = +""
          while (token = take(:char) || take(:escaped_char))
            text << token.value
          end
          text
        end

        def flush
          return if @fixed.empty?
          @nodes << encoded(@fixed)
          @fixed = +""
        end

        def encoded(text) = Expression.bytes(text.empty? ? "" : @encode.call(text))

        def add(prefix, name, regexp, suffix, modifier)
          unless name || regexp || modifier
            @fixed << prefix
            return true
          end
          flush
          unless name || regexp
            @nodes << Expression.repeat(encoded(prefix), *modifier) unless prefix.empty?
            return true
          end
          value = value(regexp)
          remember(name)
          @nodes << repeated(encoded(prefix), value, encoded(suffix), modifier)
        end

        def value(regexp)
          return @segment unless regexp
          return Expression::ANYTHING if regexp.type == :asterisk
          RegexpGroup.new(regexp.value, names: @group_names).expression
        end

        def remember(name)
          key = name ? name.value : (@next_name += 1) - 1
          refuse("has two groups with the name #{name&.value}") if @names[key.to_s]
          @names[key.to_s] = true
        end

        # Between repetitions stand the suffix and the prefix; before the first only the prefix, after the last only the suffix.
        def repeated(prefix, value, suffix, modifier)
          around = ->(node) { Expression.sequence([prefix, node, suffix]) }
          return around.call(value) unless modifier
          return Expression.repeat(around.call(value), *modifier) if modifier == [0, 1] || prefix[1].empty? && suffix[1].empty?
          again = Expression.sequence([suffix, prefix, value])
          Expression.repeat(around.call(Expression.sequence([value, Expression.repeat(again, 0, nil)])), modifier.first, 1)
        end

        def refuse(reason) = raise(InvalidMatcher, "URL pattern #{@pattern.inspect} #{reason}")
      end
      private_constant :PartList
    end
  end
end
