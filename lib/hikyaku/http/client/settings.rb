# frozen_string_literal: true

require "openssl"
require "socket"
require_relative "../content_coding"
require_relative "../parser"
require_relative "../request"
require_relative "../../version"
require_relative "identity"
require_relative "tags"
require_relative "timeouts"

module Hikyaku
  module HTTP
    class Client
      # How a client behaves: a value.
      class Settings
        SHORTEST = 0.001 # seconds for a request
        MOST_RETRIES = 20
        private_constant :SHORTEST, :MOST_RETRIES

        # @return [Timeouts]
        attr_reader :timeouts
        # @return [Numeric, nil] seconds for a request, redirects and all
        attr_reader :total
        # @return [Integer] connections to one origin
        attr_reader :max_connections
        # @return [Boolean] whether requests may be pipelined at all
        attr_reader :pipelining
        # @return [Numeric] seconds that a connection is kept when nothing is under way
        attr_reader :keep_idle
        # @return [Integer] redirects that are followed
        attr_reader :max_redirects
        # @return [Integer] bytes of a body, decoded
        attr_reader :max_body_bytes
        # @return [String, nil] what is said to a server about who asks
        attr_reader :user_agent
        # @return [String, nil] the content codings that are offered; nil: bodies are left as they are
        attr_reader :codings
        # @return [Cache, nil]
        attr_reader :cache
        # @return [Tags]
        attr_reader :tags
        # @return [#parse, #cookies, nil] a jar: HTTP::CookieJar of the gem http-cookie, or what behaves as it does
        attr_reader :cookies
        # @return [Symbol, String, nil] see {Route.to}
        attr_reader :proxy
        # @return [String, nil] the path of the socket on which every origin is reached
        attr_reader :unix_socket
        # @return [#call, nil] see {Dialer#initialize}
        attr_reader :destinations
        # @return [Integer] times that a server which asks for patience is asked again
        attr_reader :retries
        # @return [Numeric] seconds that are waited for that at most, each time
        attr_reader :max_retry_wait
        # @return [Boolean] whether an answer of the status 400 or above is a failure
        attr_reader :raise_for_status
        # @return [#instrument, nil] which is told of each request
        attr_reader :instrumenter
        # @return [OpenSSL::SSL::SSLContext]
        attr_reader :tls_context
        # @return [Boolean] whether a certificate has to be of the host that is asked, from somebody who is trusted
        def verify? = @tls_context.verify_mode != OpenSSL::SSL::VERIFY_NONE

        # @return [Hash] see {Parser#initialize}
        attr_reader :limits
        # @return [Array<Array(String, String)>] of every request
        attr_reader :headers

        # @api private see {Client#initialize}
        def initialize(timeouts: {}, max_connections: 6, pipelining: true, keep_idle: 30, max_redirects: 10, max_body_bytes: 67_108_864, user_agent: "hikyaku/#{VERSION}", decode: true,
          cache: nil, cookies: nil, proxy: :environment, unix_socket: nil, destinations: nil, ca_file: nil, verify: true, client_cert: nil, client_key: nil, client_key_password: nil,
          headers: {}, limits: {}, retries: 0, max_retry_wait: 60, raise_for_status: false, instrumenter: nil)
          timeouts = timeouts.dup
          total = timeouts.delete(:total)
          @total = seconds(:total, total)
          @timeouts = Timeouts.new(**timeouts)
          @max_connections = checked(:max_connections, max_connections, 1..64)
          @pipelining = pipelining
          @keep_idle = checked(:keep_idle, keep_idle, 0..)
          @max_redirects = checked(:max_redirects, max_redirects, 0..50)
          @max_body_bytes = checked(:max_body_bytes, max_body_bytes, 0..)
          @user_agent = user_agent && Request.new("GET", "http://localhost/", headers: {"user-agent" => user_agent})["user-agent"]
          @codings = ContentCoding.accepted if decode
          @cache = cache
          @tags = Tags.new
          @cookies = cookies
          @unix_socket = unix_socket && socket(unix_socket, proxy, destinations)
          @proxy = (proxy unless @unix_socket)
          @destinations = destinations
          @tls_context = context(ca_file, verify)
          Identity.of(client_cert, client_key, client_key_password)&.shown_by(@tls_context)
          @retries = checked(:retries, retries, 0..MOST_RETRIES)
          @max_retry_wait = checked(:max_retry_wait, max_retry_wait, 0..)
          @raise_for_status = raise_for_status
          @instrumenter = instrumenter
          raise ArgumentError, "the instrumenter is a #{instrumenter.class}; it has the method instrument(name, payload)" unless instrumenter.nil? || instrumenter.respond_to?(:instrument)
          @headers = Request.new("GET", "http://localhost/", headers: headers).headers
          Parser.new(:response, **limits)
          @limits = limits
          freeze
        end

        # @param name [Symbol] what it is called
        # @param value [Numeric, nil] seconds for all of a request
        # @return [Numeric, nil] the same
        # @raise [ArgumentError] it is neither a number above 0, nor nil
        def seconds(name, value) = value && checked(name, value, SHORTEST..)

        private

        def checked(name, value, range)
          return value if value.is_a?(Numeric) && range.cover?(value)
          raise ArgumentError, "#{name} is #{value.inspect}, and has to be a number from #{range.begin}#{" to #{range.end}" if range.end}"
        end

        # The variables of the environment that name a proxy do not mean what is reached by a socket.
        def socket(path, proxy, destinations)
          raise ArgumentError, "unix_socket: and #{destinations ? "destinations:" : "proxy:"} are given; what is reached by a socket goes by nothing else" if destinations || ![nil, :environment].include?(proxy)
          Addrinfo.unix(path.to_s)
          -path.to_s
        rescue ArgumentError => error
          raise error if error.message.include?("unix_socket:")
          raise ArgumentError, "unix_socket #{path.to_s.inspect} cannot be the path of a socket: #{error.message}"
        end

        # HTTP/1.1 alone is offered: for HTTP/2 there is httpx.
        def context(ca_file, verify)
          context = OpenSSL::SSL::SSLContext.new
          context.set_params({verify_mode: verify ? OpenSSL::SSL::VERIFY_PEER : OpenSSL::SSL::VERIFY_NONE, ca_file: ca_file && certificates(ca_file)}.compact)
          context.min_version = OpenSSL::SSL::TLS1_2_VERSION
          context.alpn_protocols = ["http/1.1"]
          context
        end

        # OpenSSL would look at it with the first connection only, and not say which file it is.
        def certificates(path)
          path = path.to_s
          raise ArgumentError, "ca_file #{path.inspect} cannot be read; it is a file with certificates as PEM" unless File.file?(path) && File.readable?(path)
          OpenSSL::X509::Store.new.add_file(path)
          path
        rescue OpenSSL::X509::StoreError
          raise ArgumentError, "ca_file #{path.inspect} has no certificate as PEM"
        end
      end
    end
  end
end
