# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Config
    # What kind of value a setting takes: how it is read from text (a flag, a variable, a scalar of the file) or from a
    # Ruby value, what the reader of a message is told to give, and how it is written back.
    class Type
      # A value that does not fit; the message says what is expected.
      class Invalid < ArgumentError
        include Error
      end

      # String#strip would take zero bytes away too.
      MARGIN = /\A[ \t\r\n]+|[ \t\r\n]+\z/
      private_constant :MARGIN

      attr_reader :placeholder, :expected

      # @yieldraise [Invalid] for a reason of its own
      def initialize(placeholder, expected, write: nil, &cast)
        @placeholder = placeholder
        @expected = expected
        @write = write || :to_s.to_proc
        @cast = cast
        freeze
      end

      def cast(value)
        raise Invalid, "expected text in UTF-8" if value.is_a?(String) && !utf8(value).valid_encoding?
        value = utf8(value).gsub(MARGIN, "") if value.is_a?(String)
        result = @cast.call(value)
        raise Invalid, "expected #{expected}" if result.nil?
        result.freeze
      end

      def write(value) = @write.call(value)

      def switch? = placeholder.nil?

      private

      def utf8(text) = (text.encoding == Encoding::UTF_8) ? text : text.dup.force_encoding(Encoding::UTF_8)
    end

    # The kinds of values that settings take.
    module Types
      WORDS = {
        "true" => true, "yes" => true, "on" => true, "1" => true,
        "false" => false, "no" => false, "off" => false, "0" => false
      }.freeze
      UNITS = {"" => 1, "k" => 1024, "m" => 1024**2, "g" => 1024**3}.freeze
      SIGNATURES = %w[HS256 HS384 HS512 ES256 ES384 ES512 RS256 RS384 RS512 PS256 PS384 PS512 EdDSA Ed25519].freeze
      # What `Printout` writes in place of a secret: reading it back as the secret would be a trap.
      HIDDEN = "[hidden]"
      private_constant :WORDS, :UNITS

      module_function

      def switch
        Type.new(nil, "true or false") { |value| (value == true || value == false) ? value : WORDS[value.to_s.downcase] }
      end

      def choice(*values, placeholder: values.join("|"))
        Type.new(placeholder, "#{values[0..-2].join(", ")} or #{values.last}") do |value|
          values.find { |known| known.casecmp?(value.to_s) }
        end
      end

      def count(range = 1..1_000_000_000)
        Type.new("N", "a whole number #{within(range)}") do |value|
          number = value.is_a?(String) ? value[/\A\d{1,18}\z/]&.to_i : value
          number if number.is_a?(Integer) && range.cover?(number)
        end
      end

      def bytes(range)
        expected = "a number of bytes #{within(range) { |n| in_units(n) }} (K, M and G are understood)"
        Type.new("BYTES", expected, write: ->(n) { in_units(n) }) do |value|
          number = value.is_a?(String) ? parse_bytes(value) : value
          number if number.is_a?(Integer) && range.cover?(number)
        end
      end

      def seconds(range)
        Type.new("SECONDS", "a number of seconds #{within(range)}") do |value|
          number = value.is_a?(String) ? parse_seconds(value) : value
          number if (number.is_a?(Integer) || number.is_a?(Float)) && range.cover?(number)
        end
      end

      def text(placeholder, expected = "text without control characters", max_bytes: 4096, format: /\A[^\p{Cntrl}]+\z/)
        Type.new(placeholder, expected) do |value|
          value = value.to_s if value.is_a?(Symbol) || value.is_a?(Integer)
          value.dup if value.is_a?(String) && value.bytesize <= max_bytes && value.match?(format)
        end
      end

      def folder = text("DIR", "the path of a folder")

      def address
        Type.new("ADDRESS", "HOST:PORT, [IPV6]:PORT, :PORT, PORT or unix:PATH") do |value|
          Address.parse(value.to_s)&.to_s
        end
      end

      def url_path
        Type.new("PATH", "a path that starts with / and has no query, no empty and no dot segments, as /.well-known/mercure") do |value|
          value.dup if value.to_s.match?(%r{\A(?:/(?!\.{1,2}(?:/|\z))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+\z})
        end
      end

      # RFC 8707: an absolute URI without a fragment.
      def uri
        text("URL", "an absolute URL without a fragment", format: /\A[A-Za-z][A-Za-z0-9+.-]*:[[[:graph:]]&&[^#"<>\\^`{|}]]+\z/)
      end

      # The value of an Origin header (RFC 6454), or `*`.
      def origin
        expected = "an origin as https://example.com, without a path, or *"
        text("ORIGIN", expected, format: %r{\A(?:\*|[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)\z}i)
      end

      # What it is, is for whoever uses it to find out.
      def key
        Type.new("KEY", "a secret, a PEM text, a JWK Set, file:PATH or an https URL") do |value|
          raise Type::Invalid, "expected the key itself: #{HIDDEN} only stands for it" if value == HIDDEN
          value.dup if value.is_a?(String) && !value.empty? && value != "file:"
        end
      end

      def key_set
        Type.new("SOURCE", "file:PATH or an https URL (http only on this machine)") do |value|
          value.dup if value.to_s.match?(%r{\A(?:file:.+|https://[^\s/]+.*|http://(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/].*)?)\z})
        end
      end

      # RFC 6265: a token.
      def cookie_name
        text("NAME", "a cookie's name: letters, digits and !#$%&'*+-.^_`|~", max_bytes: 256, format: /\A[A-Za-z0-9!#$%&'*+.^_`|~-]+\z/)
      end

      def network
        Type.new("NETWORK", "an IP address or a network as 10.0.0.0/8") do |value|
          require "ipaddr"
          IPAddr.new(value.to_s) && value.to_s.dup
        rescue IPAddr::Error
          nil
        end
      end

      def slow_reader
        Type.new("POLICY=PATTERN", "gap=PATTERN or close=PATTERN", write: ->(pair) { pair.join("=") }) do |value|
          policy, pattern = value.is_a?(Array) ? value.map(&:to_s) : value.to_s.split("=", 2)
          [policy.dup.freeze, pattern.dup.freeze] if %w[gap close].include?(policy) && pattern.to_s.match?(/\A[[:graph:]]+\z/)
        end
      end

      def in_units(value)
        unit, factor = UNITS.to_a.reverse.find { |_, size| value >= size && (value % size).zero? } || ["", 1]
        "#{value / factor}#{unit.upcase}"
      end

      def parse_bytes(text)
        return unless text =~ /\A(\d{1,15})\s*([kmg]?)(?:i?b)?\z/i
        $1.to_i * UNITS.fetch($2.downcase)
      end

      def parse_seconds(text)
        return unless text.match?(/\A\d{1,9}(?:\.\d{1,6})?\z/)
        text.include?(".") ? text.to_f : text.to_i
      end

      def within(range)
        show = block_given? ? ->(n) { yield n } : :to_s.to_proc
        range.end ? "from #{show.call(range.begin)} to #{show.call(range.end)}" : "of at least #{show.call(range.begin)}"
      end
      private_class_method :parse_bytes, :parse_seconds, :within
    end

    # Where the hub listens: a host and a port, or the path of a Unix socket.
    class Address
      EVERYWHERE = %w[:: 0.0.0.0].freeze
      DEFAULT_HOST = "127.0.0.1"
      # Bytes that the kernel has for the path of a Unix socket, less the final zero.
      MAX_PATH_BYTES = 107
      private_constant :EVERYWHERE, :DEFAULT_HOST, :MAX_PATH_BYTES

      attr_reader :host, :port, :path

      def self.parse(text)
        case text
        when /\Aunix:(?:\/\/)?([^\0]+)\z/m then new(path: $1) if $1.bytesize <= MAX_PATH_BYTES
        when /\A(\d{1,5})\z/ then at(DEFAULT_HOST, $1)
        when /\A:(\d{1,5})\z/ then at("::", $1)
        when /\A\[(\h*:[\h:.]*)\]:(\d{1,5})\z/ then at($1.downcase, $2)
        when /\A([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?):(\d{1,5})\z/ then at($1.downcase, $2)
        end
      end

      def self.at(host, port)
        new(host: host, port: port.to_i) if port.to_i <= 65_535
      end
      private_class_method :at

      def initialize(host: nil, port: nil, path: nil)
        @host = host
        @port = port
        @path = path
        freeze
      end

      def unix? = !path.nil?

      def everywhere? = EVERYWHERE.include?(host)

      def loopback?
        unix? || host == "localhost" || host == "::1" || host.match?(/\A127(?:\.\d{1,3}){3}\z/)
      end

      def url(hub_path)
        return "http://localhost#{hub_path}" if unix?
        name = everywhere? ? "localhost" : bracketed
        "http://#{name}#{":#{port}" unless port == 80}#{hub_path}"
      end

      def with_port(port) = unix? ? self : self.class.new(host: host, port: port)

      def to_s = unix? ? "unix:#{path}" : "#{bracketed}:#{port}"

      private

      def bracketed = host.include?(":") ? "[#{host}]" : host
    end
  end
end
