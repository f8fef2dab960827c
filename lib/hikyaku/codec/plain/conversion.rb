# frozen_string_literal: true

require_relative "../errors"
require_relative "../limits"
require_relative "moments"
require_relative "refusal"
require_relative "stand_ins"

module Hikyaku
  module Codec
    module Plain
      # Makes plain objects of any. Each knows one format's differences: moments, numbers beyond 64 bits, and bytes that are no text.
      class Conversion
        WIDE = (-2**63..2**64 - 1)
        # Of text, beside UTF-8 and US-ASCII.
        BYTES = Encoding::BINARY
        TEXT = [Encoding::UTF_8, Encoding::US_ASCII].freeze
        private_constant :WIDE, :BYTES, :TEXT

        attr_reader :compact

        def initialize(compact:, options: nil, bare: self, asks_core: true, exact: false)
          @compact = compact
          @options = options
          @bare = bare
          @asks_core = asks_core
          @exact = exact
          freeze
        end

        # What Active Support's encoder does: without options it asks no subclass of String, Array or Hash.
        def with(options, exact:)
          bare = Conversion.new(compact: @compact, asks_core: false, exact: exact)
          options.empty? ? bare : Conversion.new(compact: @compact, options: options, bare: bare, exact: exact)
        end

        def of(object)
          plain(object, Limits::DEPTH)
        rescue Refusal => error
          raise Unrepresentable, error.sentence, cause: error.cause
        end

        def plain(value, levels)
          case value
          when nil, true, false then value
          when String then own(value, String, levels) { text(value) }
          when Symbol then text(value.name)
          when Integer then (@compact && !WIDE.cover?(value)) ? value.to_s : value
          when Float then float(value)
          when Hash then own(value, Hash, levels) { hash(value, deeper(levels)) }
          when Array then own(value, Array, levels) { array(value, deeper(levels)) }
          else other(value, levels)
          end
        end

        private

        def deeper(levels)
          raise Refusal, "it is nested deeper than #{Limits::DEPTH} levels, or contains itself" if levels.zero?
          levels - 1
        end

        # Of two keys that are the same text the last one counts, as with as_json.
        def hash(hash, levels)
          hash.each_with_object({}) do |(key, value), plain|
            name = key(key)
            raise Refusal, "its hash has the key for the second time: it compares objects, and not text (compare_by_identity)" if plain.key?(name) && twice_refused?(hash)
            plain[name] = plain(value, levels)
          rescue Refusal => error
            raise error.below(key)
          end
        end

        # Active Support's encoder leaves a symbol and the same text as they are.
        def twice_refused?(hash) = hash.compare_by_identity? || (@exact && !@options)

        def array(array, levels)
          array.each_with_index.map do |value, index|
            plain(value, levels)
          rescue Refusal => error
            raise error.below(index)
          end
        end

        def key(key)
          name = key.is_a?(Symbol) ? key.name : key.to_s
          return text(name) unless name.encoding == BYTES
          name.ascii_only? ? name.encode(Encoding::UTF_8) : raise(Refusal, "its key is bytes and no text")
        end

        def text(string)
          raise Refusal, "its text has a to_json of its own" if @exact && own?(string, String, :to_json)
          string = String.new(string) unless string.instance_of?(String)
          return bytes(string) if string.encoding == BYTES
          raise Refusal, "it is said to be #{string.encoding}, and is not" unless string.valid_encoding?
          TEXT.include?(string.encoding) ? string : string.encode(Encoding::UTF_8)
        rescue EncodingError
          raise Refusal, "its text in #{string.encoding} cannot be put in UTF-8"
        end

        def bytes(string)
          return string if @compact || string.ascii_only?
          raise Refusal, "it is bytes (ASCII-8BIT), which JSON cannot have: say that it is UTF-8 if it is, or encode it, as Base64 say"
        end

        def float(number)
          return number if number.finite?
          json = json_of(number)
          return @bare.plain(json, 0) unless json.is_a?(Float)
          raise Refusal, "it is #{number}, which is no number in JSON: send nil, or text"
        end

        def other(value, levels)
          return @compact ? Moments.time(value) : Moments.text(value) if Moments.moment?(value)
          json = json_of(value)
          return again(json, levels) unless json.equal?(value)
          StandIns.of(value) { |stand_in| return plain(stand_in, (stand_in.is_a?(Hash) || stand_in.is_a?(Array)) ? levels : deeper(levels)) }
          raise Refusal, "an object of #{value.class} has no representation: give it a method as_json that returns a Hash, an Array, text or a number"
        end

        # Once an object: it may be expensive. Some give themselves. Some change the options; numbers and dates, of which there are many, do not.
        def json_of(value)
          return value unless value.respond_to?(:as_json)
          return value.as_json unless @options
          value.as_json((value.is_a?(Numeric) || value.is_a?(Date)) ? @options : @options.dup)
        end

        # What as_json gives may have to be asked again, but not for ever.
        def again(json, levels) = @bare.plain(json, PLAIN.include?(json.class) ? levels : deeper(levels))

        # Unless a subclass says itself how it is to be represented.
        def own(value, core, levels)
          return yield if value.instance_of?(core) || !@asks_core || !own?(value, core, :as_json)
          json = json_of(value)
          json.equal?(value) ? yield : again(json, levels)
        end

        def own?(value, core, name)
          value.respond_to?(name) && !(core.method_defined?(name) && value.method(name).owner == core.instance_method(name).owner)
        end

        PLAIN = [NilClass, TrueClass, FalseClass, String, Integer, Float, Hash, Array].freeze
        MESSAGE_PACK = new(compact: true)
        JSON = new(compact: false)
        private_constant :PLAIN
      end
    end
  end
end
