# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../parser"
require_relative "forwarding"
require_relative "wire"

module Hikyaku
  module HTTP
    class Proxy
      # Takes one request that may change something to its server, on a connection of its own, and the answer back: nothing is pipelined, shared, kept or
      # asked twice. Both bodies pass as they come, no faster than the other side takes them.
      class Passage
        include Support::Clock

        PIECE = 65_536
        EVENTS = %r{\btext/event-stream\b}i
        MOST_AHEAD = 262_144 # bytes that wait for the server
        GRACE = 5.0 # seconds
        private_constant :PIECE, :EVENTS, :MOST_AHEAD, :GRACE

        # The server did not answer as it should.
        class Failed < StandardError
          attr_reader :status

          def initialize(status, message)
            @status = status
            super(message)
          end
        end

        attr_reader :begun
        alias_method :begun?, :begun
        attr_reader :status
        attr_reader :bytes

        def initialize(wire, request, upstream, server, timeout: 300, grace: GRACE, asked_all: false, last: -> { false }, &told)
          @wire = wire
          @request = request
          @upstream = upstream
          @server = server
          @timeout = timeout
          @grace = grace
          @parser = Parser.new(:response)
          @parser.request_method = request.method
          @left = upstream.head(close: true)
          @told = told
          @last = last
          @asked_all = asked_all
          @endless = request.values("accept").any? { |value| value.match?(EVENTS) }
          @heard = @unwanted = @begun = @over = false
          @until = nil
          @bytes = 0
        end

        def run
          until @over
            take_body
            send_on
            wait
            receive
          end
          @asked_all && !@downstream.close?
        end

        private

        # The browser's body is its request's: malformed, it is the request that is refused.
        def take_body
          while takes?
            case (part = @wire.body)
            when :wait then return
            when :end
              @left << @upstream.finish
              @asked_all = true
            else @left << @upstream.body(part)
            end
          end
        end

        def takes? = !@asked_all && !@unwanted && @left.bytesize <= MOST_AHEAD

        # A server that has answered may not want the rest, which is not read, either: the browser's connection ends with the answer.
        def send_on
          until @left.empty?
            count = @server.write_nonblock(@left, exception: false)
            return if count == :wait_writable
            @left = @left.byteslice(count..)
          end
        rescue SystemCallError, IOError
          @left = +""
          @unwanted = true
        end

        def wait
          leaving = @asked_all && !@heard && @until.nil? && (@endless || !@begun)
          ready, = IO.select((takes? || leaving) ? [@server, @wire.socket] : [@server], @left.empty? ? nil : [@server], nil, patience)
          raise Wire::Gone if ready.nil? && @until && !@begun
          raise Failed.new(504, "#{@upstream.authority} was silent for #{@timeout} s") unless ready
          look_for_browser if leaving && ready.include?(@wire.socket)
        end

        def patience
          return [@until - now, 0].max if @until && !@begun
          @endless ? nil : @timeout
        end

        # Who says the next thing already is there. Who has gone wants no more events, and of all else an answer that comes soon: they may have ended
        # but their own half of the connection.
        def look_for_browser
          return @heard = true unless @wire.ended?
          raise Wire::Gone if @endless
          @until = now + @grace
        rescue SystemCallError, IOError
          raise Wire::Gone
        end

        def receive
          bytes = @server.read_nonblock(PIECE, exception: false)
          return if bytes == :wait_readable
          bytes ? @parser << bytes : @parser.close
          while !@over && (part = @parser.next)
            pass(part)
          end
          lost if bytes.nil? && !@over
        rescue Parser::Malformed => error
          raise Failed.new(502, "#{@upstream.authority} answered with what is no HTTP: #{error.message}")
        rescue SystemCallError, IOError => error
          raise Failed.new(502, "#{@upstream.authority} broke off the connection: #{error.message}")
        end

        def pass(part)
          case part
          when Parser::Response then part.interim? ? interim(part) : begin_answer(part)
          when :end
            return unless @downstream # of an interim one
            @wire.write(@downstream.finish)
            @over = true
          else
            @bytes += part.bytesize
            @wire.write(@downstream.body(part))
          end
        end

        def interim(response)
          bytes = Forwarding.interim(response, @request, via: @upstream.via)
          @wire.write(bytes) if bytes
        end

        def begin_answer(response)
          @status = response.status
          @endless ||= response.values("content-type").any? { |value| value.match?(EVENTS) }
          @told&.call(response)
          @downstream = Forwarding.response(response, @request, via: @upstream.via, close: !@asked_all || @last.call)
          @begun = true
          @wire.write(@downstream.head)
        end

        def lost = raise(Failed.new(502, "#{@upstream.authority} closed the connection before its answer was whole"))
      end
    end
  end
end
