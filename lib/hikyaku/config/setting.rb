# frozen_string_literal: true

require_relative "type"

module Hikyaku
  class Config
    # One line of the table of settings: its names on the command line, in the environment and in the file, its type, its
    # default and what it means.
    class Setting
      # Values of a list in one variable are separated by these.
      SEPARATOR = /[\s,]+/
      private_constant :SEPARATOR

      attr_reader :name
      attr_reader :type
      attr_reader :default
      attr_reader :group
      attr_reader :help
      attr_reader :variables

      def initialize(name, type, default:, group:, help:, singular: nil, secret: false, flag: true, default_text: nil, variables: [])
        @name = name
        @type = type
        @default = default.freeze
        @group = group
        @help = help
        @singular = singular
        @secret = secret
        @flag = flag
        @default_text = default_text
        @variables = flag ? [*names.map { |known| "HIKYAKU_#{known.upcase}" }, *variables].freeze : []
        freeze
      end

      def list? = !@singular.nil?

      def secret? = @secret

      def flag? = @flag

      def switch? = type.switch?

      def names = [name, @singular].compact.uniq

      def flags = names.reverse.map { |known| known.to_s.tr("_", "-") }

      def variable = variables.first

      def default_text
        return @default_text if @default_text
        return "none" if default.nil? || default == []
        list? ? default.map { |value| type.write(value) }.join(", ") : type.write(default)
      end

      def cast(value)
        return list(value).map { |element| type.cast(element) }.freeze if list?
        raise Type::Invalid, "expected one value, not a list" if value.is_a?(Array)
        type.cast(value)
      end

      def split(text) = list? ? text.strip.split(SEPARATOR) : text

      private

      def list(value)
        raise Type::Invalid, "expected a list" if value.is_a?(Hash)
        value.is_a?(Array) ? value : [value]
      end
    end
  end
end
