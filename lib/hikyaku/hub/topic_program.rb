# frozen_string_literal: true

require_relative "../error"
require_relative "topic_program/format"

module Hikyaku
  class Hub
    # A matcher's pattern, compiled to a small program that runs in linear time. The program is a string of bytes, which the engine in C
    # runs too. docs/topic-program.md describes the bytes and how they are run.
    #
    # Mercure draft-08, section "URL Pattern" (evaluation must not take more than linear time) and "URL-Pattern Denial of Service".
    class TopicProgram
      # A program has more instructions, or different character classes, than the format allows.
      class TooLarge < InvalidMatcher
      end

      # The largest program, in instructions, for which it pays to find out whether it is deterministic.
      MAX_PROVEN = 2_048
      # A program of this cost cannot run out of steps in a topic of the usual length: Regexp can match all of them.
      MAX_REGEXP_COST = 16
      # How many times faster a Regexp is, at least, than a run that takes the most steps (measured: 90 to 320).
      REGEXP_SPEED = 32
      # The largest program, in instructions, whose cost is lowered if it is deterministic. To find out takes as long as to compile it.
      MAX_LOWERED = 256
      private_constant :MAX_PROVEN, :MAX_REGEXP_COST, :REGEXP_SPEED, :MAX_LOWERED

      def initialize(expression)
        self.class.check!(expression)
        @expression = expression
      end

      # Refuses an expression whose program would be too large, before it is assembled.
      def self.check!(expression)
        if Expression.size(expression) >= MAX_INSTRUCTIONS
          raise TooLarge, "matcher is too large: it compiles to more than #{MAX_INSTRUCTIONS} instructions; repeat less or write it shorter"
        end
        return if Expression.sets(expression) <= MAX_SETS
        raise TooLarge, "matcher has more than #{MAX_SETS} different character classes"
      end

      # Assembled on each call: the callers store them.
      def bytes = Assembler.new(@expression).bytes.freeze

      # Matches a text in the fastest way. In a deterministic program Ruby's Regexp has nothing to backtrack for, and little where only
      # fixed text follows. It is used where the program could not run out of steps.
      def match?(text)
        return run(text).first unless backtracks_little? && @most_steps * (text.bytesize + 1) <= self.class.allowed_steps(text.bytesize)
        @regexp.match?(text.ascii_only? ? text : text.b)
      end

      # Runs the program itself.
      def run(text) = runner.run(text)

      def backtracks_little?
        @regexp = regexp if @regexp.nil?
        @regexp != false
      end

      def cost = @cost ||= Cost.of(@expression).then { |cost| (cost > MAX_REGEXP_COST && widest_of(MAX_LOWERED)) || cost }

      def cost_in_ruby
        @cost_in_ruby ||= cost.then { |cost| (cost.between?(1, MAX_REGEXP_COST) && (Expression.wildcards?(@expression) || backtracks_little?)) ? cost.fdiv(REGEXP_SPEED) : cost }
      end

      def size = Cost.size(@expression)

      def inspect = "#<#{self.class}>"

      private

      # Made on first use: the engine in C needs only the bytes.
      def runner = @runner ||= Runner.new(bytes)

      def regexp
        @most_steps = widest_of(MAX_PROVEN) || steps_before_fixed_text or return false
        source = Expression.source(@expression) or return false
        Regexp.new("\\A(?:#{source})\\z".b, Regexp::NOENCODING)
      end

      def widest_of(most)
        return if Expression.size(@expression) > most
        @widest = runner.widest_way || false if @widest.nil?
        @widest || nil
      end

      # A Regexp compares fixed text after one deterministic node of any length once for each of the node's possible ends.
      def steps_before_fixed_text
        return unless (@expression in [:all, nodes]) && (width = Cost.width(@expression)) <= MAX_REGEXP_COST
        open = nodes.reject { |node| Expression.fixed?(node) }
        width if open.size == 1 && self.class.new(open.first).widest_way
      end

      protected

      def widest_way = widest_of(MAX_PROVEN)
    end
  end
end

require_relative "topic_program/expression"
require_relative "topic_program/assembler"
require_relative "topic_program/cost"
require_relative "topic_program/runner"
