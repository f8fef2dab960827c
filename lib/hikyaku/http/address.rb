# frozen_string_literal: true

require_relative "../hub/url"
require_relative "errors"
require_relative "origin"

module Hikyaku
  module HTTP
    # An absolute http or https URL, as one asks for it: its origin, and the target that stands in the request line.
    #
    # URLs are read as browsers read them (WHATWG URL Standard), so that a page's links and a program's mean the same. Only what {Address.exact} makes
    # keeps its target as it was written.
    class Address
      MAX_BYTES = 16_000
      SHOWN = 100
      USER_INFORMATION = %r{[^/\\?#:@]*(?::[^/\\?#@]*)?@}
      TARGET = %r{\A/[\x21\x22\x24-\x7E]*\z}n
      private_constant :SHOWN, :USER_INFORMATION, :TARGET

      class << self
        # @param url [String, URI, Address]
        # @param base [Address, nil] what a relative reference is resolved against
        # @return [Address]
        # @raise [InvalidURL]
        def parse(url, base: nil)
          return url if url.is_a?(Address)
          text = url.to_s
          text = text.encode(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
          refuse(text, "is longer than #{MAX_BYTES} bytes") if text.bytesize > MAX_BYTES
          parsed = Hub::Url.parse(text, base: base&.parsed) or refuse(text, "is no URL")
          refuse(text, "is no http or https URL") unless parsed.plain_http? && !parsed.hostname.empty?
          new(parsed)
        rescue EncodingError
          refuse(url.to_s.b.inspect, "cannot be read as UTF-8")
        end

        # What a proxy is asked for: its target goes to the server byte for byte, as the browser wrote it.
        #
        # @param authority [String] of an http URL: host, and port
        # @param target [String] path and query
        # @return [Address]
        # @raise [InvalidURL]
        def exact(authority, target)
          url = "http://#{authority}#{target}"
          refuse(url, "has a path or query that is not visible ASCII") unless target.match?(TARGET)
          new(parse(url).parsed, target.dup.force_encoding(Encoding::UTF_8))
        end

        private

        def refuse(text, why) = raise(InvalidURL, "#{shown(text)} #{why}; one begins with http:// or https:// and a host")

        def shown(text) = text.scrub("?").gsub(USER_INFORMATION, "")[0, SHOWN].inspect
      end

      # @return [Origin]
      attr_reader :origin
      # @return [String] path and query, as a request line has them
      attr_reader :target
      # @return [String] without user information and without fragment
      attr_reader :url
      # @return [Hub::Url]
      # @api private
      attr_reader :parsed

      # @api private
      def initialize(parsed, target = nil)
        @parsed = parsed
        port = parsed.port.empty? ? Origin::PORTS.fetch(parsed.protocol) : parsed.port.to_i
        @origin = Origin.new(parsed.protocol, parsed.hostname, port)
        path = parsed.pathname.empty? ? "/" : parsed.pathname
        @target = -(target || (parsed.query ? "#{path}?#{parsed.query}" : path))
        @url = -"#{@origin}#{@target}"
        freeze
      end

      # @return [Array(String, String), nil] user and password as they stand in the URL, percent-encoded
      def user_information = (@parsed.username.empty? && @parsed.password.empty?) ? nil : [@parsed.username, @parsed.password]

      # @return [String] of the path's last segment, in lower case and without its dot; empty where it has none
      def extension = @parsed.pathname[/\.([A-Za-z0-9]{1,8})\z/, 1].to_s.downcase

      # @return [String]
      def to_s = @url

      # @return [String]
      def inspect = "#<#{self.class} #{@url}>"
    end
  end
end
