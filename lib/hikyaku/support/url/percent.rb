# frozen_string_literal: true

module Hikyaku
  class URL
    # Percent-encoding as the URL Standard has it.
    #
    # WHATWG URL Standard, "Percent-encoded bytes". A "%" is never encoded, and invalid sequences stay as they are.
    module Percent
      # What must be encoded in each place, beside whatever is above U+007E.
      SETS = {
        control: /[^ -~]/,
        fragment: /[^!\#$%&'()*+,\-.\/0-9:;=?@A-Z\[\\\]^_a-z{|}~]/,
        query: /[^!$%&'()*+,\-.\/0-9:;=?@A-Z\[\\\]^_`a-z{|}~]/,
        special_query: /[^!$%&()*+,\-.\/0-9:;=?@A-Z\[\\\]^_`a-z{|}~]/,
        path: /[^!$%&'()*+,\-.\/0-9:;=@A-Z\[\\\]_a-z|~]/,
        userinfo: /[^!$%&'()*+,\-.0-9A-Z_a-z~]/
      }.freeze
      UNRESERVED = /%(?:2[dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF]|7[eE])/
      private_constant :SETS, :UNRESERVED

      class << self
        def encode(string, set)
          string.gsub(SETS.fetch(set)) { |char| char.bytes.map { |byte| format("%%%02X", byte) }.join }
        end

        def decode(string)
          return string unless string.include?("%")
          bytes = string.b.gsub(/%\h\h/) { |code| code[1, 2].hex.chr }
          bytes.force_encoding(Encoding::UTF_8).valid_encoding? ? bytes : nil
        end

        # Decodes, once, what need not have been encoded (RFC 3986, section 6.2.2.2).
        def decode_unreserved(string)
          return string unless string.include?("%")
          string.gsub(UNRESERVED) { |code| code[1, 2].hex.chr }
        end
      end
    end
  end
end
