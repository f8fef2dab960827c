# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # The encoding of a page: by its byte order mark, or else its Content-Type, or else a meta element among its first bytes. A browser guesses without
        # these; this class does not.
        #
        # HTML Standard, section "Determining the character encoding"; Encoding Standard, section "Names and labels": the frequent ones.
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
          # They do not extend ASCII, or switch by escapes.
          NOT_ASCII = /\A(?:utf-?16|utf-?32|utf-7|ucs-?2|iso-10646|csiso2022|iso-2022|hz-gb|replacement|unicode|csunicode)/
          UTF_16 = /\Autf-?16/
          UTF_8_MARK = "\xEF\xBB\xBF".b.freeze
          UTF_16_MARKS = ["\xFE\xFF".b.freeze, "\xFF\xFE".b.freeze].freeze
          # A meta element counts within so many bytes.
          PRESCAN = 1_024
          private_constant :LABELS, :NOT_ASCII, :UTF_16, :UTF_8_MARK, :UTF_16_MARKS, :PRESCAN

          def initialize(label)
            @first = String.new(encoding: Encoding::BINARY)
            @ascii = true
            decide(label) if label
          end

          # Whether the tags are ASCII.
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

          # The label of a meta element.
          def meta(label, stop)
            return if @decided || stop > PRESCAN
            label = normalize(label)
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

          def normalize(label) = label.to_s.b.downcase.strip.delete("\"'")

          def decide(label)
            label = normalize(label)
            @decided = true
            @encoding = LABELS[label]
            @ascii = LABELS.key?(label) || !label.match?(NOT_ASCII)
          end
        end

        # Decodes character references in the values of attributes: numeric ones; the 106 names that need no ";", which are those of Latin-1 and &amp; &lt; &gt;
        # &quot; &copy; &reg; in both cases; ASCII's punctuation; and some of typography. Another name with ";" may be one of the standard's two thousand.
        #
        # HTML Standard, section "Named character reference state" and those that follow.
        module CharacterReferences
          LATIN_1 = %w[
            nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr
            deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest
            Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml
            ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig
            agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml
            eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml
          ].each_with_index.to_h { |name, index| [name, [0xA0 + index].pack("U")] }.freeze
          # The ";" is optional.
          BARE = {"amp" => "&", "AMP" => "&", "lt" => "<", "LT" => "<", "gt" => ">", "GT" => ">", "quot" => '"', "QUOT" => '"',
                  "COPY" => "\u00A9", "REG" => "\u00AE"}.merge(LATIN_1).freeze
          # The ";" is mandatory.
          NAMES = {"Tab" => "\t", "NewLine" => "\n", "excl" => "!", "num" => "#", "dollar" => "$", "percnt" => "%", "apos" => "'", "lpar" => "(", "rpar" => ")",
                   "ast" => "*", "midast" => "*", "plus" => "+", "comma" => ",", "period" => ".", "sol" => "/", "colon" => ":", "semi" => ";", "equals" => "=",
                   "quest" => "?", "commat" => "@", "lsqb" => "[", "lbrack" => "[", "bsol" => "\\", "rsqb" => "]", "rbrack" => "]", "Hat" => "^", "lowbar" => "_",
                   "UnderBar" => "_", "grave" => "`", "lcub" => "{", "lbrace" => "{", "verbar" => "|", "vert" => "|", "rcub" => "}", "rbrace" => "}",
                   "ndash" => "\u2013", "mdash" => "\u2014", "lsquo" => "\u2018", "rsquo" => "\u2019", "ldquo" => "\u201C", "rdquo" => "\u201D",
                   "hellip" => "\u2026", "euro" => "\u20AC", "trade" => "\u2122"}.merge(BARE).freeze
          REFERENCE = /&(?:#([xX]\h+|[0-9]+);?|([A-Za-z][A-Za-z0-9]*)([;=]?))/
          REPLACEMENT = "\uFFFD"
          private_constant :LATIN_1, :BARE, :NAMES, :REFERENCE, :REPLACEMENT

          class << self
            def decode(text)
              return text unless text.include?("&")
              text.gsub(REFERENCE) do |whole|
                number, name, mark = $1, $2, $3
                number ? numeric(number) : named(name, mark, whole)
              end
            end

            private

            # Without ";", a name before "=", a letter or a digit is no reference, as in ?a=1&copy=2.
            def named(name, mark, whole)
              case mark
              when ";" then NAMES[name] || throw(:unsure)
              when "=" then whole
              else BARE.fetch(name, whole)
              end
            end

            def numeric(digits)
              code = digits.match?(/\A[xX]/) ? digits[1..].hex : digits.to_i
              return REPLACEMENT if code.zero? || code > 0x10FFFF || (0xD800..0xDFFF).cover?(code)
              return [code].pack("U") unless (0x80..0x9F).cover?(code)
              code.chr.force_encoding(Encoding::Windows_1252).encode(Encoding::UTF_8, undef: :replace, replace: [code].pack("U"))
            end
          end
        end

        # The decoded attributes of a start tag. Each method but `key?` throws :unsure for a value that it cannot decode with certainty.
        class Attributes
          SPACE = /[\t\n\f\r ]+/
          NOT_SPACE = /[^\t\n\f\r ]/
          private_constant :SPACE, :NOT_SPACE

          def initialize(values, charset)
            @values = values
            @charset = charset
          end

          def key?(name) = @values.key?(name)

          def [](name)
            return unless @values.key?(name)
            bytes = @values[name] or throw :unsure
            text = @charset.decode(bytes)
            throw :unsure if text.nil? || text.include?("\0")
            CharacterReferences.decode(text)
          end

          def text(name)
            text = self[name].to_s
            first = text.index(NOT_SPACE) or return ""
            text[first..text.rindex(NOT_SPACE)]
          end

          def word(name) = text(name).downcase(:ascii)

          def words(name) = word(name).split(SPACE)
        end
      end
    end
  end
end
