# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "../cache"
require_relative "account"
require_relative "dial"
require_relative "destination"
require_relative "forwarding"
require_relative "getting"
require_relative "passage"
require_relative "reply"
require_relative "report"
require_relative "shortage"
require_relative "tunnel"
require_relative "wire"

module Hikyaku
  module HTTP
    class Proxy
      # One connection of a browser: its requests, one after the other.
      class Conversation
        include Support::Clock

        # The browser has gone: nobody is there to be told.
        QUIET = [Wire::Gone, Errno::EPIPE, Errno::ECONNRESET].freeze
        EVENTS = %r{\btext/event-stream\b}i
        NOTHING_KEPT = "there is no answer in the cache, and only-if-cached was asked for"
        private_constant :QUIET, :EVENTS, :NOTHING_KEPT

        # Seconds for a stranger to say who they are.
        INTRODUCTION = 15
        private_constant :INTRODUCTION

        def initialize(socket, proxy, introduction: INTRODUCTION, &known)
          @wire = Wire.new(socket, ending: proxy.ending)
          @proxy = proxy
          @known = known
          @wire.hurry(introduction) if proxy.guard
          @account = nil
        end

        def run
          while (request = @wire.request)
            break unless answer(request)
          end
        rescue Parser::Malformed => error
          say(error.status, error.message, nil)
        rescue *QUIET
          nil
        ensure
          @wire.close
          @account&.go
        end

        private

        def answer(request)
          account = account_of(request) or return unknown(request)
          return say_last(503, "there are too many connections", request) unless introduced?(account)
          return connect(request) if request.method == "CONNECT"
          return own(request) if own?(request)
          upstream = Forwarding.request(request, via: @proxy.pseudonym)
          return traced(upstream) if upstream.is_a?(Forwarding::Answer)
          @proxy.destination.check_name(upstream.authority.host, upstream.authority.port)
          return get(request, upstream) if plain_get?(request, upstream)
          return say_and_go_on(504, NOTHING_KEPT, request) if only_if_cached?(request) && upstream.method.match?(/\A(?:GET|HEAD)\z/)
          pass(request, upstream)
        rescue Forwarding::Refused => error
          say_and_go_on(error.status, error.message, request)
        rescue Destination::Refused => error
          say_and_go_on(403, error.message, request)
        rescue *Shortage::KINDS
          @proxy.rest
          say_last(503, Shortage::TEXT, request)
        end

        # No URL has bytes beyond ASCII; who sends them all the same has them passed on as they are. And behind a stream of events nothing else should wait.
        def plain_get?(request, upstream)
          upstream.method == "GET" && upstream.target.ascii_only? && request.values("accept").none? { |value| value.match?(EVENTS) }
        end

        def account_of(request)
          return @proxy.account unless @proxy.guard
          user = @proxy.guard.user(request)
          user && @proxy.account(user)
        end

        # A connection is of whom it was last.
        def introduced?(account)
          return true if account.equal?(@account)
          return false unless @account || @known.nil? || @known.call(account)
          @wire.hurry(nil)
          @account&.go
          @account = account
          account.come
          true
        end

        # RFC 9110, section 11.7.1.
        def unknown(request)
          say_and_go_on(407, "say who you are", request, fields: [["Proxy-Authenticate", 'Basic realm="hikyaku proxy", charset="UTF-8"']])
        end

        # A body that nobody read stands between its request and the next.
        def drained?(request) = request.framing == :none && request.method != "CONNECT" && @wire.body == :end

        def connect(request)
          authority = Forwarding.tunnel(request)
          @proxy.destination.check_name(authority.host, authority.port)
          server = Dial.to(authority.host, authority.port, @proxy.destinations)
          begin
            @wire.write("HTTP/1.1 200 Connection established\r\n\r\n")
            Tunnel.new(@wire.socket, server, from_browser: @wire.rest).run
          ensure
            server.close
          end
          false
        rescue RequestFailed => error
          say_failed(error, request, last: true)
        end

        def own?(request)
          request.form == :origin || (request.form == :absolute && request.authority.delete_suffix(":80").casecmp?(Report::HOST))
        end

        def own(request)
          reply, body = @proxy.page(request, read_body, @account)
          send_whole(reply, body)
        end

        # A form's, and no more.
        def read_body
          body = String.new(encoding: Encoding::BINARY)
          loop do
            part = @wire.body
            return body if part == :end
            raise Wire::Gone if part == :wait && !@wire.socket.wait_readable(10)
            body << part if part.is_a?(String)
            raise Parser::Malformed.new(:head_too_large) if body.bytesize > 4_096
          end
        end

        def traced(answer)
          read_body
          @wire.write(answer.head + answer.content)
          !answer.close?
        end

        def pass(request, upstream, read: false)
          note = @account.visits.of(request["referer"])&.add(upstream.url, :other, :passed, now)
          server = Dial.to(upstream.authority.host, upstream.authority.port, @proxy.destinations)
          passage = Passage.new(@wire, request, upstream, server, timeout: @proxy.patience, asked_all: read, last: -> { @wire.ending? }) do |response|
            @account.changed(upstream.method, upstream.authority, upstream.target, response)
          end
          passage.run.tap { note&.finish(passage.status, passage.bytes, now) }
        rescue RequestFailed => error
          say_failed(error, request, last: !(read || drained?(request)))
        rescue Passage::Failed, Forwarding::Refused, Parser::Malformed => error
          raise Wire::Gone if passage&.begun? # in the middle of one answer no other can be given
          say_last(error.status, error.message, request)
        ensure
          server&.close
        end

        def get(request, upstream)
          read_body # which has no bytes
          again = Getting.new(@proxy, @wire, request, upstream, @account).run
          (again == :events) ? pass(request, upstream, read: true) : again
        rescue InvalidURL => error
          say(400, error.message, request)
        rescue RequestFailed => error
          say_failed(error, request)
        rescue Forwarding::Refused => error
          say(error.status, error.message, request)
        end

        # RFC 9111, section 5.2.1.7.
        def only_if_cached?(request) = Cache::Directives.parse(request.values("cache-control")).include?("only-if-cached")

        def status_of(error, request)
          return 403 if error.cause.is_a?(Destination::Refused)
          return 504 if error.instance_of?(RequestFailed) && only_if_cached?(request)
          error.is_a?(TimedOut) ? 504 : 502
        end

        def say_failed(error, request, last: false)
          return say(status_of(error, request), error.message, request, last: last) unless Shortage.of?(error)
          @proxy.rest
          say(503, Shortage::TEXT, request, last: last)
        end

        # No other request follows, and the browser is told so: RFC 9112, section 9.6.
        def say_last(status, text, request) = say(status, text, request, last: true)

        # If there is no body between this request and the next.
        def say_and_go_on(status, text, request, fields: []) = say(status, text, request, fields: fields, last: !drained?(request))

        def say(status, text, request, fields: [], last: false)
          reply, body = Reply.plain(status, text, request, fields: fields, last: last || @wire.ending?)
          send_whole(reply, (request&.method == "HEAD") ? "" : body)
        end

        def send_whole(reply, body)
          @wire.write(reply.head + body)
          !reply.close?
        end
      end
    end
  end
end
