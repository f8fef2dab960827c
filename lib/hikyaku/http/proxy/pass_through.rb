# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../parser"
require_relative "browser_connection"
require_relative "errors"
require_relative "forwarding"

module Hikyaku
  module HTTP
    class Proxy
      # Passes one request, which may be unsafe, to its server on a connection of its own, and the response back. It neither pipelines nor repeats the request, and
      # stores nothing. Both bodies flow no faster than their recipient reads.
      class PassThrough
        include Support::Clock

        PIECE = 65_536
        MAX_BUFFERED = 262_144 # bytes for the server
        # Seconds for the response after the browser has closed its half of the connection.
        GRACE = 5.0
        private_constant :PIECE, :MAX_BUFFERED, :GRACE

        attr_reader :started, :status, :bytes
        alias_method :started?, :started

        # The block gets the head of the response. `body_read` says that the request has no body to read.
        def initialize(browser, request, upstream, server, timeout: 300, grace: GRACE, body_read: false, last: -> { false }, &on_response)
          @browser = browser
          @request = request
          @upstream = upstream
          @server = server
          @timeout = timeout
          @grace = grace
          @parser = Parser.new(:response)
          @parser.request_method = request.method
          @buffer = upstream.head(close: true)
          @on_response = on_response
          @last = last
          @body_read = body_read
          @event_stream = Forwarding.event_stream?(request.values("accept"))
          @pipelined = @rejected = @started = @done = false
          @deadline = nil
          @bytes = 0
        end

        # Whether another request may follow on the browser's connection.
        def run
          until @done
            read_body
            flush
            wait
            receive
          end
          @body_read && !@downstream.close?
        end

        private

        # A malformed body makes its request malformed.
        def read_body
          while reads_body?
            case (part = @browser.body)
            when :wait then return
            when :end
              @buffer << @upstream.finish
              @body_read = true
            else @buffer << @upstream.body(part)
            end
          end
        end

        def reads_body? = !@body_read && !@rejected && @buffer.bytesize <= MAX_BUFFERED

        # A server may respond without the rest of the body. The rest then remains unread, and the browser's connection ends with the response.
        def flush
          until @buffer.empty?
            count = @server.write_nonblock(@buffer, exception: false)
            return if count == :wait_writable
            @buffer = @buffer.byteslice(count..)
          end
        rescue SystemCallError, IOError
          @buffer = +""
          @rejected = true
        end

        def wait
          watching = @body_read && !@pipelined && @deadline.nil? && (@event_stream || !@started)
          ready, = IO.select((reads_body? || watching) ? [@server, @browser.socket] : [@server], @buffer.empty? ? nil : [@server], nil, seconds)
          raise BrowserConnection::Disconnected if ready.nil? && @deadline && !@started
          fail_with(504, "was silent for #{@timeout} s") unless ready
          check_browser if watching && ready.include?(@browser.socket)
        end

        def seconds
          return [@deadline - now, 0].max if @deadline && !@started
          @event_stream ? nil : @timeout
        end

        # A browser with a next request is still there. One that has closed its half gets no more events, but a response within the grace.
        def check_browser
          return @pipelined = true unless @browser.half_closed?
          raise BrowserConnection::Disconnected if @event_stream
          @deadline = now + @grace
        rescue SystemCallError, IOError
          raise BrowserConnection::Disconnected
        end

        def receive
          bytes = @server.read_nonblock(PIECE, exception: false)
          return if bytes == :wait_readable
          bytes ? @parser << bytes : @parser.close
          while !@done && (part = @parser.next)
            forward(part)
          end
          fail_with(502, "closed the connection before its response was complete") if bytes.nil? && !@done
        rescue Parser::Malformed => error
          fail_with(502, "sent a malformed response: #{error.message}")
        rescue SystemCallError, IOError => error
          fail_with(502, "broke off the connection: #{error.message}")
        end

        def forward(part)
          case part
          when Parser::Response then part.interim? ? interim(part) : start(part)
          when :end
            return unless @downstream # the end of an interim response
            @browser.write(@downstream.finish)
            @done = true
          else
            @bytes += part.bytesize
            @browser.write(@downstream.body(part))
          end
        end

        def interim(response)
          bytes = Forwarding.interim(response, @request, via: @upstream.via)
          @browser.write(bytes) if bytes
        end

        def start(response)
          @status = response.status
          @event_stream ||= Forwarding.event_stream?(response.values("content-type"))
          @on_response&.call(response)
          @downstream = Forwarding.response(response, @request, via: @upstream.via, close: !@body_read || @last.call)
          @started = true
          @browser.write(@downstream.head)
        end

        def fail_with(status, text) = raise(StatusError.new(status, "#{@upstream.origin.authority} #{text}"))
      end
    end
  end
end
