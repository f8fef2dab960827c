# frozen_string_literal: true

require "json"
require_relative "../format"
require_relative "library"

module Hikyaku
  module Codec
    class JSON < Format
      # Parses so that no object may have a key twice: two programs that read such a thing may see two things in it.
      #
      # RFC 8259, section 4.
      module Once
        # Whether the parser sees to it.
        KNOWN = Library.from?(2, 13)
        private_constant :KNOWN

        # For a json that does not know of it: what its parser fills.
        class Keys < Hash
          def []=(key, value)
            raise ::JSON::ParserError, "an object has the key twice" if key?(key)
            super
          end
        end
        private_constant :Keys

        class << self
          def parse(text, max_depth)
            return ::JSON.parse(text, max_nesting: max_depth, allow_nan: false, allow_duplicate_key: false) if KNOWN
            plain(::JSON.parse(text, max_nesting: max_depth, allow_nan: false, create_additions: false, object_class: Keys))
          end

          private

          def plain(value)
            case value
            when Hash then value.each_with_object({}) { |(key, each), hash| hash[key] = plain(each) }
            when Array then value.map { |each| plain(each) }
            else value
            end
          end
        end
      end
    end
  end
end
