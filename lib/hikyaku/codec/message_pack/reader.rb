# frozen_string_literal: true

require_relative "../errors"
require_relative "../format"
require_relative "timestamp"

module Hikyaku
  module Codec
    class MessagePack < Format
      # Reads one value, exactly. It makes nothing of a count or a length before it has seen that so many bytes are there, enters no deeper than it
      # may, and knows where it is.
      class Reader
        INTEGERS = (0xcc..0xd3)
        # How many bytes each has, and how to read it.
        INTEGER_FORMS = [[1, "C"], [2, "n"], [4, "N"], [8, "Q>"], [1, "c"], [2, "s>"], [4, "l>"], [8, "q>"]].freeze
        LENGTHS = [[1, "C"], [2, "n"], [4, "N"]].freeze
        # By first byte: a method, and how many bytes its count or length has.
        COUNTED = {0xc4 => :bytes, 0xc7 => :extension, 0xd9 => :text, 0xdc => :array, 0xde => :map}.flat_map do |first, method|
          lengths = (first < 0xdc) ? LENGTHS : LENGTHS.drop(1)
          lengths.each_with_index.map { |length, index| [first + index, [method, *length]] }
        end.to_h.freeze
        FIXED_EXTENSIONS = (0xd4..0xd8)
        LONGER_TEXTS = (0xd9..0xdb)
        TIMESTAMP = -1
        private_constant :INTEGERS, :INTEGER_FORMS, :LENGTHS, :COUNTED, :FIXED_EXTENSIONS, :LONGER_TEXTS, :TIMESTAMP

        def initialize(bytes, max_depth:, max_items:)
          @bytes = bytes.b
          # The same bytes: what is cut from it is text.
          @text = @bytes.dup.force_encoding(Encoding::UTF_8)
          @size = @bytes.bytesize
          @max_depth = @levels = max_depth
          @max_items = @items = max_items
          @at = 0
        end

        def read
          object = value
          refuse "#{@size - @at} bytes stand behind the value, which ends", @at unless @at == @size
          object
        end

        private

        def refuse(what, at, error = Malformed) = raise(error, "MessagePack: #{what} at byte #{at}")

        # Bytes that must be there; where they begin.
        def need(count)
          at = @at
          missing(count) if count > @size - at
          @at = at + count
          at
        end

        def missing(count) = refuse("#{count} bytes are expected, and there are only #{@size - @at} more,", @at)

        def value
          first = @bytes.getbyte(@at) || refuse("a value is expected, and there is nothing more,", @at)
          @at += 1
          if first < 0x80 then first
          elsif first >= 0xe0 then first - 256
          elsif first >= 0xa0 && first < 0xc0 then text(first & 0x1f)
          elsif first < 0x90 then map(first & 0x0f)
          elsif first < 0xa0 then array(first & 0x0f)
          else
            other(first)
          end
        end

        def other(first)
          case first
          when 0xc0 then nil
          when 0xc2 then false
          when 0xc3 then true
          when 0xcb then float(8, "G")
          when 0xca then float(4, "g")
          when INTEGERS
            size, directive = INTEGER_FORMS[first - 0xcc]
            @bytes.unpack1(directive, offset: need(size))
          when FIXED_EXTENSIONS then extension(1 << (first - 0xd4))
          when 0xc1 then refuse "there is 0xC1, which begins no value,", @at - 1
          else
            method, size, directive = COUNTED[first]
            length = @bytes.unpack1(directive, offset: need(size))
            __send__(method, length)
          end
        end

        def float(size, directive)
          number = @bytes.unpack1(directive, offset: need(size))
          refuse "there is a number that is none or endless", @at - size - 1 unless number.finite?
          number
        end

        def text(length)
          at = @at
          missing(length) if length > @size - at
          @at = at + length
          text = @text.byteslice(at, length)
          refuse "there is text that is no UTF-8", at unless text.valid_encoding?
          text
        end

        def bytes(length) = @bytes.byteslice(need(length), length)

        def extension(length)
          type = @bytes.unpack1("c", offset: need(1))
          at = need(length)
          refuse "there is the extension type #{type}, which is not known,", at - 1 unless type == TIMESTAMP
          Timestamp.time(@bytes.byteslice(at, length)) || refuse("there is a timestamp that is none", at)
        end

        # Every item has a byte at least.
        def enter(what, count, least)
          refuse "there is #{what} of #{count}, and only #{@size - @at} bytes more,", @at if least > @size - @at
          refuse "there are more than the #{@max_items} items that are read,", @at, TooLarge if (@items -= count).negative?
          refuse "arrays and maps are nested deeper than #{@max_depth} levels", @at, TooLarge if (@levels -= 1).negative?
        end

        def array(count)
          enter("an array", count, count)
          array = []
          while count > 0
            array << value
            count -= 1
          end
          @levels += 1
          array
        end

        def map(count)
          enter("a map", count, count * 2)
          map = {}
          while count > 0
            key = key(map)
            map[key] = value
            count -= 1
          end
          @levels += 1
          map
        end

        # Two programs that read a map with a key twice may see two things in it.
        def key(map)
          at = @at
          first = @bytes.getbyte(at) || refuse("a key is expected, and there is nothing more,", at)
          if first >= 0xa0 && first < 0xc0
            @at = at + 1
            key = text(first & 0x1f)
          else
            refuse "there is a key that is no text", at unless LONGER_TEXTS.cover?(first)
            key = value
          end
          refuse "there is a key for the second time", at if map.key?(key)
          key
        end
      end
    end
  end
end
