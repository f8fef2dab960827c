# frozen_string_literal: true

require "ipaddr"
require "openssl"
require_relative "../publisher/endpoint"

module Hikyaku
  class Doctor
    # Where the hub is: its URL, and what to connect to.
    #
    # @api private
    class Place
      # Seconds are the connection's own.
      TIMEOUTS = {open_timeout: nil, read_timeout: nil, write_timeout: nil}.freeze
      private_constant :TIMEOUTS

      # @param url [String] as Publisher has it
      # @param connect [Array(String, Integer), nil] host and port to connect to in place of the URL's
      # @param ca_file [String, nil] certificates to trust in place of the system's
      # @raise [ConfigError]
      def initialize(url, connect: nil, ca_file: nil)
        @endpoint = Publisher::Endpoint.new(url, **TIMEOUTS)
        @connect = connect
        @ca_file = ca_file
      end

      # @return [String] path and query of the URL
      def target = @endpoint.request_target

      # @return [String] the path of the URL
      def path = @endpoint.uri.path

      # @return [String] for URLs: without brackets
      def host = @endpoint.uri.hostname

      # @return [String] the `Host` field
      def authority = @endpoint.host

      # @return [Integer] of the URL
      def port = @endpoint.uri.port

      # @return [String] scheme, host and port, as browsers write it
      def origin = "#{@endpoint.uri.scheme}://#{authority}"

      # @return [Array(String, Integer)]
      def address = @connect || [host, port]

      # @return [String, nil]
      def unix_path = @endpoint.unix_path

      # @return [Boolean]
      def unix? = !unix_path.nil?

      # @return [Boolean]
      def tls? = @endpoint.uri.scheme == "https"

      # @return [Boolean] nobody between could read along: it never leaves this machine
      def local? = unix? || (!tls? && @endpoint.confidential?) || host.match?(/\A(?:localhost|127(?:\.\d+){3}|::1)\z/i)

      # @return [Boolean] whether a token may be sent
      def confidential? = @endpoint.confidential?

      # @return [Boolean] whether the host is an address rather than a name
      def numeric?
        IPAddr.new(host)
        true
      rescue IPAddr::Error
        false
      end

      # @param location [String] absolute or relative
      # @return [Place] that a redirect leads to; of another host it is connected to where its name leads
      # @raise [ConfigError]
      def redirected(location)
        other = @endpoint.redirected(location)
        Place.new(other.uri.to_s, connect: (@connect if other.uri.hostname == host && other.uri.port == port), ca_file: @ca_file)
      end

      # @param port [Integer]
      # @return [Place] the same host over plain HTTP
      def plain(port)
        Place.new("http://#{@endpoint.uri.host}:#{port}#{target}", connect: @connect && [@connect.first, port])
      end

      # @return [OpenSSL::SSL::SSLContext]
      def tls_context(alpn, verify)
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.set_params({verify_mode: verify ? OpenSSL::SSL::VERIFY_PEER : OpenSSL::SSL::VERIFY_NONE, verify_hostname: false, ca_file: @ca_file}.compact)
          context.alpn_protocols = alpn
        end
      end

      # @return [Boolean] whether the URLs are the same
      def same?(url)
        Place.new(url).to_s == to_s
      rescue ConfigError
        false
      end

      # @return [String] the URL, without the query
      def to_s = @endpoint.to_s
    end
  end
end
