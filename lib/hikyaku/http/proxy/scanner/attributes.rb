# frozen_string_literal: true

require_relative "references"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # The attributes of a start tag, decoded. Each method but `key?` throws :unsure when it is not sure what a value is.
        class Attributes
          SPACE = /[\t\n\f\r ]+/
          NOT_SPACE = /[^\t\n\f\r ]/
          private_constant :SPACE, :NOT_SPACE

          def initialize(values, charset)
            @values = values
            @charset = charset
          end

          def key?(name) = @values.key?(name)

          def [](name)
            return unless @values.key?(name)
            bytes = @values[name] or throw :unsure
            text = @charset.decode(bytes)
            throw :unsure if text.nil? || text.include?("\0")
            References.decode(text)
          end

          def text(name)
            text = self[name].to_s
            first = text.index(NOT_SPACE) or return ""
            text[first..text.rindex(NOT_SPACE)]
          end

          def word(name) = text(name).downcase(:ascii)

          def words(name) = word(name).split(SPACE)
        end
      end
    end
  end
end
