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

      # @return [Symbol] the name in Ruby and in the file
      attr_reader :name
      # @return [Type]
      attr_reader :type
      # @return [Object] in its final form
      attr_reader :default
      # @return [String] heading under which it is listed
      attr_reader :group
      # @return [String] one sentence
      attr_reader :help
      # @return [Array<String>] variables, the first that is set counts
      attr_reader :variables

      # @param singular [Symbol, nil] given for a list: the name of one element
      # @param secret [Boolean] never shown
      # @param flag [Boolean] whether it can be given on the command line and in the environment
      # @param default_text [String, nil] says what the default is where the value does not
      # @param variables [Array<String>] further variables, after the one that the name gives
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

      # @return [Boolean] takes several values
      def list? = !@singular.nil?

      # @return [Boolean]
      def secret? = @secret

      # @return [Boolean]
      def flag? = @flag

      # @return [Boolean]
      def switch? = type.switch?

      # @return [Array<Symbol>] under which the file knows it
      def names = [name, @singular].compact.uniq

      # @return [Array<String>] without the dashes, as `cors-origin`; the first is the one to show
      def flags = names.reverse.map { |known| known.to_s.tr("_", "-") }

      # @return [String] the first variable
      def variable = variables.first

      # @return [String] for people
      def default_text
        return @default_text if @default_text
        return "none" if default.nil? || default == []
        list? ? default.map { |value| type.write(value) }.join(", ") : type.write(default)
      end

      # @param value [Object] one value, or an Array for a list
      # @return [Object] frozen
      # @raise [Type::Invalid]
      def cast(value)
        return list(value).map { |element| type.cast(element) }.freeze if list?
        raise Type::Invalid, "expected one value, not a list" if value.is_a?(Array)
        type.cast(value)
      end

      # @param text [String] a variable's value
      # @return [String, Array<String>] what `cast` takes
      def split(text) = list? ? text.strip.split(SEPARATOR) : text

      private

      def list(value)
        raise Type::Invalid, "expected a list" if value.is_a?(Hash)
        value.is_a?(Array) ? value : [value]
      end
    end
  end
end
