# frozen_string_literal: true

require "ipaddr"
require "openssl"
require_relative "../client/publisher/endpoint"

module Hikyaku
  class Doctor
    # Where the hub is: its URL, and what to connect to.
    class Place
      # Seconds are the connection's own.
      TIMEOUTS = {open_timeout: nil, read_timeout: nil, write_timeout: nil}.freeze
      private_constant :TIMEOUTS

      def initialize(url, connect: nil, ca_file: nil)
        @endpoint = Publisher::Endpoint.new(url, **TIMEOUTS)
        @connect = connect
        @ca_file = ca_file
      end

      def target = @endpoint.request_target

      def path = @endpoint.uri.path

      def host = @endpoint.uri.hostname

      def authority = @endpoint.host

      def port = @endpoint.uri.port

      def origin = "#{@endpoint.uri.scheme}://#{authority}"

      def address = @connect || [host, port]

      def unix_path = @endpoint.unix_path

      def unix? = !unix_path.nil?

      def tls? = @endpoint.uri.scheme == "https"

      def local? = unix? || (!tls? && @endpoint.confidential?) || host.match?(/\A(?:localhost|127(?:\.\d+){3}|::1)\z/i)

      def confidential? = @endpoint.confidential?

      def numeric?
        IPAddr.new(host)
        true
      rescue IPAddr::Error
        false
      end

      def redirected(location)
        other = @endpoint.redirected(location)
        Place.new(other.uri.to_s, connect: (@connect if other.uri.hostname == host && other.uri.port == port), ca_file: @ca_file)
      end

      def plain(port)
        Place.new("http://#{@endpoint.uri.host}:#{port}#{target}", connect: @connect && [@connect.first, port])
      end

      def tls_context(alpn, verify)
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.set_params({verify_mode: verify ? OpenSSL::SSL::VERIFY_PEER : OpenSSL::SSL::VERIFY_NONE, verify_hostname: false, ca_file: @ca_file}.compact)
          context.alpn_protocols = alpn
        end
      end

      def same?(url)
        Place.new(url).to_s == to_s
      rescue ConfigError
        false
      end

      def to_s = @endpoint.to_s
    end
  end
end
