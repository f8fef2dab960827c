# frozen_string_literal: true

require "ipaddr"
require_relative "../address"
require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
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
