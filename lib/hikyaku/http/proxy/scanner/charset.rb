# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # In what the page is encoded, as far as it is sure: a byte order mark says it, or else its Content-Type, or else a meta element
        # among its first bytes. A browser that is told nothing guesses; this does not.
        #
        # HTML Standard, section "Determining the character encoding"; Encoding Standard, section "Names and labels", of which the frequent
        # ones are known here.
        class Charset
          UTF_8 = Encoding::UTF_8
          LABELS = {
            UTF_8 => %w[utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8],
            Encoding::Windows_1252 => %w[windows-1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 l1 cp1252 x-cp1252 ascii us-ascii],
            Encoding::Windows_1251 => %w[windows-1251 cp1251 x-cp1251],
            Encoding::Windows_1250 => %w[windows-1250 cp1250 x-cp1250],
            Encoding::ISO_8859_2 => %w[iso-8859-2 iso8859-2 iso_8859-2 latin2 l2],
            Encoding::ISO_8859_15 => %w[iso-8859-15 iso8859-15 iso_8859-15 l9]
          }.flat_map { |encoding, labels| labels.map { |label| [label, encoding] } }.to_h.freeze
          # What is no extension of ASCII, or becomes another after an escape.
          STRANGE = /\A(?:utf-?16|utf-?32|utf-7|ucs-?2|iso-10646|csiso2022|iso-2022|hz-gb|replacement|unicode|csunicode)/
          UTF_16 = /\Autf-?16/
          UTF_8_MARK = "\xEF\xBB\xBF".b.freeze
          UTF_16_MARKS = ["\xFE\xFF".b.freeze, "\xFF\xFE".b.freeze].freeze
          # Bytes within which a meta element is looked for.
          PRESCAN = 1_024
          private_constant :LABELS, :STRANGE, :UTF_16, :UTF_8_MARK, :UTF_16_MARKS, :PRESCAN

          def initialize(label)
            @first = String.new(encoding: Encoding::BINARY)
            @ascii = true
            decide(label) if label
          end

          # Whether the tags can be read without knowing more.
          def ascii? = @ascii

          def utf_8? = @encoding == UTF_8

          def sniff(bytes)
            return if @first.bytesize > 2
            @first << bytes.byteslice(0, 3).b
            mark = @first.byteslice(0, 3)
            if mark == UTF_8_MARK then decide("utf-8")
            elsif UTF_16_MARKS.include?(mark.byteslice(0, 2)) then @ascii = false
            end
          end

          # A meta element names one.
          def meta(label, stop)
            return if @decided || stop > PRESCAN
            label = plain(label)
            decide(label.match?(UTF_16) ? "utf-8" : label)
          end

          def decode(bytes)
            return bytes.dup.force_encoding(UTF_8) if bytes.ascii_only?
            return unless @encoding
            text = bytes.dup.force_encoding(@encoding)
            text.encode(UTF_8) if text.valid_encoding?
          rescue EncodingError
            nil
          end

          private

          def plain(label) = label.to_s.b.downcase.strip.delete("\"'")

          def decide(label)
            label = plain(label)
            @decided = true
            @encoding = LABELS[label]
            @ascii = LABELS.key?(label) || !label.match?(STRANGE)
          end
        end
      end
    end
  end
end
