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
      # Which library writes JSON. Neither is changed for anybody else: no default is set, no class of Ruby's is extended by us.
      #
      # @api private
      module Engine
        # What oj is to do, whatever its defaults have been set to; floats with all their digits, for it would write 16.
        OJ = {mode: :strict, indent: 0, circular: false, escape_mode: :json, float_precision: 0, nilnil: false, omit_nil: false, omit_null_byte: false}.freeze
        # Whether json has JSON::Coder, which calls back for what is no JSON, and is strict about keys.
        CODER = Library.from?(2, 17)
        ZERO = /(?<![\d.])0\.0(?!\d)/
        private_constant :OJ, :CODER, :ZERO

        @current = :json

        class << self
          # @return [Symbol]
          attr_reader :current

          # @param name [Symbol] :json or :oj
          # @return [Symbol]
          # @raise [Unavailable]
          def use(name)
            raise ArgumentError, "JSON is written by :json or :oj, not by #{name.inspect}" unless %i[json oj].include?(name)
            require "oj" if name == :oj
            @current = name
          rescue LoadError
            raise Unavailable, "to have JSON written by oj, add `gem \"oj\"` to the Gemfile"
          end

          # @param object [Object]
          # @return [String]
          # @raise [Unrepresentable]
          def generate(object)
            return by_oj(Plain.for_json(object)) if @current == :oj
            coder ? code(object) : write(Plain.for_json(object))
          end

          private

          # It writes 0.0 for -0.0. Whether there is one is looked for only where there is a zero.
          def by_oj(plain)
            written = ::Oj.dump(plain, OJ)
            (ZERO.match?(written) && below_zero?(plain)) ? write(plain) : written
          end

          def below_zero?(plain)
            case plain
            when Float then plain.zero? && (1 / plain).negative?
            when Array then plain.any? { |value| below_zero?(value) }
            when Hash then plain.any? { |_, value| below_zero?(value) }
            end
          end

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
