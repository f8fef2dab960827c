# frozen_string_literal: true

require_relative "../error"
require_relative "topic_program/format"

module Hikyaku
  class Hub
    # A matcher's pattern compiled to a small program that runs in linear time, and that is only bytes: Ruby runs it here, and
    # whatever else matches topics can run it too. docs/topic-program.md describes the bytes and how they are run.
    #
    # Mercure draft-08, section "URL Pattern" (evaluation must not take more than linear time) and "URL-Pattern Denial of Service".
    class TopicProgram
      # Only for programs of at most so many instructions it is worth to find out whether they are deterministic.
      MAX_PROVEN = 2_048
      private_constant :MAX_PROVEN

      # @param expression [Array] see Expression
      # @raise [InvalidMatcher] the program would be too long
      def initialize(expression)
        self.class.check!(expression)
        @bytes = Assembler.new(expression).bytes.freeze
        @runner = Runner.new(@bytes)
        @widest = (Expression.size(expression) > MAX_PROVEN) ? nil : @runner.widest_way
        @regexp = @widest && regexp(expression)
        freeze
      end

      # @param expression [Array] see Expression
      # @raise [InvalidMatcher] the program would be too long
      def self.check!(expression)
        return if Expression.size(expression) < MAX_INSTRUCTIONS
        raise InvalidMatcher, "matcher is too large: it compiles to more than #{MAX_INSTRUCTIONS} instructions; repeat less or write it shorter"
      end

      # @return [String] binary
      attr_reader :bytes

      # Whether a text matches, by whatever way is fastest. What is deterministic needs no states side by side, and Ruby's
      # own engine finds nothing in it to backtrack for; it is asked where the program itself could not run out of steps.
      #
      # @param text [String]
      # @return [Boolean]
      def match?(text)
        return run(text).first unless @regexp && @widest * (text.bytesize + 1) <= self.class.allowed_steps(text.bytesize)
        @regexp.match?(text.ascii_only? ? text : text.b)
      end

      # Runs the program, as any other runner would.
      #
      # @param text [String]
      # @return [Array(Boolean, Integer)] whether the text matches, and the steps that it took
      def run(text) = @runner.run(text)

      # @return [Boolean] whether #match? goes to Ruby's own regular expressions
      def deterministic? = !@regexp.nil?

      # @return [String]
      def inspect = "#<#{self.class} #{@bytes.bytesize} bytes>"

      private

      def regexp(expression)
        source = Expression.source(expression) or return
        Regexp.new("\\A(?:#{source})\\z".b, Regexp::NOENCODING)
      end
    end
  end
end

require_relative "topic_program/expression"
require_relative "topic_program/assembler"
require_relative "topic_program/runner"
