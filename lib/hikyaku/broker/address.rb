# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module Broker
    # The default socket of broker and clients. Its path depends on the user alone, so that a service and a shell use the same one.
    DEFAULT_SOCKET = "/tmp/hikyaku-broker-#{Process.euid}.sock"

    # The address of a broker: the path of a Unix socket, or a host and a port.
    class Address
      # Bytes of `sun_path`, less the final zero.
      MAX_PATH_BYTES = 107
      private_constant :MAX_PATH_BYTES

      # @return [String, nil] of the Unix socket
      attr_reader :path
      # @return [String, nil] without brackets; nil for a Unix socket
      attr_reader :host
      # @return [Integer, nil] nil for a Unix socket
      attr_reader :port

      # @param text [String, Address] `unix:PATH`, a PATH with a slash, `tcp://HOST:PORT`, HOST:PORT or [IPV6]:PORT
      # @return [Address]
      # @raise [ConfigError] the text is not an address
      def self.parse(text)
        case text
        when Address then text
        when %r{\Aunix:(?://)?([^\0]+)\z}, %r{\A([^\0:]*/[^\0]*)\z} then at_path($1)
        when %r{\A(?:tcp://)?(?:\[(\h*:[\h:.]*)\]|([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)):(\d{1,5})/?\z} then at_host($1 || $2, $3.to_i)
        else raise ConfigError, "#{text.to_s[0, 60].inspect} is not the address of a broker: expected unix:PATH or tcp://HOST:PORT"
        end
      end

      # The address in the environment: HIKYAKU_BROKER_ADDRESS, or HIKYAKU_BROKER_SOCKET, which is also a setting of the broker, or the default
      # socket.
      #
      # @param env [#[]]
      # @return [Address]
      # @raise [ConfigError]
      def self.default(env = ENV)
        given = env["HIKYAKU_BROKER_ADDRESS"].to_s.strip
        return parse(given) unless given.empty?
        socket = env["HIKYAKU_BROKER_SOCKET"].to_s.strip
        new(path: (socket.empty? || socket == "none") ? DEFAULT_SOCKET : socket)
      end

      def self.at_path(path)
        return new(path: path) if path.bytesize <= MAX_PATH_BYTES
        raise ConfigError, "the path of a Unix socket has at most #{MAX_PATH_BYTES} bytes: #{path[0, 60].inspect}…"
      end

      def self.at_host(host, port)
        return new(host: host.downcase, port: port) if port.between?(1, 65_535)
        raise ConfigError, "a port is a number from 1 to 65535, not #{port}"
      end
      private_class_method :at_path, :at_host

      # @param path [String, nil]
      # @param host [String, nil]
      # @param port [Integer, nil]
      def initialize(path: nil, host: nil, port: nil)
        @path = path
        @host = host
        @port = port
        freeze
      end

      # @return [Boolean]
      def unix? = !path.nil?

      # @return [Boolean] it is the default socket, where only the broker of this user may listen
      def default? = path == DEFAULT_SOCKET

      # @return [String] as `parse` reads it
      def to_s
        return "unix:#{path}" if unix?
        "tcp://#{host.include?(":") ? "[#{host}]" : host}:#{port}"
      end

      # @return [String]
      def inspect = "#<#{self.class.name} #{self}>"

      # @param other [Object]
      # @return [Boolean]
      def ==(other) = other.is_a?(Address) && to_s == other.to_s
      alias_method :eql?, :==

      # @return [Integer]
      def hash = to_s.hash
    end
  end
end
