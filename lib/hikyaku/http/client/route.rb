# frozen_string_literal: true

require "ipaddr"
require_relative "../address"
require_relative "../errors"

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

      # What stands before the @ in a URL, as a field says it.
      module Credentials
        ESCAPE = /%(\h\h)/
        STRAY = /%(?!\h\h)/
        private_constant :ESCAPE, :STRAY

        module_function

        # RFC 7617.
        def basic(address)
          user, password = address.user_information
          user && -"Basic #{["#{decoded(user, address)}:#{decoded(password, address)}"].pack("m0")}"
        end

        def decoded(text, address)
          return text.b.gsub(ESCAPE) { [$1].pack("H2") } unless text.match?(STRAY)
          raise InvalidURL, "the user or password in the URL of #{address.origin} is not percent-encoded as it should be"
        end
        private_class_method :decoded
      end

      # The proxy that the variables of the environment name, as curl reads them. No name is looked up for it: who asks holds a lock, and where only the
      # proxy reaches the world no name can be.
      #
      # - http_proxy, in lower case alone: in a CGI program HTTP_PROXY is what a request said in its field Proxy. For https: https_proxy or HTTPS_PROXY.
      #   Where there is none of these, all_proxy or ALL_PROXY.
      # - no_proxy or NO_PROXY, by commas or spaces: "*" is everything; "example.test", and ".example.test" as well, is that name and all below it;
      #   "192.0.2.1", "192.0.2.0/24", "2001:db8::/32" are addresses, as a URL says them. With ":8080" behind it, it is that port alone.
      #
      # The loopback is no exception of itself.
      module Environment
        VARIABLES = {"http" => %w[http_proxy all_proxy ALL_PROXY], "https" => %w[https_proxy HTTPS_PROXY all_proxy ALL_PROXY]}.freeze
        EXCEPTIONS = %w[no_proxy NO_PROXY].freeze
        BRACKETED = /\A\[(?<host>[^\]]*)\](?::(?<port>\d+))?\z/
        NAMED = /\A(?<host>[^:]*)(?::(?<port>\d+))?\z/
        private_constant :VARIABLES, :EXCEPTIONS, :BRACKETED, :NAMED

        module_function

        def proxy(origin, env = ENV)
          name, text = said(env, VARIABLES.fetch(origin.scheme))
          return if name.nil? || excepted?(origin, said(env, EXCEPTIONS).last)
          address(name, text)
        end

        # A variable that is empty is none.
        def said(env, names)
          name = names.find { |each| !env[each].to_s.empty? }
          [name, name && env[name].dup.force_encoding(Encoding::UTF_8).scrub("?").strip]
        end
        private_class_method :said

        def address(name, text)
          Address.parse(text.include?("://") ? text : "http://#{text}")
        rescue InvalidURL
          raise InvalidURL, "the variable #{name} names no proxy: it has to be http://HOST:PORT, or give proxy:"
        end
        private_class_method :address

        def excepted?(origin, text)
          return false if text.nil?
          entries = text.downcase.split(/[\s,]+/)
          return true if entries == ["*"]
          here = numeric(origin.hostname)
          entries.any? { |entry| covers?(entry, origin, here) }
        end
        private_class_method :excepted?

        def covers?(entry, origin, here)
          match = BRACKETED.match(entry) || NAMED.match(entry)
          host = match ? match[:host] : entry # an address of IPv6 without brackets
          return false if match && match[:port] && match[:port].to_i != origin.port
          here ? !!numeric(host)&.include?(here) : below?(host.delete_prefix(".").delete_suffix("."), origin.host.delete_suffix("."))
        end
        private_class_method :covers?

        def below?(domain, host) = !domain.empty? && (host == domain || host.end_with?(".#{domain}"))
        private_class_method :below?

        def numeric(text)
          IPAddr.new(text)
        rescue IPAddr::Error
          nil
        end
        private_class_method :numeric
      end
    end
  end
end
