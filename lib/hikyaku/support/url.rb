# frozen_string_literal: true

module Hikyaku
  # A parsed URL: the eight components that URL patterns look at, each in canonical form.
  #
  # WHATWG URL Standard, "URL parsing". Parsing is a pure function: any number of threads may parse.
  class URL
    # What may stand in the path, the query and the fragment of an http(s) URL and stays as it is.
    PATH = '[!$&\'()*+,\-./0-9:;=@A-Z\[\]_a-z|~]*'
    QUERY = '[!$%&()*+,\-./0-9:;=?@A-Z\[\\\\\]^_`a-z{|}~]*'
    FRAGMENT = '[!#$%&\'()*+,\-./0-9:;=?@A-Z\[\\\\\]^_a-z{|}~]*'
    LABEL = "[a-z0-9](?:[a-z0-9]|-(?!-))*"
    # The last label starts with a letter, so the host is no IPv4 address; no label has two hyphens in a row,
    # so none is Punycode.
    CANONICAL = %r{\A(https?)://((?:#{LABEL}\.)*[a-z](?:[a-z0-9]|-(?!-))*)(?::([1-9][0-9]{0,4}))?(/#{PATH})?(?:\?(#{QUERY}))?(?:\#(#{FRAGMENT}))?\z}
    CANONICAL_PATH = %r{\A(?!//)(/#{PATH})(?:\?(#{QUERY}))?(?:\#(#{FRAGMENT}))?\z}
    CANONICAL_TARGET = %r{\A/#{PATH}(?:\?#{QUERY})?\z}
    # Without a colon in its first segment, so that nothing of it is a scheme.
    CANONICAL_RELATIVE = %r{\A([!$&'()*+,\-.0-9;=@A-Z\[\]_a-z|~]+(?:/#{PATH})?)(?:\?(#{QUERY}))?(?:\#(#{FRAGMENT}))?\z}
    DOT_SEGMENT = %r{/\.\.?(?:[/?]|\z)} # before a query, too
    # Special schemes and their ports.
    PORTS = {"ftp" => "21", "file" => nil, "http" => "80", "https" => "443", "ws" => "80", "wss" => "443"}.freeze
    private_constant :PATH, :QUERY, :FRAGMENT, :LABEL, :CANONICAL, :CANONICAL_PATH, :CANONICAL_TARGET, :CANONICAL_RELATIVE, :DOT_SEGMENT

    class << self
      # Parses a URL reference.
      def parse(string, base: nil)
        base = parse(base) or return if base.is_a?(String)
        return unless string.valid_encoding?
        fast(string, base) || Parser.new(string, base).parse
      end

      # Decodes what need not be percent-encoded, once (RFC 3986, section 6.2.2.2).
      def decode_unreserved(path) = Percent.decode_unreserved(path)

      # The same as parse without the short way for canonical URLs, for tests that compare the two.
      def parse_slowly(string, base: nil)
        base = parse_slowly(base) or return if base.is_a?(String)
        return unless string.valid_encoding?
        Parser.new(string, base).parse
      end

      # Whether a path, with a query or without, stands in an http(s) URL as it is, to the letter.
      def canonical_target?(text) = CANONICAL_TARGET.match?(text) && !dots?(text)

      private

      # Most topics are canonical already: nothing to decode, encode, resolve or look up.
      def fast(string, base)
        if string.start_with?("/")
          fast_reference(CANONICAL_PATH.match(string), "", base) if base&.plain_http?
        elsif (match = CANONICAL.match(string))
          protocol, hostname, port, pathname, search, hash = match.captures
          return if pathname && dots?(pathname)
          return if port && !explicit_port?(protocol, port)
          new(protocol: protocol, hostname: hostname, port: port || "", pathname: pathname || "/", search: search, hash: hash)
        elsif base&.plain_http?
          fast_reference(CANONICAL_RELATIVE.match(string), base.directory, base)
        end
      end

      def fast_reference(match, directory, base)
        return unless match
        path, search, hash = match.captures
        pathname = "#{directory}#{path}"
        return if dots?(pathname)
        new(protocol: base.protocol, username: base.username, password: base.password, hostname: base.hostname,
          port: base.port, pathname: pathname, search: search, hash: hash)
      end

      def dots?(pathname) = pathname.include?("/.") && DOT_SEGMENT.match?(pathname)

      def explicit_port?(protocol, port)
        port != ((protocol == "http") ? "80" : "443") && (port.size < 5 || port.to_i <= 65_535)
      end
    end

    attr_reader :protocol
    attr_reader :username
    attr_reader :password
    attr_reader :hostname
    attr_reader :port
    attr_reader :pathname
    attr_reader :search
    attr_reader :query
    attr_reader :hash

    def initialize(protocol:, pathname:, username: "", password: "", hostname: "", port: "", search: nil, hash: nil, opaque: false, host: true)
      @protocol = -protocol
      @username = username.freeze
      @password = password.freeze
      @hostname = -hostname
      @port = -port
      @pathname = pathname.freeze
      @query = search&.freeze
      @search = @query || ""
      @hash = (hash || "").freeze
      @opaque = opaque
      @host = host
      @origin = @port.empty? ? "#{@protocol}://#{@hostname}".freeze : "#{@protocol}://#{@hostname}:#{@port}".freeze
      freeze
    end

    attr_reader :origin

    def opaque_path? = @opaque

    def host? = @host

    def plain_http? = @protocol == "https" || @protocol == "http"

    def directory = @pathname[0..@pathname.rindex("/")]

    def ==(other)
      other.is_a?(URL) && components == other.components && @opaque == other.opaque_path?
    end

    def components = [@protocol, @username, @password, @hostname, @port, @pathname, @search, @hash]

    def inspect = "#<#{self.class} #{@protocol}:#{"//#{@hostname}" if @host}#{":#{@port}" unless @port.empty?}#{@pathname}>"
  end
end

require_relative "url/parser"
