# frozen_string_literal: true

require "json"
require_relative "../../error"

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # What `render msgpack:` packs: what the object says of itself with `as_json`, with the options of `render json:`.
      #
      # @api private
      module Plain
        # What Rails puts among the options, and what is said of the response.
        OF_RAILS = %i[action assigns callback content_type formats handlers layout locale location prefixes status template variant variants].freeze
        private_constant :OF_RAILS

        # A text that is no JSON was given to `render msgpack:`.
        class NotJSON < ArgumentError
          include Error
        end

        module_function

        # @param object [Object] a String is what a serialiser has made: JSON, or bytes that are packed already, which are binary
        # @param options [Hash] of `render`
        # @return [String] binary
        # @raise [NotJSON]
        def pack(object, options = {})
          return object if object.is_a?(String) && object.encoding == Encoding::BINARY
          return repack(object) if object.is_a?(String)
          rest = options(options)
          Codec[NAME].dump(rest.empty? ? object : object.as_json(rest))
        end

        # @param text [String] JSON
        # @return [String] binary
        # @raise [NotJSON]
        def repack(text)
          Codec[NAME].dump(::JSON.parse(text, max_nesting: false))
        rescue ::JSON::ParserError
          raise NotJSON, "render msgpack: was given a String that is no JSON: give the object itself, or packed bytes with the encoding BINARY"
        end

        # @param options [Hash] of `render`
        # @return [Hash] those that go to `as_json`
        def options(options) = options.except(*OF_RAILS)
      end
    end
  end
end
