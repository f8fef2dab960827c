# frozen_string_literal: true

require_relative "../error"
require_relative "topic"
require_relative "uri_template"
require_relative "url_pattern"

module Hikyaku
  class Hub
    # Says which topics: a type and a pattern, checked and compiled. Immutable; equal to another of same type and pattern.
    #
    # Mercure draft-08, section "Matcher Types"; for `uri_template` the 0.x specification, section "Topic Selectors".
    class Matcher
      # The pattern that selects every topic, whatever the type.
      WILDCARD = "*"
      TYPES = %w[exact urlpattern uri_template].freeze
      # Instructions that a pattern may compile to, unless somebody says otherwise.
      MAX_INSTRUCTIONS = 4_096
      private_constant :TYPES

      # @param type [String] "exact", "urlpattern", or "uri_template" for clients of the 0.x protocol
      # @param pattern [String]
      # @param base [String] the hub's URL, against which relative patterns are resolved
      # @param max_bytes [Integer] how long the pattern may be
      # @param max_instructions [Integer] how many instructions its programs may have behind their fixed beginnings: see docs/topic-program.md
      # @return [Matcher]
      # @raise [InvalidMatcher] an unknown type, a character that is not allowed, or no well-formed pattern
      # @raise [LimitExceeded] the pattern is too long, or compiles to too much
      def self.build(type:, pattern:, base:, max_bytes: 4096, max_instructions: MAX_INSTRUCTIONS)
        raise InvalidMatcher, "matcher type #{type.inspect} is unknown: use #{TYPES.join(", ")}" unless TYPES.include?(type)
        pattern = Topic.validate!(pattern, name: "matcher", max_bytes: max_bytes)
        new(type, pattern, base, max_instructions)
      rescue TopicProgram::TooLarge => error
        raise InvalidMatcher, error.message.sub("matcher", "matcher #{shown(pattern)}")
      rescue InvalidTopic => error
        raise InvalidMatcher, error.message
      end
      private_class_method :new

      # @param pattern [String]
      # @return [String] as much of it as an error message needs
      # @api private
      def self.shown(pattern) = pattern[0, 100].inspect

      # @return [String]
      attr_reader :type
      # @return [String]
      attr_reader :pattern
      # How to find this matcher from a topic without looking at the others.
      #
      # @return [Array] `[:all]`; `[:exact, string]`; `[:url, origin_or_nil, leading_path_or_nil]`, beginnings of the topic's
      #   URL#origin (whole) and URL#pathname; or `[:text, beginning_of_the_topic]`
      attr_reader :anchor

      # @return [Integer] steps that matching takes at most for each byte of a topic; 0 where comparing texts decides. See
      #   docs/topic-program.md, "Cost".
      attr_reader :cost
      # @return [Integer] instructions that it was compiled to, behind the fixed text that it begins with
      attr_reader :instructions

      # @api private
      def initialize(type, pattern, base, max_instructions)
        @type = -type
        @pattern = -pattern
        @wildcard = pattern == WILDCARD
        @test = compile(base)
        program = compiled
        @instructions = program&.size.to_i
        check_size(max_instructions)
        @cost = program&.cost.to_i
        @anchor = find_anchor.freeze
        freeze
      end

      # @return [Numeric] see TopicProgram#cost_in_ruby
      def cost_in_ruby = @cost.zero? ? 0 : compiled.cost_in_ruby

      # @return [Boolean] whether it selects every topic
      def wildcard? = @wildcard

      # @param topic [Topic]
      # @return [Boolean] whether it selects the topic
      def match?(topic)
        return true if @wildcard
        case @test
        when nil then @pattern == topic.value
        when UrlPattern then (url = topic.url) ? @test.match?(url) : false
        else @pattern == topic.value || @test.match?(topic.value)
        end
      end

      # The compiled pattern, for whoever runs it elsewhere: see docs/topic-program.md.
      #
      # @return [String, nil] binary: of a URL pattern its eight programs, of a URI Template its one, else nil
      def program
        case @test
        when UrlPattern then @test.program
        when UriTemplate then @test.program.bytes
        end
      end

      # @return [Integer] bytes that it takes in Ruby, estimated (measured: a fifth more to two fifths less)
      def bytes = (@test ? 2_500 : 200) + 3 * @pattern.bytesize + 100 * @instructions

      # @return [Boolean] same type and pattern
      def ==(other) = other.is_a?(Matcher) && @type == other.type && @pattern == other.pattern
      alias_method :eql?, :==

      # @return [Integer]
      def hash = [@type, @pattern].hash

      # @return [String]
      def inspect = "#<#{self.class} #{@type} #{@pattern.inspect}>"

      private

      def compiled = @test.is_a?(UriTemplate) ? @test.program : @test

      def compile(base)
        return if @wildcard || @type == "exact"
        (@type == "urlpattern") ? UrlPattern.compile(@pattern, base: base) : UriTemplate.compile(@pattern)
      end

      def check_size(most)
        return if @instructions <= most
        raise LimitExceeded, "matcher #{self.class.shown(@pattern)} compiles to #{@instructions} instructions, more than the #{most} that are allowed: repeat less or write it shorter"
      end

      # Without a template to fill in, a legacy matcher is an exact one. A template also matches its own text, which its
      # literal beginning is a beginning of.
      def find_anchor
        return [:all] if @wildcard
        case @test
        when nil then [:exact, @pattern]
        when UrlPattern then [:url, @test.origin, @test.leading_path]
        else [:text, @test.prefix]
        end
      end
    end
  end
end
