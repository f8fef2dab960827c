# frozen_string_literal: true

require_relative "reading/broken"
require_relative "reading/json"
require_relative "reading/listing"
require_relative "reading/message_pack"
require_relative "reading/printer"

module Hikyaku
  module Codec
    # Bodies of MessagePack and JSON for people to read, without any gem, and also where they are broken, up to that place.
    #
    #     Hikyaku::Codec::Reading.show("\x82\xa1a\x01\xa1b\xc0".b).text      # => '{"a": 1, "b": null}'
    module Reading
      # What {Reading.show} gives: the text, the place where the body is broken or nil, and how many values there are back to back.
      Shown = Struct.new(:text, :broken, :values)

      JSON_TYPE = %r{\Aapplication/(?:[\w.-]+\+)?json\s*(?:;|\z)}i
      MESSAGE_PACK_TYPE = %r{\Aapplication/(?:vnd\.|x-)?(?:msgpack|x-mpac|mpac)\s*(?:;|\z)}i
      JSON_BEGINNING = /\A(?:\xEF\xBB\xBF)?[ \t\r\n]*(?:[\[{"]|-?[0-9]|null|true|false)/n
      # The largest number that is its own first byte.
      SMALL = 0x7f
      private_constant :SMALL, :JSON_TYPE, :MESSAGE_PACK_TYPE, :JSON_BEGINNING

      class << self
        def show(bytes, type: type_of(bytes) || :msgpack, width: 100, limits: Printer::USUAL, listing: false)
          most = limits.items || Float::INFINITY
          width = nil if several?(bytes, type, most)
          text = String.new(encoding: Encoding::UTF_8)
          printer = listing ? Listing.new(text, limits: limits) : Printer.new(text, width: width, limits: limits)
          values, broken = print(reader(bytes, type), printer, text, most)
          Shown.new(text, broken, values)
        end

        # What a body probably is: its media type says so, or its first bytes.
        def type_of(bytes, media_type = nil)
          case media_type
          when MESSAGE_PACK_TYPE then :msgpack
          when JSON_TYPE then :json
          else guess(bytes.byteslice(0, 64).b)
          end
        end

        def known?(media_type) = [MESSAGE_PACK_TYPE, JSON_TYPE].any? { |types| types.match?(media_type.to_s) }

        private

        def guess(bytes)
          return :json if bytes.match?(JSON_BEGINNING)
          :msgpack if bytes.empty? || bytes.getbyte(0) > SMALL
        end

        def reader(bytes, type) = (type == :json) ? Json.new(bytes) : (MessagePack.new << bytes).finish

        def several?(bytes, type, most)
          whole = false
          reader = reader(bytes, type)
          while reader.next && reader.depth.positive?
            return false if (most -= 1).negative?
          end
          whole = true
          !reader.next.nil?
        rescue Broken
          whole
        end

        def print(reader, printer, text, most)
          values = items = 0
          until printer.full?
            outermost = reader.depth.zero?
            token = reader.next or break
            return [values + 1, more_than(most, printer)] if (items += 1) > most
            printer.begin_value if outermost && values.positive?
            printer << token
            values += 1 if reader.depth.zero?
          end
          printer.finish
          text << "\n… what follows is not shown: the text is too long" if printer.full?
          [values, nil]
        rescue Broken => error
          printer.begin_value if reader.depth.zero? && values.positive?
          printer << error.token if error.token
          printer.break_off("broken #{error.message}")
          [values, error]
        end

        # What follows may be broken, and is not looked at.
        def more_than(most, printer)
          printer.break_off("what follows is not read: there are more than #{Number.text(most)} items")
          nil
        end
      end
    end
  end
end
