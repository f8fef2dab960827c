# frozen_string_literal: true

require_relative "../topic_program"
require_relative "part_list"

module Hikyaku
  class Hub
    class UrlPattern
      # The compiled pattern of one of the eight components.
      #
      # Every pattern is a topic program. Patterns of common shapes are matched in a faster way with the same result.
      class Component
        Expression = TopicProgram::Expression
        PATTERN_SYNTAX = /[*+?{}():\\]/
        private_constant :Expression, :PATTERN_SYNTAX

        def self.compile(pattern, encode:, delimiter: "", prefix: "")
          return ANY if pattern == "*"
          return new(pattern.empty? ? Expression::NOTHING : Expression.bytes(encode.call(pattern))) unless PATTERN_SYNTAX.match?(pattern)
          new(PartList.expression(pattern, delimiter: delimiter, prefix: prefix, encode: encode))
        end

        attr_reader :literal, :beginning

        def initialize(expression)
          @program = TopicProgram.new(expression)
          @expression = expression
          @beginning = utf8(Expression.beginning(expression))
          @literal = @beginning if expression == Expression::NOTHING || expression[0] == :bytes
          @test = test
          freeze
        end

        def match?(text) = @test.call(text)

        def any? = @expression == Expression::ANYTHING

        attr_reader :program

        private

        def test
          return ->(_) { true } if any?
          literal = @literal
          return ->(text) { text == literal } if literal
          nodes = (@expression[0] == :all) ? @expression[1] : [@expression]
          segment(nodes) || wildcards(nodes) || @program.method(:match?)
        end

        # "/books/:id": a beginning, then one segment.
        def segment(nodes)
          return unless nodes.size == 2
          return unless nodes in [[:bytes, _], [:repeat, [:set, mask], 1, nil]]
          return unless Expression.all_but_one?(mask)
          delimiter = (Expression::EVERY_BYTE ^ mask).bit_length.pred.chr
          beginning = @beginning
          size = beginning.size
          ->(text) { text.size > size && text.start_with?(beginning) && !text.index(delimiter, size) }
        end

        # "/books/*", "*.example.com", "/a*b*c": fixed texts with anything between, each of which is searched for as early as possible.
        # Where the program could run out of steps, the program decides.
        def wildcards(nodes)
          return unless Expression.wildcards?(@expression)
          texts = nodes.select { |node| node[0] == :bytes }.map { |node| utf8(node[1]) }
          first = (nodes.first == Expression::ANYTHING) ? "" : texts.shift
          last = (nodes.last == Expression::ANYTHING) ? "" : texts.pop
          return ->(text) { text.start_with?(first) } if texts.empty? && last.empty?
          most_steps = TopicProgram::Cost.width(@expression)
          program = @program
          lambda do |text|
            next program.run(text).first if most_steps * (text.size + 1) > TopicProgram.allowed_steps(text.size)
            text.start_with?(first) && text.end_with?(last) && within?(text, texts, first.size, text.size - last.size)
          end
        end

        def within?(text, texts, from, to)
          texts.each do |inner|
            at = text.index(inner, from) or return false
            from = at + inner.size
          end
          from <= to
        end

        def utf8(bytes) = bytes.dup.force_encoding(Encoding::UTF_8).freeze

        ANY = new(Expression::ANYTHING)
        private_constant :ANY
      end
      private_constant :Component
    end
  end
end
