# frozen_string_literal: true

require_relative "../error"
require_relative "topic"
require_relative "uri_template"
require_relative "url_pattern"

module Hikyaku
  class Hub
    # Selects topics: a type and a pattern, checked and compiled. Immutable; equal to another of same type and pattern.
    #
    # Mercure draft-08, section "Matcher Types"; for `uri_template` the 0.x specification, section "Topic Selectors".
    class Matcher
      # The pattern that selects every topic, whatever the type.
      WILDCARD = "*"
      # The type of Mercure 0.x, which is not among TYPES.
      LEGACY_TYPE = "uri_template"
      # The names of the parameters that ask for a matcher, by its type. The first also names it in a stream: see Event.names.
      PARAMETERS = {"exact" => %w[match match_exact], "urlpattern" => %w[match_urlpattern], LEGACY_TYPE => %w[topic]}.each_value(&:freeze).freeze
      TYPES = (PARAMETERS.keys - [LEGACY_TYPE]).freeze
      # Instructions that a pattern may compile to by default.
      MAX_INSTRUCTIONS = 4_096

      def self.build(type:, pattern:, base:, max_bytes: 4096, max_instructions: MAX_INSTRUCTIONS)
        raise InvalidMatcher, "matcher type #{type.inspect} is unknown: use #{PARAMETERS.keys.join(", ")}" unless PARAMETERS.key?(type)
        pattern = Topic.validate!(pattern, name: "matcher", max_bytes: max_bytes)
        new(type, pattern, base, max_instructions)
      rescue TopicProgram::TooLarge => error
        raise InvalidMatcher, error.message.sub("matcher", "matcher #{shown(pattern)}")
      rescue InvalidTopic => error
        raise InvalidMatcher, error.message
      end
      private_class_method :new

      def self.shown(pattern) = pattern[0, 100].inspect

      attr_reader :type, :pattern
      # Where TopicIndex files the matcher: a kind, and the fixed text that every topic it selects begins with.
      attr_reader :anchor

      attr_reader :cost, :instructions

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

      def cost_in_ruby = @cost.zero? ? 0 : compiled.cost_in_ruby

      # The name of the field that names this matcher in a stream.
      def parameter = PARAMETERS[@type].first

      def match?(topic)
        return true if @wildcard
        case @test
        when nil then @pattern == topic.value
        when UrlPattern then (url = topic.url) ? @test.match?(url) : false
        else @pattern == topic.value || @test.match?(topic.value)
        end
      end

      # The compiled pattern as bytes, for the engine in C: see docs/topic-program.md.
      def program
        case @test
        when UrlPattern then @test.program
        when UriTemplate then @test.program.bytes
        end
      end

      def bytes = (@test ? 2_500 : 200) + 3 * @pattern.bytesize + 100 * @instructions

      def ==(other) = other.is_a?(Matcher) && @type == other.type && @pattern == other.pattern
      alias_method :eql?, :==

      def hash = [@type, @pattern].hash

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
