# frozen_string_literal: true

require "puma"
require "puma/server"
require_relative "../../http/parser"
require_relative "../puma_timeouts"

module Hikyaku
  class Server
    class Http < Puma::Server
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
    end
  end
end
