# frozen_string_literal: true

require "json"
require_relative "../errors"
require_relative "../format"
require_relative "../limits"
require_relative "../plain"
require_relative "library"

module Hikyaku
  module Codec
    class JSON < Format
      # Writes JSON. Nothing is changed for anybody else: no default is set, no class of Ruby's is extended by us.
      module Engine
        # Whether json has JSON::Coder, which calls back for what is no JSON, and is strict about keys.
        CODER = Library.from?(2, 17)
        private_constant :CODER

        class << self
          def generate(object)
            coder ? code(object) : write(Plain.for_json(object))
          end

          private

          def write(plain) = ::JSON.generate(plain, max_nesting: Limits::DEPTH)

          # In one go. Where that fails, the long way says what it was, or can do it after all: two keys that are the same text.
          def code(object)
            coder.dump(object)
          rescue ::JSON::JSONError, Unrepresentable, EncodingError
            write(Plain.for_json(object))
          end

          def coder
            return @coder if defined?(@coder)
            @coder = CODER ? make_coder : nil
          end

          # A key that is neither text nor a symbol may be the same text as another.
          def make_coder
            ::JSON::Coder.new(max_nesting: Limits::DEPTH, allow_duplicate_key: false) do |object, key|
              raise Unrepresentable, "a key is a #{object.class}" if key
              Plain.for_json(object)
            end
          end
        end
      end
    end
  end
end
