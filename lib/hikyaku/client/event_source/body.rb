# frozen_string_literal: true

require_relative "../../http/content_coding"
require_relative "errors"
require_relative "message_pack_parser"
require_relative "parser"

module Hikyaku
  class EventSource
    # The body of an answer, as its header says that it is written: Server-Sent Events or MessagePack, compressed or not. A server need not do
    # what it was asked for: one of another make answers with an event stream.
    class Body
      EVENTS = {"text/event-stream" => Parser}.freeze
      PARSERS = {
        events: EVENTS,
        msgpack: EVENTS.merge(%w[application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac].to_h { |type| [type, MessagePackParser] })
      }.freeze
      CODINGS = {"" => false, "identity" => false, "gzip" => true, "x-gzip" => true}.freeze
      # No byte of gzip becomes more than about 1,032: so much of it becomes a megabyte at most, which is parsed before there is more.
      STEP = 1_024
      private_constant :EVENTS, :PARSERS, :CODINGS, :STEP

      def initialize(response, url, format:, **settings)
        type = response["content-type"].to_s[/\A[^;]*/].strip.downcase
        parser = PARSERS.fetch(format)[type]
        raise Refused.new("#{url} answered with #{type.inspect}, not an event stream", status: 200) unless parser
        coding = response["content-encoding"].to_s.strip.downcase
        compressed = CODINGS.fetch(coding) { raise Refused.new("#{url} answered with the coding #{coding.inspect}; streams may have gzip or none", status: 200) }
        @parser = parser.new(**settings)
        @gzip = HTTP::ContentCoding.decoder(%w[gzip], max_bytes: nil) if compressed
      end

      def last_event_id = @parser.last_event_id

      def retry = @parser.retry

      def feed(bytes, &block)
        return @parser.feed(bytes, &block) unless @gzip
        (0...bytes.bytesize).step(STEP) { |at| @parser.feed(decoded(bytes.byteslice(at, STEP)), &block) }
      end

      private

      # The end of what was compressed need not come: the connection may break, or the hub be ended by force.
      def decoded(bytes)
        @gzip << bytes
      rescue HTTP::ContentCoding::Corrupt, HTTP::ContentCoding::TooLarge => error
        raise Malformed, "the stream's gzip is broken: #{error.message}"
      end
    end
  end
end
