# frozen_string_literal: true

require "cgi/escape"

module Hikyaku
  class Web
    # Parses `application/x-www-form-urlencoded`, of bodies and of query components alike.
    #
    # URL Living Standard, section "application/x-www-form-urlencoded parsing"; but what does not decode to UTF-8 is
    # left as it is, so that the caller can refuse it: Mercure draft-08 wants such values rejected, not repaired.
    module URLEncodedForm
      BROKEN = /%(?![0-9A-Fa-f]{2})/n
      private_constant :BROKEN

      module_function

      def parse(string)
        form = string.b
        form.tr!("+", " ") if form.include?("+")
        form.split("&").filter_map do |pair|
          next if pair.empty?
          sign = pair.index("=") || pair.bytesize
          [decoded(pair.byteslice(0, sign)), decoded(pair.byteslice(sign + 1, pair.bytesize) || +"")]
        end
      end

      # Percent-decodes, as in a path: a plus sign stays.
      def unescape(string) = decoded(string.b.gsub("+", "%2B"))

      # A segment of a path as text.
      def text(string)
        text = unescape(string)
        text if text.valid_encoding? && !text.include?("\0")
      end

      def broken?(string) = BROKEN.match?(string.b)

      # Takes a binary string that is nobody else's. CGI decodes in C, in time that grows with the length alone, whatever the string
      # holds, and leaves a broken escape as it is. It takes a plus sign for a space.
      def decoded(string)
        string = CGI.unescape(string, Encoding::BINARY) if string.include?("%")
        string.force_encoding(Encoding::UTF_8).freeze
      end

      private_class_method :decoded
    end
  end
end
