# frozen_string_literal: true

# Only the part of the gem that reads hosts. The whole of it replaces URI::DEFAULT_PARSER and prepends a module to
# URI::Generic, for the process and for good; its parser also keeps its state in the object, so that threads could
# not share it.
require "set"
require "uri"
require "uri/whatwg_parser/error"
require "uri/whatwg_parser/host_parser"
require_relative "percent"

module Hikyaku
  class URL
    # Brings hosts into canonical form: domains in lower case and in ASCII, IPv4 and IPv6 addresses shortened.
    #
    # WHATWG URL Standard, "Host parsing".
    module Host
      FORBIDDEN = /[\0\t\n\r \#\/:<>?@\[\\\]^|]/
      FORBIDDEN_IN_DOMAIN = /[\x00-\x20\#%\/:<>?@\[\\\]^|\x7f]/
      PUNYCODE = /(?:\A|\.)xn--/
      NUMBER = /\A(?:[0-9]+|0[xX]\h*)\z/
      # What DNS allows, which the standard does not ask for. IDNA takes time in proportion to the square of these: without a bound a single
      # host of 4,096 bytes takes half a second.
      MAX_DOMAIN = 253
      MAX_LABEL = 63
      private_constant :MAX_DOMAIN, :MAX_LABEL
      private_constant :FORBIDDEN, :FORBIDDEN_IN_DOMAIN, :PUNYCODE, :NUMBER

      class << self
        def parse(string, special)
          return ipv6(string) if string.start_with?("[")
          return FORBIDDEN.match?(string) ? nil : Percent.encode(string, :control) unless special
          domain = Percent.decode(string) or return
          domain = ascii(domain) or return
          return if domain.empty? || FORBIDDEN_IN_DOMAIN.match?(domain)
          ends_in_number?(domain) ? ipv4(domain) : domain
        end

        def ipv6(string)
          return unless string.ascii_only? && string.size > 2 && string.end_with?("]")
          URI::WhatwgParser::HostParser.new.parse(string)
        rescue URI::WhatwgParser::ParseError
          nil
        end

        private

        # The gem takes an ASCII domain that IDNA refuses as it is; the standard only does so where no label starts
        # with xn--. Its own percent-decoding fails where encoded and plain non-ASCII characters meet.
        def ascii(domain)
          return domain.downcase if domain.ascii_only? && !PUNYCODE.match?(domain.downcase)
          return if domain.size > MAX_DOMAIN || domain.split(/[.\u3002\uFF0E\uFF61]/).any? { |label| label.size > MAX_LABEL }
          ascii = URI::IDNA.whatwg_to_ascii(domain, be_strict: false)
          # The gem's Punycode decoder passes over characters that are none of it, and so reads another host.
          ascii if !domain.ascii_only? || ascii == domain.downcase
        rescue URI::IDNA::Error, EncodingError, ArgumentError, RangeError
          nil
        end

        def ends_in_number?(domain) = NUMBER.match?(domain.split(".", -1).then { |parts| (parts.last.empty? ? parts[-2] : parts.last).to_s })

        # By hand: the gem reads numbers with Integer(), which takes underscores, signs and prefixes of its own.
        def ipv4(domain)
          parts = domain.delete_suffix(".").split(".", -1)
          return if parts.size > 4
          numbers = parts.map { |part| number(part) }
          return unless numbers.all?
          return if numbers[0..-2].any? { |number| number > 255 }
          return if numbers.last >= 256**(5 - numbers.size)
          address = numbers.pop + numbers.each_with_index.sum { |number, index| number * 256**(3 - index) }
          [24, 16, 8, 0].map { |shift| (address >> shift) & 255 }.join(".")
        end

        def number(part)
          case part
          when /\A0[xX](\h*)\z/ then $1.hex
          when /\A0([0-7]*)\z/ then $1.oct
          when /\A[1-9][0-9]*\z/ then part.to_i
          end
        end
      end
    end
  end
end
