# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        class Policy
          # One of the sources of a directive: a value.
          #
          #     '*'   'self'   https:   [scheme://]host[:port][/path]   'nonce-…'
          #
          # All others match no URL here. Nor does an address but 127.0.0.1 (section 6.7.2.8). Paths are compared as they are written, not decoded.
          class Source
            SCHEME = /\A([a-z][a-z0-9+\-.]*):\z/n
            HOST = %r{\A(?:([a-z][a-z0-9+\-.]*)://)?(\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::([0-9]{1,5}|\*))?(/[^?\#]*)?\z}in
            ADDRESS = /\A(?:[0-9]+|.*\.[0-9]+)\z/n
            NONCE = /\A'nonce-([A-Za-z0-9+\/_-]+={0,2})'\z/in
            LOCAL = "127.0.0.1"
            PORTS = {"http" => "80", "https" => "443"}.freeze
            # What a scheme stands for, beside itself: section 6.7.2.7.
            STRONGER = {"http" => "https"}.freeze
            private_constant :SCHEME, :HOST, :ADDRESS, :NONCE, :LOCAL, :PORTS, :STRONGER

            def initialize(text)
              @text = text.downcase
              @nonce = text[NONCE, 1]
              @scheme, @host, @port, @path = HOST.match(text)&.captures
              @scheme, @host = @scheme&.downcase, @host&.downcase
              @only_scheme = @text[SCHEME, 1]
              freeze
            end

            def nonce?(nonce) = !@nonce.nil? && @nonce == nonce.b

            def strict_dynamic? = @text == "'strict-dynamic'"

            def matches?(url, page)
              case @text
              when "*" then true
              when "'self'" then url.origin == page.origin
              else @only_scheme ? scheme?(@only_scheme, url) : (!@host.nil? && host_source?(url, page))
              end
            end

            private

            def host_source?(url, page) = scheme?(@scheme || page.protocol, url) && host?(url.hostname) && port?(url) && path?(url.pathname)

            def scheme?(scheme, url) = [scheme, STRONGER[scheme]].include?(url.protocol)

            def host?(host)
              return true if @host == "*"
              return host.end_with?(@host.delete_prefix("*")) if @host.start_with?("*")
              @host == host && (!ADDRESS.match?(host) || host == LOCAL)
            end

            def port?(url)
              return true if @port == "*"
              number = url.port.empty? ? PORTS.fetch(url.protocol) : url.port
              number == (@port ? @port.to_i.to_s : PORTS.fetch(url.protocol))
            end

            def path?(path)
              return true if @path.nil?
              @path.end_with?("/") ? path.start_with?(@path) : path == @path
            end
          end
        end
      end
    end
  end
end
