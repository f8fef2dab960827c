# frozen_string_literal: true

require "puma"
require "puma/server"
require_relative "../../http/parser"
require_relative "../../puma_timeouts"

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
          to_io.wait_readable(NEXT_REQUEST_SECONDS) unless @ready || requests_served.zero? || !@pool.waiting.positive?
          super
        end

        # @param seconds [Numeric] until the timeout
        # @return [Float] when the timeout is
        def set_timeout(seconds)
          super
          @quiet_since = @timeout_at - seconds
          @timeout_at
        end

        # @param time [Float] of the monotonic clock
        # @return [Boolean] whether it has waited for a request, or has not got on with one, from then on
        def quiet_since?(time) = !@quiet_since.nil? && @quiet_since <= time

        # It will be closed for another connection: one is enough.
        #
        # @return [void]
        def chosen
          @quiet_since = nil
        end

        # Its time is over.
        #
        # @return [void]
        def expire
          @timeout_at = 0.0
        end

        # Who has begun a request is told; who has not, has nothing to be answered.
        #
        # @return [void]
        # @raise [Puma::ConnectionError, Puma::HttpParserError]
        def timeout!
          raise Puma::ConnectionError if awaiting == :request
          # Without a version it would be answered as HTTP/1.0 is.
          env["SERVER_PROTOCOL"] ||= "HTTP/1.1"
          refuse(408, "too slow")
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

        # Puma looks for the end of a trailer section in what has come with the last chunk, and takes for granted that it is there.
        def decode_chunk(chunk)
          super
        rescue NoMethodError
          refuse(400, "a trailer section that comes in pieces")
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
    end
  end
end
