# frozen_string_literal: true

require_relative "../error"
require_relative "../support/url"

module Hikyaku
  class Hub
    # The topic of an update, with its URL when resolved against the hub's, and whether it lies in the hub's reserved namespace.
    # Topics#[] caches them. Thread-safe.
    #
    # Mercure draft-08, sections "Terminology" and "Publication".
    class Topic
      # The general category Cf of Unicode 17, spelled out because each Ruby knows another version of Unicode.
      FORMAT = '\u00AD\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2064' \
        '\u2066-\u206F\uFEFF\uFFF9-\uFFFB\u{110BD}\u{110CD}\u{13430}-\u{1343F}\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}' \
        '\u{E0001}\u{E0020}-\u{E007F}'
      # C0, DEL, C1 and Cf.
      FORBIDDEN = /[\u0000-\u001F\u007F-\u009F#{FORMAT}]/
      FORBIDDEN_ASCII = /[\x00-\x1F\x7F]/
      # Characters of a refused topic that appear in an error message.
      EXCERPT = 60
      # Repeated slashes, except those before an authority.
      SLASHES = %r{(?<=[^:/])//+}
      private_constant :FORMAT, :FORBIDDEN, :FORBIDDEN_ASCII, :EXCERPT, :SLASHES

      class << self
        # Checks the characters and the length of a topic. "*" passes, because a matcher may be "*"; Update refuses it.
        def validate!(string, name: "topic", max_bytes: 4096)
          raise InvalidTopic, "#{name} must be a string, not #{string.class}" unless string.is_a?(String)
          raise LimitExceeded, "#{name} is #{string.bytesize} bytes long: the limit is #{max_bytes}" if string.bytesize > max_bytes
          text = utf8(string)
          raise InvalidTopic, "#{name} is not valid UTF-8" unless text
          return text unless (char = forbidden(text))
          raise InvalidTopic, "#{name} #{excerpt(text)} holds #{format("U+%04X", char.ord)}: control and format characters are not allowed"
        end

        # Whether a string is valid UTF-8 without control and format characters: the rule for topics, matchers, event
        # ids and event types.
        def valid_text?(string)
          text = utf8(string)
          !text.nil? && forbidden(text).nil?
        end

        private

        # String#inspect leaves some format characters as they are.
        def excerpt(text) = text[0, EXCERPT].inspect.gsub(FORBIDDEN) { |char| format("\\u{%X}", char.ord) }

        # Bytes from a socket are taken as UTF-8; other encodings are converted.
        def utf8(string)
          text = case string.encoding
          when Encoding::UTF_8 then string
          when Encoding::BINARY, Encoding::US_ASCII then string.dup.force_encoding(Encoding::UTF_8)
          else string.encode(Encoding::UTF_8)
          end
          text if text.valid_encoding?
        rescue EncodingError
          nil
        end

        def forbidden(text) = text[text.ascii_only? ? FORBIDDEN_ASCII : FORBIDDEN]
      end

      attr_reader :value

      def initialize(value, hub:, hub_path:)
        @value = value
        @hub = hub
        @hub_path = hub_path
        @url = @reserved = :unknown
      end

      def self.comparable_path(url) = URL.decode_unreserved(url.pathname).squeeze("/")

      def url
        @url = URL.parse(@value, base: @hub) if @url == :unknown
        @url
      end

      # Whether the topic names the hub's path or something below it, on whatever scheme and host: only the hub itself may
      # publish there.
      #
      # Mercure draft-08, sections "Publication" and "Reserved Hub Namespace".
      def reserved?
        @reserved = below_hub? if @reserved == :unknown
        @reserved
      end

      def ==(other) = other.is_a?(Topic) && @value == other.value
      alias_method :eql?, :==

      def hash = @value.hash

      def to_s = @value

      def inspect = "#<#{self.class} #{@value.inspect}>"

      private

      # Some servers merge slashes before they remove dot segments: then /a//../b is /b, and /a/b to a URL parser.
      def below_hub?
        below?(url) || (SLASHES.match?(@value) && below?(URL.parse(@value.gsub(SLASHES, "/"), base: @hub)))
      end

      def below?(url)
        return false unless url
        path = self.class.comparable_path(url)
        path.start_with?(@hub_path) && (path.bytesize == @hub_path.bytesize || path.getbyte(@hub_path.bytesize) == 47)
      end
    end
  end
end
