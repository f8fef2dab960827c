# frozen_string_literal: true

module Hikyaku
  class Config
    # Where the hub listens: a host and a port, or the path of a Unix socket.
    class Address
      EVERYWHERE = %w[:: 0.0.0.0].freeze
      DEFAULT_HOST = "127.0.0.1"
      # Bytes that the kernel has for the path of a Unix socket, less the final zero.
      MAX_PATH_BYTES = 107
      private_constant :EVERYWHERE, :DEFAULT_HOST, :MAX_PATH_BYTES

      attr_reader :host
      attr_reader :port
      attr_reader :path

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
