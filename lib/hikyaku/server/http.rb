# frozen_string_literal: true

require "json"
require "puma"
require "puma/server"
require "rack/utils"
require_relative "../http/parser"
require_relative "dated"
require_relative "puma_log"

module Hikyaku
  class Server
    # Puma, set up for a hub: few threads, the method QUERY, errors as problem+json, sockets that were opened elsewhere.
    class Http < Puma::Server
      # RFC-to-be QUERY beside what Puma knows; the hub itself answers 405 to those that it does not want.
      METHODS = (Puma::Const::SUPPORTED_HTTP_METHODS + %w[QUERY]).uniq.freeze
      SECONDS = {
        # Until a request is there: a client that dribbles holds a socket, no thread.
        first_data_timeout: 10,
        # Between two requests of one connection.
        persistent_timeout: 20,
        # For requests that are being answered when the process stops.
        force_shutdown_after: 5,
        pool_shutdown_grace_time: 1
      }.freeze
      DETAILS = {
        400 => "the request is not understood",
        413 => "the request is larger than the hub takes",
        501 => "the request's method or transfer coding is not known here",
        503 => "the hub is stopping",
        505 => "the version is neither HTTP/1.0 nor HTTP/1.1"
      }.freeze
      DETAILS_OTHER = "the hub made a mistake; its log says more"
      # Bytes and seconds that a client which is told 413 may go on sending: without, closing the socket would take
      # the answer away again (RFC 9112, section 9.6).
      LINGER = {bytes: 4_194_304, seconds: 1.0}.freeze
      private_constant :METHODS, :SECONDS, :DETAILS, :DETAILS_OTHER, :LINGER

      # @param app [#call] a Rack application
      # @param logger [Logger]
      # @param listener [Listener]
      # @param threads [Integer]
      # @param max_request_bytes [Integer]
      def initialize(app, logger:, listener:, threads:, max_request_bytes:)
        @logger = logger
        super(app, nil, {
          min_threads: threads, max_threads: threads, environment: "production", log_writer: PumaLog.new(logger),
          # What is a little too large is for the application to refuse, with its own headers.
          supported_http_methods: METHODS, http_content_length_limit: 2 * max_request_bytes, max_keep_alive: 100_000,
          lowlevel_error_handler: ->(_error, _env, status) { problem(status) }, **SECONDS
        })
        listener.sockets.each { |socket| adopt(socket) }
      end

      # A connection, with some things that Puma's has not.
      class Client < Puma::Client
        # Seconds for which a thread that has answered a request waits for the next one of the connection. A publisher that
        # waits for each answer has it sent by then; to give the connection back to Puma's reactor and to get it again
        # wakes three threads, which costs more than the request.
        NEXT_REQUEST_SECONDS = 0.002
        VERSIONS = %w[HTTP/1.0 HTTP/1.1].freeze
        AUTHORITY = %r{\A[A-Za-z][A-Za-z0-9+.-]*://([^/?#]+)}
        private_constant :NEXT_REQUEST_SECONDS, :VERSIONS, :AUTHORITY

        # @return [Puma::ThreadPool] where others may be waiting for a thread
        attr_writer :pool

        # Puma 8.0.2 gives a connection to its reactor, and empties the connection's buffer afterwards: when another thread is
        # answering by then, the beginning of that answer is gone. The buffer of a thread is nobody else's.
        #
        # @return [Puma::IOBuffer] in which an answer is gathered
        def io_buffer = Thread.current[:hikyaku_answer] ||= Puma::IOBuffer.new

        # Only while another thread is free: nobody waits for one that waits.
        #
        # @return [Boolean] a whole request is there
        def eagerly_finish
          return true if super
          return false if requests_served.zero? || !@pool.waiting.positive? || !to_io.wait_readable(NEXT_REQUEST_SECONDS)
          super
        end

        # A chunk's size may be a number that Ruby cannot read so many bytes at once.
        #
        # @return [Boolean] a whole request is there
        def try_to_finish
          super
        rescue RangeError
          refuse(400, "the size of a chunk")
        end

        private

        def setup_body
          check_version
          check_target
          check_framing
          super
        end

        # RFC 9112, section 2.3.
        def check_version
          refuse(505, "the version") unless VERSIONS.include?(env["SERVER_PROTOCOL"])
        end

        # RFC 9112, section 3.2: one Host, of good syntax; that of an absolute target goes before it.
        def check_target
          host = env["HTTP_HOST"]
          refuse(400, "a target with a fragment") if env.key?("FRAGMENT")
          refuse(400, "the field Host") if host ? !(host.empty? || HTTP::Parser::Target.authority?(host)) : env["SERVER_PROTOCOL"] == "HTTP/1.1"
          authority = env["REQUEST_URI"].to_s[AUTHORITY, 1]
          env["HTTP_HOST"] = authority if authority
        end

        # A request that says both how long its body is and that it is chunked is refused: two readers may take two
        # different things for the next request (RFC 9112, section 6.1). So is one that says it to a version that has no
        # chunks, or that has other codings.
        def check_framing
          coding = env["HTTP_TRANSFER_ENCODING"] or return
          refuse(400, "Content-Length beside Transfer-Encoding") if env.key?("CONTENT_LENGTH")
          refuse(400, "Transfer-Encoding in HTTP/1.0") if env["SERVER_PROTOCOL"] == "HTTP/1.0"
          refuse(501, "transfer codings other than chunked") if coding.include?(",")
        end

        def refuse(status, what)
          @error_status_code = status
          env["HTTP_CONNECTION"] = "close"
          raise Puma::HttpParserError, what
        end
      end
      private_constant :Client

      private

      # Answers are small and leave in one write: to hold them back with TCP_CORK, and to ask the kernel first whether the
      # client is still there, are four system calls for each publish.
      def cork_socket(_socket) = nil

      def uncork_socket(_socket) = nil

      def closed_socket?(socket) = socket.closed?

      # As Puma makes its clients.
      def new_client(io, socket)
        Client.new(io, binder.env(socket)).tap do |client|
          client.pool = @thread_pool
          client.listener = socket
          client.env_set_http_version = @env_set_http_version
          client.http_content_length_limit = @http_content_length_limit
          client.supported_http_methods = @supported_http_methods
        end
      end

      def adopt(socket)
        socket.extend(Patience).logger = @logger
        binder.ios << socket
        # Who comes through a Unix socket has no address; Puma would ask the socket in vain.
        binder.envs[socket] = binder.proto_env.merge("REMOTE_ADDR" => nil) if socket.is_a?(UNIXServer)
      end

      # RFC 9457.
      def problem(status)
        body = JSON.generate(type: "about:blank", title: Rack::Utils::HTTP_STATUS_CODES[status], status: status, detail: DETAILS.fetch(status, DETAILS_OTHER))
        [status, {"content-type" => "application/problem+json", "cache-control" => "no-store", "date" => Dated.now}, [body]]
      end

      # Puma has a text of its own for 413.
      def response_to_error(client, requests, error, status)
        prepare_response(*lowlevel_error(error, client.env, status), requests, client)
        linger(client.io) if status == 413
      end

      def linger(socket)
        socket.close_write
        deadline = now + LINGER[:seconds]
        left = LINGER[:bytes]
        while left > 0 && (wait = deadline - now) > 0 && socket.wait_readable(wait)
          bytes = socket.read_nonblock(65_536, exception: false)
          break if bytes.nil?
          left -= bytes.bytesize unless bytes == :wait_readable
        end
      rescue IOError, SystemCallError
        nil
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # When no file is left for a connection, Puma would try again at once, and write a line each time, for ever.
      module Patience
        # Seconds between two tries, and between two lines of the log.
        PAUSE = 0.1
        SILENCE = 10

        attr_writer :logger

        # @return [BasicSocket]
        def accept_nonblock(*)
          super
        rescue Errno::EMFILE, Errno::ENFILE
          complain
          sleep PAUSE
          raise IO::EAGAINWaitReadable, "no file is left for a connection"
        end

        private

        def complain
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          return if @complained && now - @complained < SILENCE
          @complained = now
          @logger.error("no file is left for another connection; raise the limit of the process (ulimit -n)")
        end
      end
      private_constant :Patience
    end
  end
end
