# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../parser"

module Hikyaku
  module HTTP
    class Proxy
      # A browser's connection as one reads and writes it: whole requests, and bytes, each within a time.
      class Wire
        include Support::Clock

        PIECE = 65_536
        # Seconds for which, and bytes to which, is listened after the last word.
        LINGER = 1.0
        MOST_UNHEARD = 4_194_304
        private_constant :PIECE, :LINGER, :MOST_UNHEARD

        # The browser took or gave nothing for too long, or is gone.
        class Gone < StandardError
        end

        attr_reader :socket

        def initialize(socket, idle: 60, read: 30, write: 60, ending: nil, **limits)
          @socket = socket
          @ending = ending
          @waited = [socket, ending&.io].compact.freeze
          @idle = idle
          @read = read
          @write = write
          @parser = Parser.new(:request, **limits)
          @within = false # a request
          @until = nil
        end

        # Whoever it is, they have so long to say so; nil: they have.
        def hurry(seconds) = @until = seconds && now + seconds

        def ending? = !@ending.nil? && @ending.asked?

        # The next request.
        def request
          until ending?
            part = @parser.next
            @within = !(part.nil? && @parser.idle?)
            return part if part
            bytes = read(@parser.idle? ? @idle : @read)
            next if bytes == ""
            return if bytes.nil? && @parser.idle?
            @within = true
            bytes ? @parser << bytes : @parser.close
          end
        rescue Gone
          raise unless @parser.idle?
          nil
        end

        # The next of the request's body, without waiting for it.
        def body
          loop do
            part = @parser.next
            @within = false if part == :end
            return part if part
            bytes = @socket.read_nonblock(PIECE, exception: false)
            return :wait if bytes == :wait_readable
            bytes ? @parser << bytes : @parser.close
          end
        rescue IOError, SystemCallError
          raise Gone
        end

        def ended? = @socket.recv_nonblock(1, Socket::MSG_PEEK, exception: false).then { |bytes| bytes.nil? || bytes == "" }

        def gone?
          ended?
        rescue SystemCallError
          true
        rescue IOError
          false # it was closed here
        end

        def rest = @parser.rest

        def write(bytes)
          until bytes.empty?
            count = @socket.write_nonblock(bytes, exception: false)
            if count == :wait_writable
              raise Gone unless @socket.wait_writable(@write)
            else
              bytes = bytes.byteslice(count..)
            end
          end
        rescue IOError, SystemCallError
          raise Gone
        end

        # A connection that is closed while the browser still speaks is reset, and the browser may lose the answer: RFC 9112, section 9.6.
        def close
          @socket.close_write
          hear_out if @within
        rescue IOError, SystemCallError
          nil
        ensure
          @socket.close
        end

        private

        def hear_out
          limit = now + LINGER
          heard = 0
          while heard < MOST_UNHEARD && @socket.wait_readable([limit - now, 0].max)
            bytes = @socket.read_nonblock(PIECE, exception: false)
            return if bytes.nil?
            heard += bytes.bytesize if bytes.is_a?(String)
          end
        end

        def read(seconds)
          seconds = (@until - now).clamp(0, seconds) if @until
          raise Gone unless IO.select(@waited, nil, nil, seconds)
          bytes = @socket.read_nonblock(PIECE, exception: false)
          (bytes == :wait_readable) ? "" : bytes
        rescue IOError, SystemCallError
          raise Gone
        end
      end
    end
  end
end
