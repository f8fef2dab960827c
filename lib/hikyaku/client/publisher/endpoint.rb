# frozen_string_literal: true

require "uri"
require_relative "connection"
require_relative "../../error"

module Hikyaku
  class Publisher
    # Where a hub is: an http or https URL, or a Unix socket and a path. Opens connections to it.
    class Endpoint
      # Mercure draft-08, section "Hub Discovery".
      DEFAULT_PATH = "/.well-known/mercure"
      LOOPBACK = /\A(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|::1)\z/i
      private_constant :LOOPBACK

      # Everything that can go wrong between the first packet and the last byte of a response. Not Timeout::Error: that
      # is how a caller's own Timeout.timeout ends us, and is none of our business.
      NETWORK_ERRORS = [SystemCallError, IOError, SocketError, OpenSSL::SSL::SSLError, Net::OpenTimeout, Net::ReadTimeout,
        Net::WriteTimeout, Net::ProtocolError, Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError].freeze

      attr_reader :uri
      attr_reader :unix_path
      attr_reader :request_target

      def initialize(target, open_timeout:, read_timeout:, write_timeout:, ca_file: nil)
        @unix_path, url = split(target.to_s)
        @uri = parse(url)
        @request_target = @uri.request_uri
        @ca_file = ca_file
        @timeouts = {open_timeout: open_timeout, read_timeout: read_timeout, write_timeout: write_timeout}
        @proxy = @unix_path ? nil : @uri.find_proxy
      end

      def connection
        connection = Connection.new(@uri.hostname, @uri.port, *proxy)
        connection.unix_path = @unix_path
        @timeouts.each { |name, seconds| connection.public_send("#{name}=", seconds) }
        # Net::HTTP would repeat some requests by itself, and would reconnect in the middle of others.
        connection.max_retries = 0
        connection.keep_alive_timeout = 86_400
        return connection unless @uri.scheme == "https"
        connection.use_ssl = true
        connection.verify_mode = OpenSSL::SSL::VERIFY_PEER
        connection.ca_file = @ca_file if @ca_file
        connection
      end

      # The endpoint that a `Location` leads to.
      def redirected(location)
        uri = @uri.merge(location)
        inside = @unix_path && same_origin?(uri)
        other = dup
        other.move(uri, inside ? @unix_path : nil)
        other
      rescue URI::Error
        raise ConfigError, "#{self} redirects to something that is not a URL"
      end

      def same_origin?(other)
        return other.unix_path == @unix_path && same_origin?(other.uri) if other.is_a?(Endpoint)
        [other.scheme, other.hostname, other.port] == [@uri.scheme, @uri.hostname, @uri.port]
      end

      # Whether a token may be sent: encrypted, or never leaving this machine.
      #
      # Mercure draft-08, section "Presenting the Access Token".
      def confidential? = !@unix_path.nil? || @uri.scheme == "https" || LOOPBACK.match?(@uri.hostname)

      def confidential!
        return if confidential?
        raise ConfigError, "#{self} is not encrypted and would show the token to the network: use https, or say insecure: true"
      end

      # What tokens for this hub are made for, unless it was told another resource identifier.
      def audience = "#{@uri.scheme}://#{host}#{@uri.path}"

      def host = (@uri.port == @uri.default_port) ? @uri.host : "#{@uri.host}:#{@uri.port}"

      def to_s = @unix_path ? "unix:#{@unix_path}:#{@uri.path}" : audience

      def inspect = "#<#{self.class.name} #{self}>"

      protected

      def move(uri, unix_path)
        @uri = accepted(uri, uri.to_s)
        @unix_path = unix_path
        @request_target = uri.request_uri
        @proxy = unix_path ? nil : uri.find_proxy
      end

      private

      def split(target)
        return [nil, target] unless target.start_with?("unix:")
        socket, path = target.delete_prefix("unix:").delete_prefix("//").split(":/", 2)
        raise ConfigError, "unix: needs the path of a socket: unix:/run/hikyaku.sock" if socket.nil? || socket.empty?
        Socket.sockaddr_un(socket)
        [socket, "http://localhost#{path ? "/#{path}" : DEFAULT_PATH}"]
      rescue ArgumentError => error
        raise error if error.is_a?(Error)
        raise ConfigError, "the socket path #{socket} is too long for this system"
      end

      def parse(url)
        uri = accepted(URI.parse(url), url)
        uri.path = DEFAULT_PATH if uri.path.empty?
        uri.fragment = nil
        uri
      rescue URI::Error
        raise ConfigError, "the hub's URL cannot be read: give http(s)://HOST/PATH or unix:SOCKET"
      end

      # A message never repeats the URL: it may hold a password.
      def accepted(uri, url)
        unless uri.is_a?(URI::HTTP) && uri.hostname && !uri.hostname.empty?
          raise ConfigError, "the hub's URL must be http(s)://HOST/PATH or unix:SOCKET, not #{url[/\A[a-z][a-z0-9+.-]*:/i] || "a relative one"}"
        end
        raise ConfigError, "the hub's URL holds a password: give the token as token: instead" if uri.userinfo
        uri
      end

      # Net::HTTP knows only http_proxy, for https too: so it is told.
      def proxy
        return [nil] unless @proxy
        user, password = [@proxy.user, @proxy.password].map { |text| text && URI.decode_www_form_component(text) }
        [@proxy.hostname, @proxy.port, user, password]
      end
    end
  end
end
