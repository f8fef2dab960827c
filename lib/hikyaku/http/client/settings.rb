# frozen_string_literal: true

require "openssl"
require "socket"
require_relative "../content_coding"
require_relative "../parser"
require_relative "../request"
require_relative "../../version"
require_relative "client_certificate"
require_relative "entity_tags"
require_relative "request_options"
require_relative "timeouts"

module Hikyaku
  module HTTP
    class Client
      # How a client behaves: a value.
      class Settings
        SHORTEST = 0.001 # seconds for a request
        MOST_RETRIES = 20
        private_constant :SHORTEST, :MOST_RETRIES

        attr_reader :timeouts
        attr_reader :total
        attr_reader :max_connections
        attr_reader :pipelining
        attr_reader :keep_idle
        attr_reader :max_redirects
        attr_reader :max_body_bytes
        attr_reader :user_agent
        attr_reader :codings
        attr_reader :cache
        attr_reader :tags
        attr_reader :cookies
        attr_reader :proxy
        attr_reader :unix_socket
        attr_reader :destinations
        attr_reader :max_retry_wait
        attr_reader :instrumenter
        attr_reader :tls_context
        def verify? = @tls_context.verify_mode != OpenSSL::SSL::VERIFY_NONE

        attr_reader :limits
        attr_reader :headers

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
          @tags = EntityTags.new
          @cookies = cookies
          @unix_socket = unix_socket && socket(unix_socket, proxy, destinations)
          @proxy = (proxy unless @unix_socket)
          @destinations = destinations
          @tls_context = context(ca_file, verify)
          ClientCertificate.of(client_cert, client_key, client_key_password)&.shown_by(@tls_context)
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

        # Of one request.
        def terms(timeout: @total, retries: @retries, raise_for_status: @raise_for_status)
          RequestOptions.new(total: seconds(:timeout, timeout), retries: checked(:retries, retries, 0..MOST_RETRIES), raise_for_status: raise_for_status)
        end

        private

        def seconds(name, value) = value && checked(name, value, SHORTEST..)

        def checked(name, value, range)
          return value if value.is_a?(Numeric) && range.cover?(value)
          raise ArgumentError, "#{name} is #{value.inspect}, and has to be a number from #{range.begin}#{" to #{range.end}" if range.end}"
        end

        # The variables of the environment that name a proxy do not mean what is reached by a socket.
        def socket(path, proxy, destinations)
          raise ArgumentError, "unix_socket: and #{destinations ? "destinations:" : "proxy:"} are given; what is reached by a socket goes by nothing else" if destinations || ![nil, :environment].include?(proxy)
          path = path.to_s
          raise ArgumentError, "it is empty" if path.empty?
          # The kernel would take what stands before it; a name that begins with one is in no folder (unix(7), "abstract").
          raise ArgumentError, "it has a NUL" if path.include?("\0") && !path.start_with?("\0")
          Addrinfo.unix(path)
          -path
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
