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
      # A program has more instructions, or different character classes, than the format holds.
      class TooLarge < InvalidMatcher
      end

      # Only for programs of at most so many instructions it is worth to find out whether they are deterministic.
      MAX_PROVEN = 2_048
      # Where a program costs so little, it cannot run out of steps in any topic of the usual length: Regexp decides them all.
      MAX_REGEXP_COST = 16
      # How many times as fast as a run a Regexp is where a run takes the most steps, at least (measured: 90 to 320).
      REGEXP_SPEED = 32
      # Only programs of so many instructions cost less when they are found to be deterministic: that takes about as long as to make them.
      MAX_LOWERED = 256
      private_constant :MAX_PROVEN, :MAX_REGEXP_COST, :REGEXP_SPEED, :MAX_LOWERED

      def initialize(expression)
        self.class.check!(expression)
        @expression = expression
      end

      # Refuses what would make too large a program, before anything of it is made.
      def self.check!(expression)
        if Expression.size(expression) >= MAX_INSTRUCTIONS
          raise TooLarge, "matcher is too large: it compiles to more than #{MAX_INSTRUCTIONS} instructions; repeat less or write it shorter"
        end
        return if Expression.sets(expression) <= MAX_SETS
        raise TooLarge, "matcher has more than #{MAX_SETS} different character classes"
      end

      # Assembled each time: whoever asks keeps them.
      def bytes = Assembler.new(@expression).bytes.freeze

      # Whether a text matches, by whatever way is fastest. What is deterministic needs no states side by side, and Ruby's
      # own engine finds nothing in it to backtrack for, or little where only fixed text follows; it is asked where the program
      # itself could not run out of steps.
      def match?(text)
        return run(text).first unless backtracks_little? && @most_steps * (text.bytesize + 1) <= self.class.allowed_steps(text.bytesize)
        @regexp.match?(text.ascii_only? ? text : text.b)
      end

      # Runs the program, as any other runner would.
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

      # Made when somebody runs it: the engine in C only wants the bytes.
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

      # Where one deterministic node of any length is followed by little fixed text alone, that is compared once for each of its ends.
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
