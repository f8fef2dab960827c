# frozen_string_literal: true

require "json"
require_relative "../support/clock"
require_relative "../http/parser"
require_relative "connection"

module Hikyaku
  class Doctor
    # One request, and what comes back: when the head, when each piece of the body, and how it ended.
    #
    # Times are those of the monotonic clock, but for `asked_at` and `answered_at`, which are compared with a server's clock.
    class Exchange
      include Support::Clock

      # Of a body that is kept; what follows is counted only.
      KEPT_BYTES = 262_144
      private_constant :KEPT_BYTES

      attr_reader :head
      attr_reader :sent_at
      attr_reader :head_at
      attr_reader :last_byte_at
      attr_reader :ended
      attr_reader :ended_at
      attr_reader :body
      attr_reader :asked_at
      attr_reader :answered_at

      def initialize(connection, method, bytes, seconds:)
        @connection = connection
        @parser = HTTP::Parser.new(:response)
        @parser.request_method = method
        @body = +"".b
        @asked_at = Time.now
        connection.write(bytes, seconds)
        @sent_at = now
      end

      # Reads what comes until the block is content, the time is over, or nothing more can come.
      def wait(seconds)
        deadline = now + seconds
        loop do
          return true if block_given? ? yield : complete?
          left = deadline - now
          return false if @ended || left <= 0
          pump(left)
        end
      end

      # Reads once.
      def pump(seconds = 0)
        return if @ended
        case (bytes = @connection.read(seconds))
        when :nothing then nil
        when :reset then finish(:reset)
        when nil then close_parser
        else
          @parser << bytes
          parse
        end
      end

      def complete? = @ended == :complete

      def status = @head&.status

      def [](name)
        values = @head ? @head.values(name) : []
        values.join(", ").force_encoding(Encoding::UTF_8).scrub("?") unless values.empty?
      end

      def type = self["content-type"]&.slice(/\A[^;\s]*/)&.downcase

      def json
        document = JSON.parse(@body)
        document if document.is_a?(Hash)
      rescue JSON::ParserError, EncodingError
        nil
      end

      def problem? = type == "application/problem+json"

      def detail = (json&.fetch("detail", nil).to_s if problem?)

      def head_seconds = (@head_at - @sent_at if @head_at)

      def io = @connection.io

      def address = @connection.address

      def close = @connection.close

      private

      def parse
        while (part = @parser.next)
          case part
          when :end then return finish(:complete)
          when String then take(part)
          else begin_answer(part)
          end
        end
      rescue HTTP::Parser::Malformed
        finish(:malformed)
      end

      def begin_answer(head)
        return if head.interim?
        @head = head
        @head_at = now
        @answered_at = Time.now
      end

      # A stream without a length ends with its connection, and is then complete for HTTP: here it was closed.
      def close_parser
        @parser.close
        parse
        @ended = :closed if @ended.nil? || (@ended == :complete && @head&.framing == :until_close)
        @ended = :closed if @ended == :malformed && @head
        @ended_at ||= now
      end

      def take(bytes)
        @last_byte_at = now
        @body << bytes.byteslice(0, KEPT_BYTES - @body.bytesize) if @body.bytesize < KEPT_BYTES
      end

      def finish(how)
        @ended = how
        @ended_at = now
      end
    end
  end
end
