# frozen_string_literal: true

require_relative "../errors"
require_relative "../parser"

module Hikyaku
  module HTTP
    class Client
      # Asks a proxy for a way through to an origin, without waiting. RFC 9110, section 9.3.6.
      class Tunnel
        PIECE = 4_096
        private_constant :PIECE

        def initialize(socket, route)
          @socket = socket
          where = "#{route.origin.host}:#{route.origin.port}"
          credentials = route.credentials
          @left = "CONNECT #{where} HTTP/1.1\r\nHost: #{where}\r\n#{"Proxy-Authorization: #{credentials}\r\n" if credentials}\r\n"
          @parser = Parser.new(:response)
          @parser.request_method = "CONNECT"
          @route = route
        end

        def step
          return :writable unless written?
          loop do
            bytes = @socket.read_nonblock(PIECE, exception: false)
            return :readable if bytes == :wait_readable
            refuse("closed the connection") if bytes.nil?
            @parser << bytes
            return if stands?
          end
        rescue Parser::Malformed, SystemCallError => error
          refuse(error.message)
        end

        private

        def written?
          until @left.empty?
            count = @socket.write_nonblock(@left, exception: false)
            return false if count == :wait_writable
            @left = @left.byteslice(count..)
          end
          true
        end

        def stands?
          while (part = @parser.next)
            next unless part.is_a?(Parser::Response) && !part.interim?
            refuse("answered #{part.status}#{" (it wants other credentials)" if part.status == 407}") unless part.upgrade?
            refuse("said something before anybody asked") unless @parser.rest.empty?
            return true
          end
          false
        end

        def refuse(why) = raise(ConnectFailed, "no way to #{@route.origin} through the proxy #{@route.host}, port #{@route.port}: it #{why}")
      end
    end
  end
end
