# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../cache"
require_relative "../client/connector"
require_relative "../client/settings"
require_relative "browser_connection"
require_relative "basic_auth"
require_relative "errors"
require_relative "forwarding"
require_relative "get_handler"
require_relative "pass_through"
require_relative "status_page"
require_relative "tunnel_relay"
require_relative "user_state"

module Hikyaku
  module HTTP
    class Proxy
      # Answers the requests of one connection from a browser, one after the other.
      class ConnectionHandler
        include Support::Clock

        DISCONNECTED = [BrowserConnection::Disconnected, Errno::EPIPE, Errno::ECONNRESET].freeze
        # Seconds for a client to authenticate itself.
        AUTHENTICATION_TIMEOUT = 15
        FORM_TIMEOUT = 10 # seconds
        MAX_FORM_BYTES = 4_096
        CONNECT_TIMEOUTS = Client::Timeouts.new
        NOT_STORED = "no stored response matches, and the request has only-if-cached"
        private_constant :DISCONNECTED, :AUTHENTICATION_TIMEOUT, :FORM_TIMEOUT, :MAX_FORM_BYTES, :CONNECT_TIMEOUTS, :NOT_STORED

        # The block says whether there is a place for the connection, once the client is authenticated.
        def initialize(socket, proxy, authentication_timeout: AUTHENTICATION_TIMEOUT, &admit)
          @browser = BrowserConnection.new(socket, shutdown: proxy.shutdown)
          @proxy = proxy
          @admit = admit
          @browser.expire_in(authentication_timeout) if proxy.basic_auth
          @user_state = nil
        end

        def run
          while (request = @browser.request)
            break unless answer(request)
          end
        rescue Parser::Malformed => error
          reply(error.status, error.message, nil)
        rescue *DISCONNECTED
          nil
        ensure
          @browser.close
          @user_state&.disconnected
        end

        private

        # Each returns whether another request may follow on the connection.

        def answer(request)
          user_state = user_state_of(request) or return reply_and_continue(407, "authentication is required", request, fields: [BasicAuth::CHALLENGE])
          return reply_last(503, "there are too many connections", request) unless admitted?(user_state)
          return connect(request) if request.method == "CONNECT"
          return send_response(@proxy.status_page(request, read_form, @user_state)) if status_page?(request)
          forward(request, Forwarding.request(request, via: @proxy.via_name))
        rescue StatusError => error
          reply_and_continue(error.status, error.message, request)
        rescue *ResourceExhausted::ERRORS
          @proxy.close_idle
          reply_last(503, ResourceExhausted::TEXT, request)
        end

        def forward(request, upstream)
          return answer_last_hop(upstream) if upstream.is_a?(Forwarding::DownstreamResponse)
          @proxy.destination.check_name(upstream.origin.host, upstream.origin.port)
          return get(request, upstream) if pipelined?(request, upstream)
          return reply_and_continue(504, NOT_STORED, request) if only_if_cached?(request) && %w[GET HEAD].include?(upstream.method)
          pass_through(request, upstream)
        end

        # A URL has no bytes beyond ASCII, and the client sends none. No other request should wait behind an event stream.
        def pipelined?(request, upstream)
          upstream.method == "GET" && upstream.target.ascii_only? && !Forwarding.event_stream?(request.values("accept"))
        end

        def user_state_of(request)
          return @proxy.user_state unless @proxy.basic_auth
          user = @proxy.basic_auth.user(request)
          user && @proxy.user_state(user)
        end

        # A connection belongs to its last user.
        def admitted?(user_state)
          return true if user_state.equal?(@user_state)
          return false unless @user_state || @admit.nil? || @admit.call
          @browser.expire_in(nil)
          @user_state&.disconnected
          @user_state = user_state
          user_state.connected
          true
        end

        def status_page?(request)
          request.form == :origin || (request.form == :absolute && request.authority.delete_suffix(":80").casecmp?(StatusPage::HOST))
        end

        def connect(request)
          origin = Forwarding.tunnel(request)
          @proxy.destination.check_name(origin.host, origin.port)
          server = dial(origin)
          begin
            @browser.write("HTTP/1.1 200 Connection established\r\n\r\n")
            TunnelRelay.new(@browser.socket, server, from_browser: @browser.rest).run
          ensure
            server.close
          end
          false
        rescue RequestFailed => error
          reply_failed(error, request, last: true)
        end

        def read_form
          body = String.new(encoding: Encoding::BINARY)
          loop do
            part = @browser.body
            return body if part == :end
            raise BrowserConnection::Disconnected if part == :wait && !@browser.socket.wait_readable(FORM_TIMEOUT)
            body << part if part.is_a?(String)
            raise Parser::Malformed.new(:head_too_large) if body.bytesize > MAX_FORM_BYTES
          end
        end

        def answer_last_hop(response)
          read_form
          send_response(response)
        end

        def pass_through(request, upstream, body_read: false)
          entry = @user_state.page_log.of(request["referer"])&.add(upstream.url, :other, :passed, now)
          server = dial(upstream.origin)
          exchange = PassThrough.new(@browser, request, upstream, server, timeout: @proxy.timeout, body_read: body_read, last: -> { @browser.shutting_down? }) do |response|
            @user_state.invalidate(upstream, response)
          end
          exchange.run.tap { entry&.finish(exchange.status, exchange.bytes, now) }
        rescue RequestFailed => error
          reply_failed(error, request, last: !(body_read || drained?(request)))
        rescue StatusError, Parser::Malformed => error
          raise BrowserConnection::Disconnected if exchange&.started? # the browser has a part of another response
          reply_last(error.status, error.message, request)
        ensure
          server&.close
        end

        def get(request, upstream)
          read_form # it has no bytes
          continue = GetHandler.new(@proxy, @browser, request, upstream, @user_state).run
          (continue == :event_stream) ? pass_through(request, upstream, body_read: true) : continue
        rescue InvalidURL => error
          reply(400, error.message, request)
        rescue RequestFailed => error
          reply_failed(error, request)
        rescue StatusError => error
          reply(error.status, error.message, request)
        end

        # A connection to a server, within the limits of {Destination}.
        def dial(origin)
          reader, writer = IO.pipe
          dialer = Client::Dialer.new(origin.hostname, origin.port, timeouts: CONNECT_TIMEOUTS, wake: -> { wake(writer) }, check: @proxy.destination.method(:check))
          IO.select([reader], dialer.waiting, nil, [dialer.deadline - now, 0].max) until dialer.step(now)
          dialer.socket
        ensure
          dialer&.close
          [reader, writer].each { |io| io&.close }
        end

        # The resolver may end after the handler.
        def wake(writer)
          writer.write_nonblock(".", exception: false)
        rescue IOError, SystemCallError
          nil
        end

        # RFC 9111, section 5.2.1.7.
        def only_if_cached?(request) = Cache::Directives.parse(request.values("cache-control")).include?("only-if-cached")

        def status_of(error, request)
          return error.cause.status if error.cause.is_a?(StatusError)
          return 504 if error.instance_of?(RequestFailed) && only_if_cached?(request)
          error.is_a?(TimedOut) ? 504 : 502
        end

        def reply_failed(error, request, last: false)
          return reply(status_of(error, request), error.message, request, last: last) unless ResourceExhausted.cause_of?(error)
          @proxy.close_idle
          reply(503, ResourceExhausted::TEXT, request, last: last)
        end

        # RFC 9112, section 9.6.
        def reply_last(status, text, request) = reply(status, text, request, last: true)

        def reply_and_continue(status, text, request, fields: []) = reply(status, text, request, fields: fields, last: !drained?(request))

        # Whether no unread body precedes the next request.
        def drained?(request) = request.framing == :none && request.method != "CONNECT" && @browser.body == :end

        def reply(status, text, request, fields: [], last: false)
          send_response(Forwarding::DownstreamResponse.text(status, text, request, fields: fields, last: last || @browser.shutting_down?))
        end

        def send_response(response)
          @browser.write(response.head + response.content)
          !response.close?
        end
      end
    end
  end
end
