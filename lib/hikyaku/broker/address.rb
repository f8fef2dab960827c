# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module Broker
    # Where the broker listens, and clients look for it, unless somebody says otherwise: it depends on nothing but the user,
    # so that a service and a shell come to the same place.
    DEFAULT_SOCKET = "/tmp/hikyaku-broker-#{Process.euid}.sock"

    # Where a broker is: the path of a Unix socket, or a host and a port.
    class Address
      # Bytes that the kernel has for the path of a Unix socket, less the final zero.
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
      # @raise [ConfigError] it is none of these
      def self.parse(text)
        case text
        when Address then text
        when %r{\Aunix:(?://)?([^\0]+)\z}, %r{\A([^\0:]*/[^\0]*)\z} then at_path($1)
        when %r{\A(?:tcp://)?(?:\[(\h*:[\h:.]*)\]|([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)):(\d{1,5})/?\z} then at_host($1 || $2, $3.to_i)
        else raise ConfigError, "#{text.to_s[0, 60].inspect} is no address of a broker: expected unix:PATH or tcp://HOST:PORT"
        end
      end

      # What the environment says: HIKYAKU_BROKER_ADDRESS, else the socket that a broker would be given
      # (HIKYAKU_BROKER_SOCKET), else the usual one.
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
        raise ConfigError, "there is no port #{port}"
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

      # @return [Boolean] it is the socket at which nobody but this user's broker should be
      def usual? = path == DEFAULT_SOCKET

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
