# frozen_string_literal: true

module Hikyaku
  class Web
    # Parses `application/x-www-form-urlencoded`, of bodies and of query components alike.
    #
    # URL Living Standard, section "application/x-www-form-urlencoded parsing"; but what does not decode to UTF-8 is
    # left as it is, so that the caller can refuse it: Mercure draft-08 wants such values rejected, not repaired.
    module Form
      HEX = (0..255).to_h { |byte| [format("%02x", byte), byte.chr(Encoding::BINARY)] }
        .then { |lower| lower.flat_map { |hex, byte| [hex, hex.upcase, hex.capitalize, hex[0] + hex[1].upcase].map { |h| ["%#{h}", byte] } } }
        .to_h.freeze
      ESCAPE = /%[0-9A-Fa-f]{2}/n
      BROKEN = /%(?![0-9A-Fa-f]{2})/n
      private_constant :HEX, :ESCAPE, :BROKEN

      module_function

      # @param string [String]
      # @return [Array<Array(String, String)>] names and values in order, UTF-8 (perhaps not valid)
      def parse(string)
        string.b.split("&").filter_map do |pair|
          next if pair.empty?
          name, _, value = pair.partition("=")
          [decode(name), decode(value)]
        end
      end

      # Percent-decodes, as in a path: a plus sign stays.
      #
      # @param string [String]
      # @return [String] UTF-8 (perhaps not valid)
      def unescape(string) = decoded(string.b)

      # @param string [String] binary, and nobody else's
      def decode(string)
        string.tr!("+", " ") if string.include?("+")
        decoded(string)
      end

      # Where nothing stands in the way, as quoted-printable (RFC 2045, section 6.7), which differs by the sign: that is
      # eight times as fast as to look for each escape, and nearly all of a subscribe's parameters are URLs.
      def decoded(string)
        if string.include?("%")
          string = (string.include?("=") || BROKEN.match?(string)) ? string.gsub(ESCAPE, HEX) : string.tr("%", "=").unpack1("M")
        end
        string.force_encoding(Encoding::UTF_8)
      end

      private_class_method :decode, :decoded
    end
  end
end
