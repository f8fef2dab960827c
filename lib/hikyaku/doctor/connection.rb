# frozen_string_literal: true

require "openssl"
require "socket"
require_relative "../support/clock"
require_relative "../error"
require_relative "words"

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
  end
end
