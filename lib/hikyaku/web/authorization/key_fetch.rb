# frozen_string_literal: true

require "net/http"
require "timeout"
require "uri"
require_relative "address_policy"

module Hikyaku
  class Web
    class Authorization
      # Fetches a key set by HTTP: with timeouts, a size limit and no more trust than needed. https only, except from
      # this machine; redirects only within the same origin; addresses by {AddressPolicy}. The proxy of the
      # environment (https_proxy, no_proxy) is used; addresses are then the proxy's affair.
      class KeyFetch
        # The set could not be fetched; the message says why and holds no more of the URL than its host.
        class Failed < StandardError
        end

        # What was fetched.
        #
        # @!attribute [r] body
        #   @return [String] bytes
        # @!attribute [r] max_age
        #   @return [Integer, nil] seconds for which the server says that it is fresh
        Fetched = Struct.new(:body, :max_age)

        CONNECT_SECONDS = 2
        READ_SECONDS = 3
        # For everything together: a server that drips must not hold a refresh for ever.
        TOTAL_SECONDS = 10
        MAX_BYTES = 262_144
        MAX_REDIRECTS = 3
        REDIRECTS = [Net::HTTPMovedPermanently, Net::HTTPFound, Net::HTTPSeeOther, Net::HTTPTemporaryRedirect,
          Net::HTTPPermanentRedirect].freeze
        HEADERS = {"accept" => "application/jwk-set+json, application/json", "accept-encoding" => "identity"}.freeze

        class << self
          def uri(url)
            uri = URI.parse(url)
            raise Failed, "it is not an http(s) URL" unless uri.is_a?(URI::HTTP) && uri.hostname && !uri.hostname.empty?
            raise Failed, "it holds a user name or password" if uri.userinfo
            return uri if uri.scheme == "https" || AddressPolicy.loopback?(uri.hostname)
            raise Failed, "it must be an https URL (http is for this machine only)"
          rescue URI::InvalidURIError
            raise Failed, "it is not a valid URL"
          end
        end

        def initialize(resolver: nil)
          @resolution = resolver ? {resolver: resolver} : {}
        end

        def call(uri)
          Timeout.timeout(TOTAL_SECONDS) { follow(uri, MAX_REDIRECTS) }
        rescue AddressPolicy::Refused => error
          raise Failed, error.message
        rescue Timeout::Error
          raise Failed, "it does not answer in time"
        rescue SystemCallError, SocketError, IOError, OpenSSL::SSL::SSLError, Net::ProtocolError,
          Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError => error
          raise Failed, "it cannot be reached (#{error.class})"
        end

        private

        def follow(uri, redirects)
          answer, body = get(uri)
          case answer
          when Net::HTTPOK then Fetched.new(body, max_age(answer))
          when *REDIRECTS
            raise Failed, "it redirects too often" if redirects.zero?
            follow(target(uri, answer), redirects - 1)
          else raise Failed, "it answers #{answer.code}"
          end
        end

        def get(uri)
          proxy = uri.find_proxy
          return request(uri, proxy, nil) if proxy
          addresses = AddressPolicy.addresses(uri.hostname, **@resolution)
          addresses.each_with_index do |address, index|
            return request(uri, nil, address)
          rescue SystemCallError, Net::OpenTimeout
            raise if index == addresses.size - 1
          end
        end

        # Connects to the address that was checked, not to whatever the name leads to by then.
        def request(uri, proxy, address)
          http = Net::HTTP.new(uri.hostname, uri.port, proxy&.hostname, proxy&.port, proxy&.user, proxy&.password)
          http.ipaddr = address if address
          http.use_ssl = uri.scheme == "https"
          http.open_timeout = CONNECT_SECONDS
          http.ssl_timeout = CONNECT_SECONDS
          http.read_timeout = READ_SECONDS
          http.max_retries = 0
          http.start { |connection| receive(connection, uri) }
        end

        def receive(connection, uri)
          body = +""
          answer = connection.request_get(uri.request_uri, HEADERS) do |response|
            response.read_body do |part|
              raise Failed, "it has more than #{MAX_BYTES} bytes" if body.bytesize + part.bytesize > MAX_BYTES
              body << part
            end
          end
          length = answer.content_length
          raise Failed, "it breaks off" if length && body.bytesize < length
          [answer, body]
        end

        def target(uri, answer)
          to = uri.merge(answer["location"].to_s)
          return to if [to.scheme, to.hostname, to.port] == [uri.scheme, uri.hostname, uri.port] && !to.userinfo
          raise Failed, "it redirects to another origin"
        rescue URI::Error
          raise Failed, "it redirects to an invalid URL"
        end

        def max_age(answer)
          control = answer["cache-control"].to_s
          return 0 if control.match?(/\bno-(?:cache|store)\b/i)
          control[/\bmax-age="?(\d{1,9})\b/i, 1]&.to_i
        end

        private_constant :CONNECT_SECONDS, :READ_SECONDS, :TOTAL_SECONDS, :MAX_BYTES, :MAX_REDIRECTS, :REDIRECTS,
          :HEADERS
      end
    end
  end
end
