# frozen_string_literal: true

require_relative "../support/url"
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
      MOST_KNOWN = 256 # origins
      USER_INFORMATION = %r{[^/\\?#:@]*(?::[^/\\?#@]*)?@}
      TARGET = %r{\A/[\x21\x22\x24-\x7E]*\z}n
      EXTENSION = /\.([A-Za-z0-9]{1,8})\z/
      EXTENSION_OF_TARGET = /\A[^?]*\.([A-Za-z0-9]{1,8})(?=\?|\z)/
      LEAST_ORIGIN = "http://a".bytesize
      private_constant :SHOWN, :MOST_KNOWN, :USER_INFORMATION, :TARGET, :EXTENSION, :EXTENSION_OF_TARGET, :LEAST_ORIGIN

      @known = {}

      class << self
        # @param url [String, URI, Address]
        # @param base [Address, nil] what a relative reference is resolved against
        # @return [Address]
        # @raise [InvalidURL]
        def parse(url, base: nil)
          return url if url.is_a?(Address)
          text = url.to_s
          again = known(text)
          return again if again
          text = text.encode(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
          refuse(text, "is longer than #{MAX_BYTES} bytes") if text.bytesize > MAX_BYTES
          parsed = URL.parse(text, base: base&.parsed) or refuse(text, "is no URL")
          refuse(text, "is no http or https URL") unless parsed.plain_http? && !parsed.hostname.empty?
          new(parsed).tap { |address| know(address.origin) }
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
          target = target.dup.force_encoding(Encoding::UTF_8).freeze
          origin = @known["http://#{authority}"] if url.bytesize <= MAX_BYTES
          origin ? new(nil, target, origin) : new(parse(url).parsed, target)
        end

        private

        # Most URLs are as they should be, and of an origin that was read before: nothing of them changes.
        def known(text)
          return unless text.encoding == Encoding::UTF_8 && text.ascii_only? && text.bytesize <= MAX_BYTES
          slash = text.index("/", LEAST_ORIGIN) or return
          origin = @known[text[0, slash]] or return
          target = text[slash..].freeze
          new(nil, target, origin, text.dup.freeze) if URL.canonical_target?(target)
        end

        # A thread that looks meanwhile sees what was there before.
        def know(origin)
          @known = ((@known.size < MOST_KNOWN) ? @known : {}).merge(origin.to_s => origin) unless @known.key?(origin.to_s)
        end

        def refuse(text, why) = raise(InvalidURL, "#{shown(text)} #{why}; one begins with http:// or https:// and a host")

        def shown(text) = text.scrub("?").gsub(USER_INFORMATION, "")[0, SHOWN].inspect
      end

      # @return [Origin]
      attr_reader :origin
      # @return [String] path and query, as a request line has them
      attr_reader :target
      # @return [String] without user information and without fragment
      attr_reader :url
      # @return [String] of the path's last segment, in lower case and without its dot; empty where it has none
      attr_reader :extension

      # @api private
      def initialize(parsed, target = nil, origin = nil, url = nil)
        @parsed = parsed
        @origin = origin || origin_of(parsed)
        @target = target || target_of(parsed).freeze
        @url = url || "#{@origin}#{@target}".freeze
        @extension = (parsed ? parsed.pathname[EXTENSION, 1] : @target[EXTENSION_OF_TARGET, 1]).to_s.downcase.freeze
        freeze
      end

      # @return [URL]
      # @api private
      def parsed = @parsed || URL.parse(@url)

      # @return [Array(String, String), nil] user and password as they stand in the URL, percent-encoded
      def user_information
        return if @parsed.nil? || (@parsed.username.empty? && @parsed.password.empty?)
        [@parsed.username, @parsed.password]
      end

      # @param query [String] as it stands in a URL
      # @return [Address] with it behind the query that there is
      # @raise [InvalidURL]
      # @api private
      def with_query(query)
        return self if query.empty?
        own = @target[/\?(.*)\z/m, 1].to_s.delete_suffix("&")
        own << "&" unless own.empty?
        Address.parse("?#{own}#{query}", base: self).tap { |address| raise InvalidURL, "#{address.origin} with its query is longer than #{MAX_BYTES} bytes" if address.url.bytesize > MAX_BYTES }
      end

      # @return [String]
      def to_s = @url

      # @return [String]
      def inspect = "#<#{self.class} #{@url}>"

      private

      def origin_of(parsed)
        Origin.new(parsed.protocol, parsed.hostname, parsed.port.empty? ? Origin::PORTS.fetch(parsed.protocol) : parsed.port.to_i)
      end

      def target_of(parsed)
        path = parsed.pathname.empty? ? "/" : parsed.pathname
        parsed.query ? "#{path}?#{parsed.query}" : path
      end
    end
  end
end
