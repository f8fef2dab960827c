# frozen_string_literal: true

module Hikyaku
  module HTTP
    # An answer, whole: a value.
    class Response
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

      # @return [String] the body in the charset of its Content-Type, else UTF-8 where it is that, else binary
      def text
        named = self["content-type"].to_s[/charset="?([^\s";]+)/i, 1]
        encoding = named && Encoding.find(named)
        decoded(encoding || Encoding::UTF_8)
      rescue ArgumentError # a charset of which nobody has heard
        decoded(Encoding::UTF_8)
      end

      # @return [self] see {Failure#value}
      def value = self

      # @return [String] without the body
      def inspect = "#<#{self.class} #{@status} #{@url} #{@body.bytesize} bytes#{" #{@from}" unless @from == :network}>"

      private

      def decoded(encoding)
        text = @body.dup.force_encoding(encoding)
        text.valid_encoding? ? text : @body
      end
    end
  end
end
