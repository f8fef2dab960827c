# frozen_string_literal: true

require "json"

module Hikyaku
  class Web
    class Authorization
      # Reads a JSON object the strict way: valid UTF-8, no member name twice (RFC 7515 section 4, RFC 7519
      # section 4), nothing after it, bounded depth, no number that is too large for a Float.
      module StrictJson
        # Deep enough for any payload, shallow enough for every parser and generator that sees it later.
        MAX_DEPTH = 64

        # Only these can become infinite, which no generator writes.
        LARGE = /\d[eE]|\d{300}/

        # Older versions of the json library keep the last of several members with one name, silently.
        class UniqueMembers < Hash
          def []=(name, value)
            raise JSON::ParserError, "a member name occurs twice" if key?(name)
            super
          end
        end

        def self.object(bytes)
          text = String.new(bytes, encoding: Encoding::UTF_8)
          return unless text.valid_encoding?
          JSON.parse(text, object_class: UniqueMembers, max_nesting: MAX_DEPTH)
          value = JSON.parse(text, max_nesting: MAX_DEPTH, freeze: true)
          value if value.is_a?(Hash) && (!LARGE.match?(text) || finite?(value))
        rescue JSON::JSONError
          nil
        end

        def self.finite?(value)
          case value
          when Float then value.finite?
          when Hash then value.each_value.all? { |member| finite?(member) }
          when Array then value.all? { |entry| finite?(entry) }
          else true
          end
        end

        private_class_method :finite?
        private_constant :LARGE, :UniqueMembers
      end
    end
  end
end
