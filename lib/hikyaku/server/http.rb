# frozen_string_literal: true

require "json"
require "puma"
require "puma/server"
require "rack/utils"
require_relative "../support/clock"
require_relative "puma_timeouts"
require_relative "middleware"
require_relative "open_files"
require_relative "log"
require_relative "../http/parser"

module Hikyaku
  class Server
    # Puma, set up for a hub: few threads, the method QUERY, errors as problem+json, sockets that were opened elsewhere.
    class Http < Puma::Server
      include Support::Clock

      # RFC-to-be QUERY beside what Puma knows; the hub itself answers 405 to those that it does not want.
      METHODS = (Puma::Const::SUPPORTED_HTTP_METHODS + %w[QUERY]).uniq.freeze
      SECONDS = {
        # For a request's head, and for a body to catch up with its pace.
        first_data_timeout: 10,
        # Between two requests of one connection.
        persistent_timeout: 20,
        # For requests that are being answered when the process stops.
        force_shutdown_after: 5,
        pool_shutdown_grace_time: 1
      }.freeze
      DETAILS = {
        400 => "the request is not understood",
        408 => "the request took too long to arrive",
        413 => "the body is larger than max_request_bytes allows",
        414 => "the request's target is longer than any that is needed",
        431 => "a part of the request is larger than any that is needed",
        501 => "the request's method or transfer coding is not known here",
        503 => "the hub is stopping",
        505 => "the version is neither HTTP/1.0 nor HTTP/1.1"
      }.freeze
      DETAILS_OTHER = "the hub made a mistake; its log says more"
      # What is said to a client that may still be sending, and the bytes and seconds for which it may go on: without, closing the socket would take
      # the answer away again (RFC 9112, section 9.6).
      TOO_LARGE = [413, 414, 431].freeze
      LINGER = {bytes: 4_194_304, seconds: 1.0}.freeze
      private_constant :METHODS, :SECONDS, :DETAILS, :DETAILS_OTHER, :TOO_LARGE, :LINGER

      def initialize(app, logger:, listener:, threads:, max_request_bytes:, files: Process.getrlimit(:NOFILE).first)
        @logger = logger
        PumaTimeouts.install(logger)
        @connection_limit = ConnectionLimit.new(OpenFiles.for_connections(files), logger: logger) { @reactor }
        super(app, nil, {
          min_threads: threads, max_threads: threads, environment: "production", log_writer: PumaLog.new(logger),
          # What is a little too large is for the application to refuse, with its own headers.
          supported_http_methods: METHODS, http_content_length_limit: 2 * max_request_bytes, max_keep_alive: 100_000,
          lowlevel_error_handler: ->(_error, _env, status) { problem(status) }, **SECONDS
        })
        listener.sockets.each { |socket| adopt(socket) }
      end

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
        @connection_limit.watch(socket)
        binder.ios << socket
        # Who comes through a Unix socket has no address; Puma would ask the socket in vain.
        binder.envs[socket] = binder.proto_env.merge("REMOTE_ADDR" => nil) if socket.is_a?(UNIXServer)
      end

      # RFC 9457.
      def problem(status)
        body = JSON.generate(type: "about:blank", title: Rack::Utils::HTTP_STATUS_CODES[status], status: status, detail: DETAILS.fetch(status, DETAILS_OTHER))
        [status, {"content-type" => "application/problem+json", "cache-control" => "no-store", "date" => DateHeader.now, **Web::Problem::NOSNIFF}, [body]]
      end

      # Puma has a text of its own for 413.
      def response_to_error(client, requests, error, status)
        prepare_response(*lowlevel_error(error, client.env, status), requests, client)
        linger(client.io) if TOO_LARGE.include?(status)
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

      # A connection, with some things that Puma's has not.
      class Client < Puma::Client
        include PumaTimeouts::Deadlines

        # Seconds for which a thread that has answered a request waits for the next one of the connection. A publisher that
        # waits for each answer has it sent by then; to give the connection back to Puma's reactor and to get it again
        # wakes three threads, which costs more than the request.
        NEXT_REQUEST_SECONDS = 0.002
        VERSIONS = %w[HTTP/1.0 HTTP/1.1].freeze
        LIMITS = HTTP::Parser::Limits.new
        # A body may take so many bytes on its way, and so many for each of its own: beyond that chunks are there to make work.
        MOST_FRAMING = 65_536
        FRAMING = 16
        # Lines of a head that are no field: the request line, and the empty one.
        OTHER_LINES = 2
        # What Puma says of its own limits, which are other ones.
        TOO_LONG = /\AHTTP element (?:(REQUEST_URI|REQUEST_PATH|QUERY_STRING)|\w+) is longer than/
        private_constant :NEXT_REQUEST_SECONDS, :VERSIONS, :LIMITS, :MOST_FRAMING, :FRAMING, :OTHER_LINES, :TOO_LONG

        attr_writer :pool

        # Puma 8.0.2 gives a connection to its reactor, and empties the connection's buffer afterwards: when another thread is
        # answering by then, the beginning of that answer is gone. The buffer of a thread is nobody else's.
        def io_buffer = Thread.current[:hikyaku_answer] ||= Puma::IOBuffer.new

        # Only while another thread is free: nobody waits for one that waits.
        def eagerly_finish
          to_io.wait_readable(NEXT_REQUEST_SECONDS) unless @ready || requests_served.zero? || !@pool.waiting.positive?
          super
        end

        def set_timeout(seconds)
          super
          @quiet_since = @timeout_at - seconds
          @timeout_at
        end

        def quiet_since?(time) = !@quiet_since.nil? && @quiet_since <= time

        # It will be closed for another connection: one is enough.
        def chosen
          @quiet_since = nil
        end

        # Its time is over.
        def expire
          @timeout_at = 0.0
        end

        # Who has begun a request is told; who has not, has nothing to be answered.
        def timeout!
          raise Puma::ConnectionError if awaiting == :request
          # Without a version it would be answered as HTTP/1.0 is.
          env["SERVER_PROTOCOL"] ||= "HTTP/1.1"
          refuse(408, "too slow")
        end

        # Puma looks for a request line in what is no request, to say what is wrong with it, and takes for granted that it is there.
        def parser_execute
          super.tap { |bytes| check_size(bytes) }
        rescue NoMethodError
          refuse(400, "there is no request line")
        rescue Puma::HttpParserError => error
          limit = TOO_LONG.match(error.message) or raise
          refuse_size(limit[1] ? 414 : 431, error.message)
        end

        private

        # Puma counts no fields, and takes longer ones than the engine in C.
        def check_size(bytes)
          refuse_size(env.key?("REQUEST_URI") ? 431 : 414, "the head is too large") if bytes > LIMITS.head_bytes
          return unless @parser.finished?
          head = @buffer.byteslice(0, bytes)
          refuse_size(431, "too many fields") if head.count("\n") - OTHER_LINES > LIMITS.headers
          refuse_size(431, "a line is too long") if bytes > LIMITS.line_bytes && head.each_line("\r\n", chomp: true).any? { |line| line.bytesize > LIMITS.line_bytes }
        end

        # Puma may not have come to the version yet: it would be answered as HTTP/1.0 is.
        def refuse_size(status, what)
          env["SERVER_PROTOCOL"] ||= "HTTP/1.1"
          refuse(status, what)
        end

        # Puma takes chunks that RFC 9112, section 7.1, does not know, and fails at others. The parser reads them as the engine in C does.
        def setup_chunked_body(bytes)
          @input = HTTP::Parser::Input.new
          @chunks = HTTP::Parser::Body.new(:chunked, nil, @input, LIMITS)
          @framed = 0
          super
        end

        def decode_chunk(bytes)
          @input << bytes
          @framed += bytes.bytesize
          while (part = @chunks.next)
            return whole if part == :end
            write_chunk(part)
          end
          # What a chunk says that it will be counts at once.
          raise_above_http_content_limit if @chunked_content_length + @chunks.left > @http_content_length_limit
          refuse(400, "chunks of hardly anything") if @framed > MOST_FRAMING + FRAMING * @chunked_content_length
          false
        rescue HTTP::Parser::Malformed => error
          refuse(error.status, error.message)
        end

        def whole
          @body.rewind
          @buffer = @input.empty? ? nil : @input.take(@input.size)
          set_ready
          true
        end

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
          refuse(400, "the field Host") if host ? !(host.empty? || host == @host || HTTP::Parser::Target.authority?(host)) : env["SERVER_PROTOCOL"] == "HTTP/1.1"
          # Of a connection's requests it is the same, nearly always.
          @host = host
          # An empty port is none: RFC 3986, section 3.2.3.
          env["HTTP_HOST"] = host.chomp(":") if host&.end_with?(":")
          take_target unless env["REQUEST_URI"].start_with?("/")
        end

        # Puma takes what has no authority, or user information, and says of no path that it is empty.
        def take_target
          target = HTTP::Parser::Target.new(env["REQUEST_METHOD"], env["REQUEST_URI"].b)
          return if target.form == :asterisk
          env["HTTP_HOST"] = target.authority.chomp(":")
          env["REQUEST_PATH"] = target.path.empty? ? "/" : target.path
          env["QUERY_STRING"] = target.query.to_s
        rescue HTTP::Parser::Malformed => error
          refuse(error.status, error.message)
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

      # Accepts connections as long as files are left: a few are kept for the process itself. When there is no room for another
      # connection, one that has not sent a whole head of a request for a while, or has not got on with its body, is closed for it; if there is none, the new one is told 429.
      class ConnectionLimit
        include Support::Clock

        # Seconds between two tries when there is no file at all, and between two lines of the log.
        PAUSE = 0.1
        SILENCE = 10
        # Seconds without a whole head, or with a body that does not get on, after which a connection may be closed for another.
        QUIET = 1
        # Connections that were told 429 stay open for so many seconds, since closing one at once may take the answer away (RFC 9112,
        # section 9.6); but never more than so many.
        LINGER = {seconds: 1, connections: 16}.freeze
        FULL = JSON.generate(type: "about:blank", title: "Too Many Requests", status: 429, detail: "the hub holds as many connections as it may")
        private_constant :PAUSE, :SILENCE, :QUIET, :LINGER, :FULL

        # What the reactor takes for a client that has gone already, and asks on its own thread: then it closes another.
        Eviction = Struct.new(:reactor, :client) do
          def io_ok?
            if reactor.instance_variable_get(:@timeouts).include?(client)
              client.expire
              reactor.send(:wakeup!, client)
            end
            false
          end
        end
        private_constant :Eviction

        # For a socket that listens.
        module Watched
          attr_writer :connection_limit

          def accept_nonblock(*) = @connection_limit.admit { super }
        end
        private_constant :Watched

        def initialize(files, logger:, &reactor)
          @files = files
          @logger = logger
          @reactor = reactor
          @refused = []
        end

        def watch(socket)
          socket.extend(Watched).connection_limit = self
        end

        # The system gives the lowest number that is free: it says how many files are open.
        def admit
          forget_refused unless @refused.empty?
          connection = yield
          return connection if connection.fileno < @files || evict
          refuse(connection)
          raise IO::EAGAINWaitReadable, "there is no room for a connection"
        rescue Errno::EMFILE, Errno::ENFILE
          evict
          complain
          sleep PAUSE
          raise IO::EAGAINWaitReadable, "no file is left for a connection"
        end

        private

        def evict
          reactor = @reactor.call or return false
          since = now - QUIET
          quiet = reactor.instance_variable_get(:@timeouts).find { |client| client.quiet_since?(since) } or return false
          quiet.chosen
          reactor.add(Eviction.new(reactor, quiet))
        end

        def refuse(connection)
          connection.write_nonblock("HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n" \
            "retry-after: #{rand(1..5)}\r\ndate: #{DateHeader.now}\r\nconnection: close\r\ncontent-length: #{FULL.bytesize}\r\n\r\n#{FULL}", exception: false)
          connection.close_write
          @refused << [now, connection]
        rescue SystemCallError, IOError
          connection.close
        end

        def forget_refused
          before = now - LINGER[:seconds]
          @refused.shift.last.close while @refused.any? && (@refused.size >= LINGER[:connections] || @refused.first.first <= before)
        end

        def complain
          return if @complained && now - @complained < SILENCE
          @complained = now
          @logger.error("no file is left for another connection; raise the limit of the process (ulimit -n)")
        end
      end
      private_constant :ConnectionLimit
    end
  end
end
