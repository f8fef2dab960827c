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
          def to(origin, proxy: ENVIRONMENT, unix_socket: nil)
            return new(origin, nil, unix_socket) if unix_socket
            new(origin, (proxy == ENVIRONMENT) ? Environment.proxy(origin) : proxy && Address.parse(proxy))
          end
        end

        attr_reader :origin
        attr_reader :unix_socket

        def initialize(origin, proxy, unix_socket = nil)
          raise InvalidURL, "the proxy #{proxy.url.inspect} is one of TLS, which is not supported: http://HOST:PORT is" if proxy&.origin&.tls?
          @origin = origin
          @proxy = proxy
          @unix_socket = unix_socket
          @credentials = proxy && Credentials.basic(proxy)
          freeze
        end

        def host = near.hostname

        def port = near.port

        def tunnel? = !@proxy.nil? && @origin.tls?

        def absolute_form? = !@proxy.nil? && !@origin.tls?

        attr_reader :credentials

        def key = (@proxy || @unix_socket) ? "#{@origin} by #{@unix_socket || @proxy.origin}" : @origin.to_s

        def to_s = key

        def inspect = "#<#{self.class} #{key}>"

        private

        def near = @proxy&.origin || @origin
      end
    end
  end
end
