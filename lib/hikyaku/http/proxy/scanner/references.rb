# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Character references in the values of attributes.
        #
        # Known are all numeric ones; the 106 names that need no ";", which are those of Latin-1 and &amp; &lt; &gt; &quot; &copy; &reg; in both
        # cases; those of ASCII's punctuation; and a few of typography. Of another name that ends with ";" it is not sure whether it is
        # one of the standard's two thousand.
        #
        # HTML Standard, section "Named character reference state" and those that follow.
        module References
          LATIN_1 = %w[
            nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr
            deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest
            Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml
            ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig
            agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml
            eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml
          ].each_with_index.to_h { |name, index| [name, [0xA0 + index].pack("U")] }.freeze
          # With or without ";".
          BARE = {"amp" => "&", "AMP" => "&", "lt" => "<", "LT" => "<", "gt" => ">", "GT" => ">", "quot" => '"', "QUOT" => '"',
                  "COPY" => "\u00A9", "REG" => "\u00AE"}.merge(LATIN_1).freeze
          # With ";" alone.
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

            # Without ";" only what is followed by neither "=" nor another letter or digit, as in ?a=1&copy=2.
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
      end
    end
  end
end
