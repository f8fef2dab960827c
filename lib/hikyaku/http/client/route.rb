# frozen_string_literal: true

require "uri"
require_relative "../address"

module Hikyaku
  module HTTP
    class Client
      # How one gets to an origin: straight, or by a proxy.
      class Route
        ENVIRONMENT = :environment
        private_constant :ENVIRONMENT

        class << self
          # @param origin [Origin]
          # @param proxy [Symbol, String, nil] :environment (the variables http_proxy, https_proxy and no_proxy, as curl reads them), a URL, or nil for none
          # @return [Route]
          # @raise [InvalidURL]
          def to(origin, proxy: ENVIRONMENT)
            found = (proxy == ENVIRONMENT) ? of_environment(origin) : proxy
            new(origin, found && Address.parse(found))
          end

          private

          # What stands in the variables may be secret.
          def of_environment(origin)
            URI.parse(origin.to_s).find_proxy&.to_s
          rescue URI::Error
            raise InvalidURL, "whether there is a proxy for #{origin} cannot be told from its name and the variables http_proxy, https_proxy and no_proxy: give proxy:"
          end
        end

        # @return [Origin]
        attr_reader :origin

        # @param origin [Origin]
        # @param proxy [Address, nil]
        # @raise [InvalidURL]
        def initialize(origin, proxy)
          raise InvalidURL, "the proxy #{proxy.url.inspect} is one of TLS, which is not supported: http://HOST:PORT is" if proxy&.origin&.tls?
          @origin = origin
          @proxy = proxy
          @credentials = basic(proxy&.user_information)
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
        def key = @proxy ? "#{@origin} by #{@proxy.origin}" : @origin.to_s

        # @return [String] without credentials
        def to_s = key

        # @return [String]
        def inspect = "#<#{self.class} #{key}>"

        private

        def near = @proxy&.origin || @origin

        def basic(user_information)
          user, password = user_information
          user && -"Basic #{["#{decoded(user)}:#{decoded(password)}"].pack("m0")}"
        end

        def decoded(text)
          URI.decode_uri_component(text)
        rescue ArgumentError
          raise InvalidURL, "the user or password in the URL of the proxy #{@proxy.origin} is not percent-encoded as it should be"
        end
      end
    end
  end
end
