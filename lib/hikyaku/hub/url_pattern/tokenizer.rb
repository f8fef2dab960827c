# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Hub
    class UrlPattern
      # Cuts a pattern string into tokens. A whole pattern is cut before its components are known: then (`lenient`) invalid characters
      # become tokens of their own type; otherwise they are refused.
      #
      # URL Pattern Standard, "Tokenizing".
      class Tokenizer
        # type: :open, :close, :regexp, :name, :char, :escaped_char, :other_modifier, :asterisk, :end or :invalid_char.
        # index: of its first character in the pattern. value: its characters, for some without their marks.
        Token = Struct.new(:type, :index, :value)
        NAME = /\G[\p{ID_Start}$_][\p{ID_Continue}$\u200C\u200D]*/
        SIMPLE = {"*" => :asterisk, "+" => :other_modifier, "?" => :other_modifier, "{" => :open, "}" => :close}.freeze
        private_constant :NAME, :SIMPLE

        def self.tokens(input, lenient: false) = new(input, lenient).tokens

        def initialize(input, lenient)
          @input = input
          @chars = input.chars
          @lenient = lenient
          @tokens = []
          @index = 0
        end

        def tokens
          while @index < @chars.size
            char = @chars[@index]
            case char
            when "\\" then escaped
            when ":" then name
            when "(" then regexp
            else add(SIMPLE.fetch(char, :char), @index + 1, char)
            end
          end
          add(:end, @index, "")
        end

        private

        def add(type, following, value)
          @tokens << Token.new(type, @index, value)
          @index = following
          @tokens
        end

        def invalid(reason)
          raise InvalidMatcher, "URL pattern #{@input.inspect} #{reason}" unless @lenient
          add(:invalid_char, @index + 1, @chars[@index])
        end

        def escaped
          return invalid("ends in a backslash") if @index == @chars.size - 1
          add(:escaped_char, @index + 2, @chars[@index + 1])
        end

        def name
          name = @input.match(NAME, @index + 1)&.to_s
          return invalid("has a colon without a name after it: escape it with a backslash") unless name
          add(:name, @index + 1 + name.size, name)
        end

        def regexp
          first = @index + 1
          ended, reason = regexp_end(first)
          return invalid(reason) unless ended
          add(:regexp, ended + 1, @chars[first...ended].join)
        end

        # The index of the parenthesis that closes a group; or nil and an error message.
        def regexp_end(first)
          depth = 1
          index = first
          while index < @chars.size
            char = @chars[index]
            return nil, "has a character in a group (…) that is not ASCII" unless char.ascii_only?
            return nil, "has a group that starts with a question mark" if char == "?" && index == first
            if char == "\\"
              return nil, "ends in a backslash" if index == @chars.size - 1
              index += 1
              return nil, "has a character in a group (…) that is not ASCII" unless @chars[index].ascii_only?
            elsif char == ")"
              depth -= 1
              return (index == first) ? [nil, "has an empty group ()"] : index if depth.zero?
            elsif char == "("
              depth += 1
              return nil, "has a capturing group inside a group: write it (?:…)" unless @chars[index + 1] == "?"
            end
            index += 1
          end
          [nil, "has a group that is not closed"]
        end
      end
      private_constant :Tokenizer
    end
  end
end
