# frozen_string_literal: true

require_relative "../error"
require_relative "topic_program"

module Hikyaku
  class Hub
    # A URI Template, for matching: a text matches if some values of the variables expand the template to it.
    #
    # The RFC defines expansion (levels 1 to 4) alone; the 0.x protocol adds "the string matches this URI Template". Two variables of the
    # same name need not have the same value.
    #
    # RFC 6570; Mercure 0.x, section "Topic Selectors".
    class UriTemplate
      def self.compile(string)
        return unless string.include?("{")
        expression = Parser.new(string).expression or return
        new(expression)
      end
      private_class_method :new

      attr_reader :prefix

      def initialize(expression)
        @program = TopicProgram.new(expression)
        @prefix = TopicProgram::Expression.beginning(expression).dup.force_encoding(Encoding::UTF_8).freeze
        freeze
      end

      def match?(text) = @program.match?(text)

      attr_reader :program

      def inspect = "#<#{self.class} #{@prefix}…>"
    end
  end
end

require_relative "uri_template/parser"
