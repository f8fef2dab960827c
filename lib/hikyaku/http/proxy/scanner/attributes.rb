# frozen_string_literal: true

require_relative "references"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # The attributes of a start tag, decoded. Each method but `key?` throws :unsure when it is not sure what a value is.
        #
        # @api private
        class Attributes
          SPACE = /[\t\n\f\r ]+/
          NOT_SPACE = /[^\t\n\f\r ]/
          private_constant :SPACE, :NOT_SPACE

          # @param values [Hash{String => String, nil}] see Tag#values
          # @param charset [Charset]
          def initialize(values, charset)
            @values = values
            @charset = charset
          end

          def key?(name) = @values.key?(name)

          # @return [String, nil] UTF-8
          def [](name)
            return unless @values.key?(name)
            bytes = @values[name] or throw :unsure
            text = @charset.decode(bytes)
            throw :unsure if text.nil? || text.include?("\0")
            References.decode(text)
          end

          # @return [String] without white space round it; empty where there is no such attribute
          def text(name)
            text = self[name].to_s
            first = text.index(NOT_SPACE) or return ""
            text[first..text.rindex(NOT_SPACE)]
          end

          # @return [String] the same, in lower case
          def word(name) = text(name).downcase(:ascii)

          # @return [Array<String>]
          def words(name) = word(name).split(SPACE)
        end
      end
    end
  end
end
