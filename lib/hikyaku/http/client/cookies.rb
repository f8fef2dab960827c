# frozen_string_literal: true

require "uri"
require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
      # A jar of cookies, where the caller has one: what it has for a request, and what an answer puts into it.
      class Cookies
        # What stands in the paths and queries of browsers' URLs, and in none of RFC 3986; a jar takes no other URLs.
        UNUSUAL = /[^!$&'()*+,\-.\/0-9:;=?@A-Z_a-z~%]|%(?!\h\h)/n
        private_constant :UNUSUAL

        def initialize(jar)
          @jar = jar
        end

        def with(request)
          return request if @jar.nil? || request["cookie"]
          asked(request.address) do |uri|
            cookies = @jar.cookies(uri)
            next request if cookies.empty?
            request.redirected(request.address, headers: [*request.headers, ["cookie", cookies.map(&:cookie_value).join("; ")]], body: request.body)
          end
        end

        def keep(request, headers)
          return if @jar.nil?
          set = headers.filter_map { |name, value| value if name == "set-cookie" }
          return if set.empty?
          asked(request.address) { |uri| set.each { |value| @jar.parse(value, uri) } }
        end

        private

        # What is said about a cookie may be secret.
        def asked(address)
          yield URI("#{address.origin}#{address.target.b.gsub(UNUSUAL) { |byte| format("%%%02X", byte.ord) }}")
        rescue => error
          raise RequestFailed.new("the jar of cookies failed at #{address.url} (#{error.class})", url: address.url)
        end
      end
    end
  end
end
