# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../parser"

module Hikyaku
  module HTTP
    class Proxy
      # A connection from a browser: it reads requests and writes bytes, each within a time.
      class BrowserConnection
        include Support::Clock

        PIECE = 65_536
        # Limits for what the browser still sends after the last response: seconds, and bytes.
        LINGER = 1.0
        MAX_LINGER_BYTES = 4_194_304
        private_constant :PIECE, :LINGER, :MAX_LINGER_BYTES

        # The browser closed the connection, or took or sent nothing in time.
        class Disconnected < StandardError
        end

        attr_reader :socket

        def initialize(socket, idle: 60, read: 30, write: 60, shutdown: nil, **limits)
          @socket = socket
          @shutdown = shutdown
          @waited = [socket, shutdown&.io].compact.freeze
          @idle = idle
          @read = read
          @write = write
          @parser = Parser.new(:request, **limits)
          @in_request = false
          @deadline = nil
        end

        # Seconds for all that follows; nil removes the limit.
        def expire_in(seconds) = @deadline = seconds && now + seconds

        def shutting_down? = !@shutdown.nil? && @shutdown.requested?

        # The next request; nil after the last.
        def request
          until shutting_down?
            part = @parser.next
            @in_request = !(part.nil? && @parser.idle?)
            return part if part
            bytes = read(@parser.idle? ? @idle : @read)
            next if bytes == ""
            return if bytes.nil? && @parser.idle?
            @in_request = true
            bytes ? @parser << bytes : @parser.close
          end
        rescue Disconnected
          raise unless @parser.idle?
          nil
        end

        # The next piece of the request's body, :end, or :wait: it does not block.
        def body
          loop do
            part = @parser.next
            @in_request = false if part == :end
            return part if part
            bytes = @socket.read_nonblock(PIECE, exception: false)
            return :wait if bytes == :wait_readable
            bytes ? @parser << bytes : @parser.close
          end
        rescue IOError, SystemCallError
          raise Disconnected
        end

        # Whether the browser has closed its half of the connection.
        def half_closed? = @socket.recv_nonblock(1, Socket::MSG_PEEK, exception: false).then { |bytes| bytes.nil? || bytes == "" }

        def disconnected?
          half_closed?
        rescue SystemCallError
          true
        rescue IOError
          false # the proxy itself has closed it
        end

        # Bytes that were read and not parsed.
        def rest = @parser.rest

        def write(bytes)
          until bytes.empty?
            count = @socket.write_nonblock(bytes, exception: false)
            if count == :wait_writable
              raise Disconnected unless @socket.wait_writable(@write)
            else
              bytes = bytes.byteslice(count..)
            end
          end
        rescue IOError, SystemCallError
          raise Disconnected
        end

        # A close with unread bytes resets the connection, and the browser may lose the response: RFC 9112, section 9.6.
        def close
          @socket.close_write
          linger if @in_request
        rescue IOError, SystemCallError
          nil
        ensure
          @socket.close
        end

        private

        def linger
          limit = now + LINGER
          read = 0
          while read < MAX_LINGER_BYTES && @socket.wait_readable([limit - now, 0].max)
            bytes = @socket.read_nonblock(PIECE, exception: false)
            return if bytes.nil?
            read += bytes.bytesize if bytes.is_a?(String)
          end
        end

        def read(seconds)
          seconds = (@deadline - now).clamp(0, seconds) if @deadline
          raise Disconnected unless IO.select(@waited, nil, nil, seconds)
          bytes = @socket.read_nonblock(PIECE, exception: false)
          (bytes == :wait_readable) ? "" : bytes
        rescue IOError, SystemCallError
          raise Disconnected
        end
      end
    end
  end
end
