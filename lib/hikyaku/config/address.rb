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

      # @return [String, nil] without brackets; nil for a Unix socket
      attr_reader :host
      # @return [Integer, nil] 0 for one that the system chooses; nil for a Unix socket
      attr_reader :port
      # @return [String, nil] of the Unix socket
      attr_reader :path

      # @param text [String] HOST:PORT, [IPV6]:PORT, :PORT (every address), PORT (127.0.0.1) or unix:PATH
      # @return [Address, nil] nil when it is none of these
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

      # @return [Boolean]
      def unix? = !path.nil?

      # @return [Boolean] every address of this machine
      def everywhere? = EVERYWHERE.include?(host)

      # @return [Boolean] only this machine can connect
      def loopback?
        unix? || host == "localhost" || host == "::1" || host.match?(/\A127(?:\.\d{1,3}){3}\z/)
      end

      # @return [String] under which a client on this machine finds the hub
      # @param hub_path [String]
      def url(hub_path)
        return "http://localhost#{hub_path}" if unix?
        name = everywhere? ? "localhost" : bracketed
        "http://#{name}#{":#{port}" unless port == 80}#{hub_path}"
      end

      # @param port [Integer]
      # @return [Address]
      def with_port(port) = unix? ? self : self.class.new(host: host, port: port)

      # @return [String] as `parse` reads it
      def to_s = unix? ? "unix:#{path}" : "#{bracketed}:#{port}"

      private

      def bracketed = host.include?(":") ? "[#{host}]" : host
    end
  end
end
