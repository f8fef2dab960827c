# frozen_string_literal: true

require "ipaddr"
require "securerandom"
require "socket"
require_relative "../../hub/native_engine"

module Hikyaku
  class Server
    class NativeReactor
      # The server's side. The reactor reads requests from sockets that it listens on, or that are handed to it. It publishes
      # and subscribes by itself where it remembers what was decided for the same values; all else is asked, here:
      #
      #     reactor.take_requests(path: "/.well-known/mercure")
      #     reactor.listen(TCPServer.new("127.0.0.1", 3000))
      #     while (request = reactor.next_request)             on as many threads as are to answer
      #       status, headers, body = app.call(request.env)
      #       reactor.remember(request, grant, head: head)     where something was granted, before it is answered
      #       reactor.answer(request, head, body)              or answer_stream, or answer_yourself
      #     end
      #
      # What a decision that may be remembered can depend on is all that such a request's `env` holds, so that nothing else can
      # have decided. A request that nobody answers is answered with 500 when its object goes.
      module Requests
        # Seconds after which a waiting thread looks whether somebody wants it.
        PATIENCE = 1.0
        LIMITS = {max_topics: 1_000, max_topic_bytes: 4_096, max_id_bytes: 1_024, max_type_bytes: 256, max_body_bytes: 1_048_576, max_fields: 16_000}.freeze
        HTTP = {max_head_bytes: 64 * 1024, max_asks: 4_096, max_connections: nil, max_of_address: nil, head_timeout: 10, idle_timeout: 20}.freeze
        private_constant :PATIENCE, :LIMITS, :HTTP

        # Prepares for requests. Once, before the reactor has anything to do.
        def take_requests(path:, cookie_names: [], legacy: false, counts_loopback: true, dates: false,
          trusted_proxies: [], max_table_bytes: 67_108_864, **limits)
          unknown = limits.keys - LIMITS.keys - HTTP.keys
          raise ArgumentError, "unknown limits: #{unknown.join(", ")}" if unknown.any?
          raise IOError, "the reactor runs already" if _open?
          networks = trusted_proxies.map { |range| [range.ipv4? ? 4 : 6, range.prefix, range.hton] }
          _gate(@engine, path: path, cookie_names: cookie_names, legacy: legacy, counts_loopback: counts_loopback, dates: dates, trusted_proxies: networks,
            max_table_bytes: max_table_bytes, secret: SecureRandom.bytes(16), **LIMITS, **limits.slice(*LIMITS.keys))
          @options = {**@options, **HTTP, **LIMITS.slice(:max_body_bytes), **limits.slice(*HTTP.keys, :max_body_bytes), serves: true}
        end

        # Accepts connections.
        def listen(socket)
          own!
          _listen(socket.fileno, socket.is_a?(TCPServer)) or raise IOError, "the reactor is stopping, or was not told to take requests"
        end

        # Takes over a connection on which a request, or its beginning, was read already.
        def adopt(socket, bytes = "")
          own!
          _adopt(socket.fileno, bytes)
        ensure
          socket.close
        end

        # Waits for a request that needs an answer.
        def next_request(timeout: nil) = wait_for(timeout) { |seconds| _next(seconds) }

        def answer(request, head, body = nil, close: false) = _answer(request, head, body, close)

        # Answers with an event stream.
        def answer_stream(request, head, subscriber)
          @engine.handed_over(subscriber)
          _answer_stream(request, head, subscriber.serial)
        end

        # Gives the connection away: the caller answers, and closes it.
        def answer_yourself(request)
          descriptor = _answer_yourself(request)
          descriptor && Socket.for_fd(descriptor)
        end

        # Remembers what was decided, for requests with the same values, until `forget` or the grant's end. Does nothing for a
        # request about which nothing may be remembered.
        def remember(request, grant, head:)
          key = request.key or return
          epoch = request.epoch
          @hub.drive { |engine| _remember(engine, key, epoch, engine.compile(grant), head) }
        end

        private

        # What the block has found: nil when there was nothing in its time, false when there will be nothing.
        def wait_for(timeout)
          deadline = timeout && monotonic + timeout
          while _open?
            left = deadline ? deadline - monotonic : PATIENCE
            found = yield left.clamp(0, PATIENCE)
            return found if found
            return if found == false || (deadline && monotonic >= deadline)
          end
        rescue IOError
          nil # it was closed meanwhile
        end

        def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      include Requests
    end
  end
end
