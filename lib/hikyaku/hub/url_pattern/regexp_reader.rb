# frozen_string_literal: true

require_relative "../../error"
require_relative "../topic_program"

module Hikyaku
  class Hub
    class UrlPattern
      # Reads a regular expression from left to right: what groups and classes have in common, which is the escapes.
      module RegexpReader
        CONTROLS = {"f" => 12, "n" => 10, "r" => 13, "t" => 9, "v" => 11}.freeze
        SYNTAX = "^$\\.*+?()[]{}|/"
        DIGIT = TopicProgram::Expression.set("0123456789")[1]
        WORD = TopicProgram::Expression.set(48..57, 65..90, 97..122, 95)[1]
        SPACE = TopicProgram::Expression.set(9..13, 32)[1]
        private_constant :CONTROLS, :SYNTAX, :DIGIT, :WORD, :SPACE

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

        def complement(mask) = TopicProgram::Expression::EVERY_BYTE ^ mask

        def refuse(reason) = raise(InvalidMatcher, "URL pattern group (#{@source}) #{reason}")

        def unsupported(what) = refuse("uses #{what}, which this hub does not support")

        private

        def start(source)
          @source = source
          @at = 0
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
      private_constant :RegexpReader
    end
  end
end
