# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Config
    # What kind of value a setting takes: how it is read from text (a flag, a variable, a scalar of the file) or from a
    # Ruby value, what the reader of a message is told to give, and how it is written back.
    class Type
      # A value that does not fit; the message says what is expected.
      class Invalid < ArgumentError
        include Error
      end

      # String#strip would take zero bytes away too.
      MARGIN = /\A[ \t\r\n]+|[ \t\r\n]+\z/
      private_constant :MARGIN

      attr_reader :placeholder
      attr_reader :expected

      # @yieldraise [Invalid] for a reason of its own
      def initialize(placeholder, expected, write: nil, &cast)
        @placeholder = placeholder
        @expected = expected
        @write = write || :to_s.to_proc
        @cast = cast
        freeze
      end

      def cast(value)
        raise Invalid, "expected text in UTF-8" if value.is_a?(String) && !utf8(value).valid_encoding?
        value = utf8(value).gsub(MARGIN, "") if value.is_a?(String)
        result = @cast.call(value)
        raise Invalid, "expected #{expected}" if result.nil?
        result.freeze
      end

      def write(value) = @write.call(value)

      def switch? = placeholder.nil?

      private

      def utf8(text) = (text.encoding == Encoding::UTF_8) ? text : text.dup.force_encoding(Encoding::UTF_8)
    end
  end
end
