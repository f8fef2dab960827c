# frozen_string_literal: true

require_relative "number"

module Hikyaku
  module Codec
    module Reading
      # Values without parts, as text: JSON where JSON has a word for it, else bin(length, hex), ext(type, hex), time(ISO 8601), NaN and Infinity.
      #
      # Nothing that comes out is obeyed by a terminal, turns the direction of what stands beside it, or is invisible.
      module Notation
        # Control and format characters, line and paragraph separators, and the two that JSON escapes.
        ESCAPED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}"\\]/
        HARMFUL = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]&&[^\n]]/
        NAMES = {"\"" => "\\\"", "\\" => "\\\\", "\n" => "\\n", "\r" => "\\r", "\t" => "\\t", "\b" => "\\b", "\f" => "\\f"}.freeze
        # Timestamps are the extension type -1: seconds and nanoseconds by its length.
        TIMESTAMP = -1
        NAN = [Float::NAN.abs].pack("G").freeze
        # Years that ISO 8601 has, without an agreement of the two sides.
        YEARS = (0..9999)
        MOST_CHARACTER_BYTES = 4
        private_constant :ESCAPED, :HARMFUL, :NAMES, :TIMESTAMP, :NAN, :YEARS, :MOST_CHARACTER_BYTES

        module_function

        def scalar(token, limit)
          case token.kind
          when :string then text(token.value, limit)
          when :binary then "bin(#{Number.text(token.value.bytesize)}#{", " unless token.value.empty?}#{hex(token.value, limit)})"
          when :extension then extension(*token.value, limit)
          when :float then float(token.value)
          when :number then cut(token.value.dup.force_encoding(Encoding::UTF_8), limit, "digits")
          when :nil then "null"
          else token.value.to_s
          end
        end

        def text(bytes, limit)
          shown, left = beginning(bytes, limit)
          "\"#{escaped(shown)}\"#{" … #{Number.text(left)} more bytes" if left > 0}"
        end

        def escaped(text)
          text = text.dup.force_encoding(Encoding::UTF_8)
          return text.gsub(ESCAPED) { |character| NAMES[character] || code(character) } if text.valid_encoding?
          text.each_char.map { |character| character.valid_encoding? ? escaped(character) : bytes_of(character) }.join
        end

        # Text of several lines, with its quotes.
        def harmless(text)
          text = text.dup.force_encoding(Encoding::UTF_8)
          text = text.scrub { |bytes| bytes_of(bytes) } unless text.valid_encoding?
          text.gsub(HARMFUL) { |character| code(character) }
        end

        # Double, with as many digits as tell it from all others.
        def float(value)
          return value.to_s unless value.nan?
          bits = [value].pack("G")
          (bits.unpack1("Q>") & 0x7fff_ffff_ffff_ffff == NAN.unpack1("Q>")) ? "NaN" : "NaN(0x#{bits.unpack1("H*")})"
        end

        def extension(type, bytes, limit)
          moment = (timestamp(bytes) if type == TIMESTAMP)
          moment ? "time(#{moment})" : "ext(#{type}, #{hex(bytes, limit)})"
        end

        def timestamp(bytes)
          seconds, nanoseconds = moment(bytes)
          return unless seconds && nanoseconds < 1_000_000_000
          time = Time.at(seconds, nanoseconds, :nsec, in: "UTC")
          return "#{seconds}#{fraction(nanoseconds)} s" unless YEARS.cover?(time.year)
          "#{time.strftime("%Y-%m-%dT%H:%M:%S")}#{fraction(nanoseconds)}Z"
        rescue RangeError
          "#{seconds}#{fraction(nanoseconds)} s"
        end

        def moment(bytes)
          case bytes.bytesize
          when 4 then [bytes.unpack1("N"), 0]
          when 8 then bytes.unpack1("Q>").then { |both| [both & 0x3_ffff_ffff, both >> 34] }
          when 12 then bytes.unpack("Nq>").reverse
          end
        end

        def fraction(nanoseconds) = nanoseconds.zero? ? "" : format(".%09d", nanoseconds).sub(/0+\z/, "")

        def hex(bytes, limit)
          left = bytes.bytesize - limit
          (left > 0) ? "#{bytes.byteslice(0, limit).unpack1("H*")} … #{Number.text(left)} more bytes" : bytes.unpack1("H*")
        end

        def cut(text, limit, unit)
          (text.size > limit) ? "#{text[0, limit]} … #{Number.text(text.size - limit)} more #{unit}" : text
        end

        # No more is looked at than is shown: the rest may be long.
        def beginning(bytes, limit)
          return [bytes, 0] if bytes.bytesize <= limit
          shown = bytes.byteslice(0, limit * MOST_CHARACTER_BYTES).force_encoding(Encoding::UTF_8)[0, limit]
          [shown, bytes.bytesize - shown.bytesize]
        end

        def bytes_of(text) = text.unpack("C*").map { |byte| format("\\x%02x", byte) }.join

        def code(character) = (character.ord > 0xffff) ? format("\\u{%x}", character.ord) : format("\\u%04x", character.ord)

        private_class_method :extension, :timestamp, :moment, :fraction, :hex, :cut, :beginning, :bytes_of, :code
      end
    end
  end
end
