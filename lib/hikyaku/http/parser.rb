# frozen_string_literal: true

require_relative "parser/body"
require_relative "parser/head_reader"
require_relative "parser/input"
require_relative "parser/limits"
require_relative "parser/malformed"
require_relative "parser/native_head_reader"
require_relative "parser/request"
require_relative "parser/response"

module Hikyaku
  module HTTP
    # Takes HTTP/1.0 and HTTP/1.1 messages out of the bytes of one connection, however they are cut. No I/O.
    #
    # RFC 9112, and RFC 9110 where it speaks of fields. Strict: what two readers could understand differently is refused. The
    # parser of the native engine, ext/hikyaku/engine/wire/hk_http1.h, has the same rules, which stand there.
    #
    #     parser = Hikyaku::HTTP::Parser.new(:response)
    #     parser.request_method = "HEAD"           # of the request that is answered next
    #     parser << bytes
    #     while (part = parser.next)
    #       case part
    #       when Hikyaku::HTTP::Parser::Response   # the head
    #       when String                            # a piece of the body
    #       when :end                              # of the message; the next one may follow
    #       end
    #     end
    #
    # Pipelined messages come one after the other. What follows a message that is the last of its connection
    # (Head#keep_alive? is false) is for the caller to disregard.
    class Parser
      # @return [String] the method of the request that the next response answers: it decides whether there is a body
      attr_accessor :request_method

      # @param kind [Symbol] :request or :response
      # @param limits [Integer] in bytes `max_method_bytes:`, `max_target_bytes:`, `max_line_bytes:` (one header line),
      #   `max_head_bytes:`, `max_chunk_line_bytes:` (the size of a chunk with its extensions), `max_trailer_bytes:`; in
      #   number `max_headers:`, `max_leading_lines:` (empty lines before a request)
      # @param native [Boolean] whether heads of responses are read by the engine in C, as they are where `hikyaku/native` has been loaded
      # @raise [ArgumentError] there is no such kind or no such limit
      def initialize(kind, native: NativeHeadReader.there?, **limits)
        @kind = kind
        @limits = Limits.new(**limits)
        @input = Input.new
        native &&= kind == :response && NativeHeadReader.keeps?(@limits)
        @head_reader = native ? NativeHeadReader.new(@input, @limits) : HeadReader.new(kind, @input, @limits)
        @request_method = "GET"
        @body = @failure = nil
        @closed = @switched = false
      end

      # @param bytes [String] what has arrived
      # @return [self]
      def <<(bytes)
        @input << bytes
        self
      end

      # Says that nothing more arrives: what lasts until the connection is closed ends with it.
      #
      # @return [void]
      def close
        @closed = true
      end

      # @return [Request, Response, String, Symbol, nil] the head of a message, then its body in binary pieces as they have
      #   arrived, then :end; nil when more bytes are needed, and after the head that ends HTTP on this connection: of a
      #   CONNECT request, or of a response for which Head#upgrade? is true
      # @raise [Malformed] the connection cannot be used any more; raised again by every call that follows
      def next
        raise @failure if @failure
        advance
      rescue Malformed => error
        @failure = error
        raise
      end

      # @return [Boolean] whether no message has begun that did not end
      def idle? = !@body && !@head_reader.begun? && @input.empty?

      # Takes what was not parsed: after a head that ends HTTP on this connection, the first bytes of what follows.
      #
      # @return [String] binary
      def rest = @input.take(@input.size)

      # @return [String] without the bytes
      def inspect = "#<#{self.class} #{@kind} #{@failure&.reason || (idle? ? :idle : :busy)}>"

      private

      def advance
        return if @switched
        part = @body ? next_of_body : next_head
        return part if part || !@closed || idle?
        raise Malformed.new(:truncated) unless @body&.until_close?
        finish
      end

      def next_head
        head = @head_reader.read(@request_method) or return
        @body = Body.new(head.framing, head.content_length, @input, @limits)
        @switching = head.ends_http?
        head
      end

      def next_of_body
        part = @body.next
        (part == :end) ? finish : part
      end

      def finish
        @body = nil
        @switched = @switching
        :end
      end
    end
  end
end
