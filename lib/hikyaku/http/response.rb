# frozen_string_literal: true

require_relative "../codec"
require_relative "errors"

module Hikyaku
  module HTTP
    # An answer, whole: a value.
    class Response
      BYTE_ORDER_MARK = "\xEF\xBB\xBF".b.freeze
      CLIENT_ERROR = 400 # and above
      TYPES = {json: %r{\A(?:application|text)/(?:[\w.-]+\+)?json\z}, msgpack: %r{\Aapplication/(?:[\w.-]+\+|vnd\.|x-)?(?:msgpack|mpac)\z}}.freeze
      # What servers call charsets, and Ruby does not (Encoding Standard, section 4.2).
      LABELS = {"latin1" => "ISO-8859-1", "iso_8859-1" => "ISO-8859-1", "x-sjis" => "Windows-31J", "shift-jis" => "Windows-31J"}.freeze
      private_constant :BYTE_ORDER_MARK, :CLIENT_ERROR, :TYPES, :LABELS

      # @return [Integer] 200 to 999
      attr_reader :status
      # @return [Array<Array(String, String)>] names in lower case, and values, in order
      attr_reader :headers
      # @return [String] binary and frozen, its content codings undone; where Content-Encoding is among the headers they are not, see {Client#initialize}
      attr_reader :body
      # @return [String] what was asked for at last: after redirects another than at first
      attr_reader :url
      # @return [Float] seconds from the first byte of the request to the last of the answer
      attr_reader :seconds
      # @return [String] of HTTP, in which it came: "1.1" or "1.0"; "1.1" from the cache
      attr_reader :http_version

      # @api private
      def initialize(status:, headers:, body:, url:, seconds: 0.0, from: :network, http_version: "1.1")
        @status = status
        @headers = headers
        @body = body
        @url = url
        @seconds = seconds
        @from = from
        @http_version = http_version
        freeze
      end

      # @param name [String] of a field, in any case
      # @return [String, nil] its values, joined by commas
      def [](name)
        found = values(name)
        found.join(", ") unless found.empty?
      end

      # @param name [String] of a field, in any case
      # @return [Array<String>]
      def values(name)
        lower = name.downcase
        @headers.filter_map { |each, value| value if each == lower }
      end

      # @return [Boolean] whether the status is 200 to 299
      def ok? = @status.between?(200, 299)

      # @return [Boolean] whether it came from the cache, and nobody was asked
      def cached? = @from == :cache

      # @return [Boolean] whether the body came from the cache, and the server said that it is still right
      def revalidated? = @from == :validated

      # @return [nil] as there is none: see {Failure#error}
      def error = nil

      # @return [String] the body in the charset of its Content-Type, else UTF-8 where it is that, else binary. What Ruby cannot work with as it is, UTF-16 that
      #   says its byte order and ISO-2022-JP, is made UTF-8
      def text
        named = self["content-type"].to_s[/charset=["']?([^\s"';]+)/i, 1]
        encoding = named && Encoding.find(LABELS.fetch(named.downcase, named))
        decoded(encoding || Encoding::UTF_8)
      rescue ArgumentError # a charset of which nobody has heard
        decoded(Encoding::UTF_8)
      end

      # The body, read as JSON whatever its Content-Type says, as browsers do. A key that stands twice in an object is an error, as all else that two readers
      # could understand differently. RFC 8259.
      #
      # @param limits [Hash{Symbol => Integer}] max_depth: and max_items:, see {Codec::Format#load}
      # @return [Object] of nil, true, false, numbers, text, arrays, and hashes with text for keys
      # @raise [BadResponse] it is none; the message has nothing of the body
      def json(**limits) = loaded(Codec[:json], **limits)

      # The body, read as its Content-Type says: JSON or MessagePack.
      #
      # @param limits [Hash{Symbol => Integer}] see {#json}
      # @return [Object] see {Codec::Format#load}
      # @raise [BadResponse] it is neither, or not what it is said to be
      # @raise [Codec::Unavailable] it is MessagePack, and the gem msgpack is not there
      def object(**limits)
        format = TYPES.keys.find { |name| said?(name) } or raise unreadable("is neither JSON nor MessagePack, by its type")
        loaded(Codec[format], **limits)
      end

      # @return [self]
      # @raise [BadStatus] the status is 400 or above
      def raise_for_status
        bad? ? raise(BadStatus, self) : self
      end

      # @return [Boolean] whether the status is 400 or above
      # @api private
      def bad? = @status >= CLIENT_ERROR

      # @return [self] see {Failure#value}
      def value = self

      # @return [String] without the body
      def inspect = "#<#{self.class} #{@status} #{@url} #{@body.bytesize} bytes#{" #{@from}" unless @from == :network}>"

      private

      def said?(name) = self["content-type"].to_s[/\A[^;,\s]*/].downcase.match?(TYPES.fetch(name))

      # RFC 8259, section 8.1: a byte order mark may be passed over.
      def loaded(format, **limits)
        format.load(@body.delete_prefix(BYTE_ORDER_MARK), max_bytes: @body.bytesize, **limits)
      rescue Codec::Malformed => error
        advice = "; it says that it is MessagePack, which Response#object reads" if format.name == :json && said?(:msgpack)
        raise unreadable("cannot be read as #{@body.empty? ? "#{error.message[/\A\w+/]}: it is empty" : error.message}#{advice}")
      end

      def unreadable(why) = BadResponse.new("the body of the answer to #{@url} (#{@status}, #{self["content-type"]&.inspect || "no Content-Type"}) #{why}", url: @url)

      def decoded(encoding)
        text = @body.dup.force_encoding(encoding)
        text = text.encode(Encoding::UTF_8) if encoding.dummy?
        text.valid_encoding? ? text : @body
      rescue EncodingError
        @body
      end
    end
  end
end
