# frozen_string_literal: true

require "ipaddr"
require "openssl"
require "socket"
require_relative "../support/clock"
require_relative "../error"
require_relative "../client/publisher/endpoint"

module Hikyaku
  class Doctor
    # A connection could not be opened, or ended before there was an answer. The message says where and why.
    class ConnectionFailed < StandardError
      include Error
    end

    # A socket, with TLS or without, whose every wait has an end.
    class Connection
      include Support::Clock

      BYTES = 65_536
      # What an operating system says of a connection that is gone.
      GONE = [IOError, SystemCallError, OpenSSL::SSL::SSLError].freeze
      private_constant :BYTES, :GONE

      attr_reader :address

      def initialize(place, seconds:, alpn: ["http/1.1"], verify: true)
        @place = place
        @deadline = now + seconds
        @raw = open_socket(seconds)
        @address = @raw.remote_address.ip_address unless place.unix?
        @socket = place.tls? ? encrypt(alpn, verify) : @raw
      rescue SocketError => error
        raise ConnectionFailed, "#{place} cannot be found: #{Words.quote(error.message)}"
      rescue OpenSSL::SSL::SSLError => error
        close
        raise ConnectionFailed, "#{place}: TLS failed: #{Words.quote(error.message)}"
      rescue SystemCallError, IOError => error
        close
        raise ConnectionFailed, "#{place} cannot be reached: #{Words.quote(error.message)}"
      end

      def tls = (@socket if @place.tls?)

      def io = @raw

      def write(bytes, seconds)
        deadline = now + seconds
        until bytes.empty?
          written = @socket.write_nonblock(bytes, exception: false)
          written.is_a?(Integer) ? bytes = bytes.byteslice(written..) : await(written, deadline)
        end
      rescue Errno::EPIPE, Errno::ECONNRESET
        # Whoever refuses a request may close before all of it is read: there may be an answer.
        nil
      rescue *GONE => error
        raise ConnectionFailed, "#{@place} takes nothing: #{Words.quote(error.message)}"
      end

      def read(seconds = 0)
        deadline = now + seconds
        loop do
          bytes = @socket.read_nonblock(BYTES, exception: false)
          return bytes unless bytes.is_a?(Symbol)
          return :nothing unless ready?(bytes, deadline - now)
        end
      rescue Errno::ECONNRESET
        :reset
      rescue *GONE
        nil
      end

      def close
        @raw&.close
      rescue *GONE
        nil
      end

      private

      def open_socket(seconds)
        return UNIXSocket.new(@place.unix_path) if @place.unix?
        socket = Socket.tcp(*@place.address, connect_timeout: seconds, resolv_timeout: seconds)
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        socket
      end

      def encrypt(alpn, verify)
        socket = OpenSSL::SSL::SSLSocket.new(@raw, @place.tls_context(alpn, verify))
        socket.hostname = @place.host unless @place.numeric?
        until (outcome = socket.connect_nonblock(exception: false)).equal?(socket)
          await(outcome, @deadline)
        end
        socket.post_connection_check(@place.host) if verify
        socket
      end

      def await(what, deadline)
        raise Errno::ETIMEDOUT unless ready?(what, deadline - now)
      end

      def ready?(what, seconds)
        return false if seconds <= 0
        (what == :wait_writable) ? @raw.wait_writable(seconds) : @raw.wait_readable(seconds)
      end
    end

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

    # Figures, and what others said, in sentences.
    module Words
      # Of what a server said, in a sentence.
      MOST = 160
      private_constant :MOST

      module_function

      def seconds(seconds)
        return "#{(seconds * 1000).ceil} ms" if seconds < 1
        (seconds < 10) ? "#{seconds.round(1)} s".sub(".0", "") : "#{seconds.round} s"
      end

      def long(seconds)
        unit, size = {"days" => 86_400, "hours" => 3600, "minutes" => 60}.find { |_, length| seconds >= 2 * length } || ["seconds", 1]
        "#{(seconds / size).floor} #{unit}"
      end

      def bytes(bytes) = (bytes < 2048) ? "#{bytes} bytes" : "#{bytes / 1024} KB"

      def count(count, thing) = "#{count} #{thing}#{"s" unless count == 1}"

      def list(items) = (items.size < 2) ? items.join : "#{items[0..-2].join(", ")} and #{items.last}"

      def quote(text)
        line = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[\p{Cntrl}\p{Cf}]+/, " ").strip
        (line.size > MOST) ? "#{line[0, MOST]}…" : line
      end
    end
  end
end
