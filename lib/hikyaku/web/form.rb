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
      private_constant :HEX

      module_function

      # @param string [String]
      # @return [Array<Array(String, String)>] names and values in order, UTF-8 (perhaps not valid)
      def parse(string)
        string.b.split("&").filter_map do |pair|
          next if pair.empty?
          name, value = pair.split("=", 2)
          [decode(name || ""), decode(value || "")]
        end
      end

      # Percent-decodes, as in a path: a plus sign stays.
      #
      # @param string [String]
      # @return [String] UTF-8 (perhaps not valid)
      def unescape(string)
        string = string.b
        string = string.gsub(/%[0-9A-Fa-f]{2}/n, HEX) if string.include?("%")
        string.force_encoding(Encoding::UTF_8)
      end

      def decode(string) = unescape(string.include?("+") ? string.tr("+", " ") : string)

      private_class_method :decode
    end
  end
end
