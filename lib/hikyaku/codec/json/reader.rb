# frozen_string_literal: true

require "json"
require_relative "../errors"
require_relative "../format"
require_relative "../plain"
require_relative "once"

module Hikyaku
  module Codec
    class JSON < Format
      # Reads what a stranger sent: json does, and this sees to what json lets pass.
      module Reader
        # To read a number takes longer with each digit than with the one before.
        MOST_DIGITS = 1_000
        NO_DIGIT = /[^0-9]/n
        # May be a number that is out of range, or half of a character.
        SUSPECT = /[eE]\+?\d{2}|(?<!\d)\d{200}|\\u[dD][89a-fA-F]/n
        LONG_NUMBER = /(?<!\d)\d{#{MOST_DIGITS + 1}}/n
        STRING = /"[^"]*+"?/n
        EMPTY = /\[[ \t\r\n]*+\]|\{[ \t\r\n]*+\}/n
        TWICE = /\A(?:duplicate key|an object has the key)/n
        private_constant :MOST_DIGITS, :NO_DIGIT, :SUSPECT, :LONG_NUMBER, :STRING, :EMPTY, :TWICE

        class << self
          def read(bytes, max_depth, max_items)
            bytes = bytes.b
            text = bytes.dup.force_encoding(Encoding::UTF_8)
            refuse "the text is not UTF-8 from byte #{valid_bytes(text)} on" unless text.valid_encoding?
            look(bytes, max_items)
            object = parse(text, max_depth)
            check(object) if suspect?(object, bytes, max_depth)
            object
          end

          private

          def refuse(what, error = Malformed) = raise(error, "JSON: #{what}")

          def parse(text, max_depth)
            Once.parse(text, max_depth)
          rescue ::JSON::NestingError
            refuse "arrays and objects are nested deeper than #{max_depth} levels", TooLarge
          rescue ::JSON::ParserError, EncodingError => error
            refuse error.message.b.match?(TWICE) ? "an object has a key twice" : "the text is none#{place(error)}"
          end

          # Not json's own sentence: it has a piece of the text, which may be anybody's secret.
          def place(error) = (error.respond_to?(:line) && error.line) ? " from line #{error.line}, column #{error.column} on" : ""

          # What is cheap comes first: only where it is too much is it looked at what of it stands in strings.
          def look(bytes, max_items)
            return if bytes.count(",[{") <= max_items && !long?(bytes)
            bare = without_strings(bytes)
            refuse "a number has more than #{MOST_DIGITS} digits" if LONG_NUMBER.match?(bare)
            items = bare.count(",[{") - bare.scan(EMPTY).size
            refuse "there are #{items} items; #{max_items} are read at most", TooLarge if items > max_items
          end

          def check(value)
            case value
            when Float then refuse "a number is out of range" unless value.finite?
            when String then refuse "a string has half of a pair of surrogates" unless value.valid_encoding?
            when Array then value.each { |each| check(each) }
            when Hash
              value.each do |key, each|
                check(key)
                check(each)
              end
            end
          end

          # Among so many digits there is one at every so many bytes.
          def long?(bytes)
            at = MOST_DIGITS
            while (byte = bytes.getbyte(at))
              return true if byte.between?(48, 57) && (bytes.index(NO_DIGIT, at) || bytes.bytesize) - (bytes.rindex(NO_DIGIT, at) || -1) > MOST_DIGITS + 1
              at += MOST_DIGITS
            end
            false
          end

          # What was read is looked at in C, or else what it was read from, which takes longer.
          def suspect?(object, bytes, max_depth)
            Plain.native_there? ? !Plain.native?(object, max_depth, false) : SUSPECT.match?(bytes)
          end

          # One pattern for strings with what is escaped in them would be followed on a stack.
          def without_strings(bytes)
            bytes = bytes.gsub("\\\\", "").gsub("\\\"", "") if bytes.include?("\\")
            bytes.gsub(STRING, "\"")
          end

          def valid_bytes(text)
            text.each_char.inject(0) { |at, char| char.valid_encoding? ? at + char.bytesize : (break at) }
          end
        end
      end
    end
  end
end
