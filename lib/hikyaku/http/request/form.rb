# frozen_string_literal: true

require "uri"
require_relative "../part"

module Hikyaku
  module HTTP
    class Request
      # The fields of a form or a query: a Hash, nested as Rack reads it (`book[title]=…&tags[]=…`), or an Array of pairs, which may have a name twice.
      module Form
        # Rack refuses more.
        MOST_LEVELS = 32
        private_constant :MOST_LEVELS

        class << self
          def pairs(fields, what)
            sound = fields.is_a?(Hash) || (fields.is_a?(Array) && fields.all? { |field| field.is_a?(Array) && field.size == 2 })
            raise ArgumentError, "#{what}: is a #{fields.class}; it is a Hash, or an Array of pairs" unless sound
            fields.each_with_object([]) { |(name, value), found| add(text(name.to_s, name), value, 1, found) }
          end

          # Sections 5.1 and 5.2 (application/x-www-form-urlencoded) of the URL Standard.
          def encode(pairs)
            pairs.map { |name, value|
              raise ArgumentError, "the parameter #{shown(name)} is a #{value.class}; a file goes into form:" if file?(value)
              value.nil? ? escape(text(name, name)) : "#{escape(text(name, name))}=#{escape(text(value, name))}"
            }.join("&")
          end

          def file?(value)
            raise ArgumentError, "a #{value.class} is the name of a file; give what is to be sent: File.open(path)" if value.respond_to?(:read) && !Part.readable?(value)
            value.is_a?(Part) || value.respond_to?(:read)
          end

          def text(value, name)
            refuse(name, "is a #{value.class}, which says nothing of itself as text") if value.is_a?(Enumerable) || value.method(:to_s).owner == Kernel
            text = value.to_s
            return text if text.encoding == Encoding::BINARY
            text = text.encode(Encoding::UTF_8)
            refuse(name, "is not #{text.encoding}, as it says; bytes are given as binary (String#b)") unless text.valid_encoding?
            text.b
          rescue EncodingError
            refuse(name, "cannot be written as UTF-8; bytes are given as binary (String#b)")
          end

          private

          def add(name, value, level, found)
            raise ArgumentError, "the field #{shown(name)} has more than #{MOST_LEVELS} levels" if level > MOST_LEVELS
            case value
            when Hash then value.each { |key, inner| add("#{name}[#{text(key.to_s, key)}]", inner, level + 1, found) }
            when Array then value.each { |inner| add("#{name}[]", inner, level + 1, found) }
            else found << [name, value]
            end
          end

          def escape(text) = URI.encode_www_form_component(text)

          def shown(name) = name.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")[0, 40].inspect

          def refuse(name, why) = raise(ArgumentError, "the field #{shown(name)} #{why}")
        end
      end
      private_constant :Form
    end
  end
end
