# frozen_string_literal: true

require "openssl"
require "socket"
require_relative "../../version"
require_relative "../../http"
require_relative "../cache"
require_relative "../content_coding"
require_relative "../errors"
require_relative "../parser"
require_relative "../request"
require_relative "response_matcher"

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
          raise ArgumentError, "timeouts is a #{timeouts.class}; it has to be a Hash of seconds" unless timeouts.is_a?(Hash)
          @total = seconds(:total, timeouts[:total])
          @timeouts = Timeouts.new(**timeouts.except(:total))
          @max_connections = whole(:max_connections, max_connections, 1..64)
          @pipelining = pipelining
          @keep_idle = checked(:keep_idle, keep_idle, 0..)
          @max_redirects = whole(:max_redirects, max_redirects, 0..50)
          @max_body_bytes = whole(:max_body_bytes, max_body_bytes, 0..)
          @user_agent = user_agent && Request.new("GET", "http://localhost/", headers: {"user-agent" => user_agent})["user-agent"]
          @codings = ContentCoding.accepted if decode
          @cache = cache_of(cache)
          @tags = EntityTags.new
          @cookies = responding(:cookies, cookies, :parse, :cookies)
          @unix_socket = unix_socket && socket(unix_socket, proxy, destinations)
          @proxy = (proxy unless @unix_socket)
          @destinations = responding(:destinations, destinations, :call)
          @tls_context = context(ca_file, verify)
          ClientCertificate.of(client_cert, client_key, client_key_password)&.shown_by(@tls_context)
          @retries = whole(:retries, retries, 0..MOST_RETRIES)
          @max_retry_wait = checked(:max_retry_wait, max_retry_wait, 0..)
          @raise_for_status = raise_for_status
          @instrumenter = HTTP.checked_instrumenter(instrumenter)
          @headers = Request.new("GET", "http://localhost/", headers: headers).headers
          Parser.new(:response, **limits)
          @limits = limits
          freeze
        end

        # Of one request.
        def terms(timeout: @total, retries: @retries, raise_for_status: @raise_for_status)
          RequestOptions.new(total: seconds(:timeout, timeout), retries: whole(:retries, retries, 0..MOST_RETRIES), raise_for_status: raise_for_status)
        end

        private

        def seconds(name, value) = (checked(name, value, SHORTEST..) unless value.nil?)

        def whole(name, value, range) = checked(name, value, range, Integer, "whole number")

        def checked(name, value, range, kind = Numeric, words = "number")
          return value if value.is_a?(kind) && range.cover?(value)
          raise ArgumentError, "#{name} is #{value.inspect}; it has to be a #{words} from #{range.begin}#{" to #{range.end}" if range.end}"
        end

        def responding(name, object, *methods)
          return object if object.nil? || methods.all? { |method| object.respond_to?(method) }
          raise ArgumentError, "#{name} is a #{object.class}; it has to have the method#{"s" if methods.size > 1} #{methods.join(" and ")}"
        end

        def cache_of(cache)
          case cache
          when true then Cache.new
          when Integer then Cache.new(max_bytes: cache)
          when false, nil then nil
          when Cache then cache
          else raise ArgumentError, "cache is a #{cache.class}; it has to be true, false, a number of bytes, or a #{Cache}"
          end
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

      # How long each phase of a request may take, seconds.
      class Timeouts
        PHASES = {resolve: 10, connect: 10, handshake: 10, write: 30, first_byte: 60, head: 60, read: 30}.freeze
        private_constant :PHASES

        attr_reader :resolve
        attr_reader :connect
        attr_reader :handshake
        attr_reader :write
        attr_reader :first_byte
        attr_reader :head
        attr_reader :read

        def initialize(**seconds)
          unknown = seconds.keys - PHASES.keys
          raise ArgumentError, "there is no timeout #{unknown.first.inspect}; there are #{PHASES.keys.join(", ")}, and total: of a request" if unknown.any?
          PHASES.merge(seconds).each do |phase, value|
            raise ArgumentError, "the timeout #{phase} is a number of seconds above 0, not #{value.inspect}" unless value.is_a?(Numeric) && value.real? && value.positive?
            instance_variable_set(:"@#{phase}", value)
          end
          freeze
        end
      end

      # On what terms somebody waits for an answer, who may share it with others that have their own: a value.
      class RequestOptions
        attr_reader :total

        def initialize(total: nil, retries: 0, raise_for_status: false)
          @total = total
          @retries = retries
          @raise_for_status = raise_for_status
          freeze
        end

        def retry?(before) = before < @retries

        def objection(response) = (BadStatus.new(response) if @raise_for_status && response.bad?)
      end

      # Who this side of TLS is, for servers that ask: a certificate, those that vouch for it, and its key. RFC 8446, section 4.4.2.
      class ClientCertificate
        # What servers say to who does not show one: since TLS 1.3, and before it, when it may also mean something else.
        WANTED = /certificate required/
        PERHAPS_WANTED = /handshake failure/
        private_constant :WANTED, :PERHAPS_WANTED

        def self.advice(error)
          case error&.message
          when WANTED then "; the server wants to know who asks: give client_cert:"
          when PERHAPS_WANTED then "; it may be that the server wants to know who asks: client_cert:"
          end
        end

        def self.of(certificate, key, password)
          return new(certificate, key, password) if certificate
          raise ArgumentError, "client_key and client_key_password are of no use without client_cert" if key || password
        end

        def initialize(certificate, key, password)
          @certificate, *@chain = certificates(certificate)
          raise ArgumentError, "client_key is not given; with client_cert as an object it is an OpenSSL::PKey, or a file" if key.nil? && !path?(certificate)
          @key = key_of(key || certificate, key ? :client_key : :client_cert, password)
          raise ArgumentError, "client_key is not the key of client_cert" unless @certificate.check_private_key(@key)
        end

        def shown_by(context) = context.add_certificate(@certificate, @key, @chain)

        def inspect = "#<#{self.class} #{@certificate.subject}>"

        private

        def path?(given) = given.is_a?(String) || given.respond_to?(:to_path)

        def certificates(given)
          all = path?(given) ? OpenSSL::X509::Certificate.load(read(given, :client_cert)) : Array(given)
          return all if all.any? && all.all?(OpenSSL::X509::Certificate)
          raise ArgumentError, "client_cert is a file with a certificate as PEM, an OpenSSL::X509::Certificate, or an Array of such"
        rescue OpenSSL::X509::CertificateError
          raise ArgumentError, "client_cert #{given.to_s.inspect} has no certificate as PEM"
        end

        # Without a password OpenSSL would ask for one at the terminal.
        def key_of(given, name, password)
          key = path?(given) ? OpenSSL::PKey.read(read(given, name), password || "") : given
          return key if key.is_a?(OpenSSL::PKey::PKey) && key.private?
          raise ArgumentError, "#{name} #{"#{given.to_s.inspect} " if path?(given)}is no private key: it is a file as PEM, or an OpenSSL::PKey"
        rescue OpenSSL::PKey::PKeyError
          raise ArgumentError, "#{name} #{given.to_s.inspect} has no private key as PEM that can be read #{password ? "with this client_key_password" : "without client_key_password"}"
        end

        # Who gives the key itself in place of its path is not to find it in a log.
        def read(path, name)
          raise ArgumentError, "#{name} is PEM; it is the path of a file, or an object of OpenSSL" if path.to_s.include?("-----BEGIN")
          ::File.binread(path)
        rescue SystemCallError => error
          raise ArgumentError, "#{name} #{path.to_s.inspect} cannot be read (#{error.class}); it is a file as PEM"
        end
      end
    end
  end
end
