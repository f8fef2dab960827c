# frozen_string_literal: true

require_relative "../address"
require_relative "credentials"
require_relative "environment"

module Hikyaku
  module HTTP
    class Client
      # How one gets to an origin: straight, by a proxy, or by a Unix socket.
      class Route
        ENVIRONMENT = :environment
        private_constant :ENVIRONMENT

        class << self
          # @param origin [Origin]
          # @param proxy [Symbol, String, nil] :environment (see {Environment}), a URL, or nil for none
          # @param unix_socket [String, nil] the path of a socket; then there is no proxy
          # @return [Route]
          # @raise [InvalidURL]
          def to(origin, proxy: ENVIRONMENT, unix_socket: nil)
            return new(origin, nil, unix_socket) if unix_socket
            new(origin, (proxy == ENVIRONMENT) ? Environment.proxy(origin) : proxy && Address.parse(proxy))
          end
        end

        # @return [Origin]
        attr_reader :origin
        # @return [String, nil] the path of a socket
        attr_reader :unix_socket

        # @param origin [Origin]
        # @param proxy [Address, nil]
        # @param unix_socket [String, nil]
        # @raise [InvalidURL]
        def initialize(origin, proxy, unix_socket = nil)
          raise InvalidURL, "the proxy #{proxy.url.inspect} is one of TLS, which is not supported: http://HOST:PORT is" if proxy&.origin&.tls?
          @origin = origin
          @proxy = proxy
          @unix_socket = unix_socket
          @credentials = proxy && Credentials.basic(proxy)
          freeze
        end

        # @return [String] where to connect to
        def host = near.hostname

        # @return [Integer]
        def port = near.port

        # @return [Boolean] whether a tunnel through the proxy is needed
        def tunnel? = !@proxy.nil? && @origin.tls?

        # @return [Boolean] whether the proxy is asked, with the whole URL in the request line (RFC 9112, section 3.2.2)
        def absolute_form? = !@proxy.nil? && !@origin.tls?

        # @return [String, nil] the value of Proxy-Authorization
        attr_reader :credentials

        # @return [String] for the memory: who is asked, and by which way
        def key = (@proxy || @unix_socket) ? "#{@origin} by #{@unix_socket || @proxy.origin}" : @origin.to_s

        # @return [String] without credentials
        def to_s = key

        # @return [String]
        def inspect = "#<#{self.class} #{key}>"

        private

        def near = @proxy&.origin || @origin
      end
    end
  end
end
