# frozen_string_literal: true

require "json"
require_relative "../../../error"

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # What `render msgpack:` packs: what the object says of itself with `as_json`, with the options of `render json:`.
      module Plain
        # What Rails puts among the options, and what is said of the response.
        OF_RAILS = %i[action assigns callback content_type formats handlers layout locale location prefixes status template variant variants].freeze
        CLASS = Kernel.instance_method(:class)
        OF_HTML = %w[< > &].freeze
        OF_SCRIPTS = %W[\u2028 \u2029].freeze
        private_constant :OF_RAILS, :CLASS, :OF_HTML, :OF_SCRIPTS

        # A text that is no JSON was given to `render msgpack:`.
        class NotJSON < ArgumentError
          include Error
        end

        class << self
          def pack(object, options = {})
            return object if packed?(object)
            return repack(object) if object.is_a?(String)
            writes_itself?(object) ? repack(object.to_json(options)) : Codec[NAME].dump(given(object, options))
          end

          # What Active Support makes of an object in `render json:`, in a fraction of the time: as_json is asked as it asks, and json does the rest.
          def text(object, options)
            return if object.is_a?(String) || !from_rails?(object)
            json(given(object, options, exact: true))
          rescue Codec::Unrepresentable
            nil
          end

          def quoted(text) = from_rails?(text) ? json(text) : text.to_json

          def packed?(object) = object.is_a?(String) && object.encoding == Encoding::BINARY

          def repack(text) = Codec[NAME].dump(parse(text))

          def parse(text)
            ::JSON.parse(text, max_nesting: false)
          rescue ::JSON::ParserError, TypeError
            raise NotJSON, "render msgpack: was given a String that is no JSON: give the object itself, or packed bytes with the encoding BINARY"
          end

          def given(object, options, exact: false)
            object, options = chosen(object, options, Codec::Limits::DEPTH), {} unless options.except(*OF_RAILS).empty?
            Codec::Plain::Given.new(object, options, exact)
          end

          private

          # For JSON in a page, as Active Support has it.
          def json(object)
            text = Codec[:json].dump(object).force_encoding(Encoding::UTF_8)
            replaced = ActiveSupport.escape_html_entities_in_json ? OF_HTML + OF_SCRIPTS : OF_SCRIPTS
            # One by one: a text is looked for sooner than a pattern.
            replaced.each { |character| text.gsub!(character, format('\u%04x', character.ord)) if text.include?(character) }
            text
          end

          # As Active Support does it with `only` and `except`, but moments stay moments.
          def chosen(value, options, levels)
            return value if Codec::Plain::Moments.moment?(value)
            array = core?(value, Array)
            return value.as_json(options.dup) unless array || core?(value, Hash)
            raise Codec::Unrepresentable, "this cannot be represented: it is nested deeper than #{Codec::Limits::DEPTH} levels, or contains itself" if levels.zero?
            return value.map { |each| chosen(each, options, levels - 1) } if array
            part(value, options).transform_values { |each| chosen(each, options, levels - 1) }
          end

          def core?(value, core) = value.instance_of?(core) || (value.is_a?(core) && value.method(:as_json).owner == core)

          def part(hash, options)
            return hash.slice(*Array(options[:only])) if options[:only]
            options[:except] ? hash.except(*Array(options[:except])) : hash
          end

          # Whether it is Active Support that `render json:` has write the object.
          def from_rails?(object)
            object.method(:to_json).owner == ActiveSupport::ToJsonWithActiveSupportEncoder
          rescue NameError
            false
          end

          # Whether MessagePack is made of its to_json: that is nearer to the object than as_json is, or behind method_missing, where nobody can tell.
          # One of the object alone has no place among the ancestors of its class, and is nearest.
          def writes_itself?(object)
            return false if from_rails?(object)
            writer = object.method(:to_json).owner
            return true unless CLASS.bind_call(object).method_defined?(:to_json)
            places = CLASS.bind_call(object).ancestors
            (places.index(writer) || -1) < (places.index(object.method(:as_json).owner) || -1)
          rescue NameError
            true
          end
        end
      end
    end
  end
end
