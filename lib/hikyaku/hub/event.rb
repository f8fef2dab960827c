# frozen_string_literal: true

module Hikyaku
  class Hub
    # Encodes events as Server-Sent Events: bytes, made once and shared by all streams.
    #
    # HTML Living Standard, section "Server-sent events"; Mercure draft-08, sections "Publication" and
    # "Server-Sent Events Field Injection".
    module Event
      LINE_BREAK = /\r\n|\r|\n/
      private_constant :LINE_BREAK

      # A comment that keeps proxies and clients from closing an idle stream.
      HEARTBEAT = ":\n\n".b.freeze
      # A comment that tells the client of a changeable stream that all missed events were sent.
      CAUGHT_UP = ": caught up\n\n".b.freeze

      module_function

      def encode(id:, data:, type: nil, retry_after: nil)
        event = "event: #{type}\n" if type && !type.empty?
        wait = "retry: #{retry_after}\n" if retry_after
        data = data.split(LINE_BREAK, -1).join("\ndata: ") if data.match?(/[\r\n]/)
        "#{event}#{wait}id: #{id}\ndata: #{data}\n\n".force_encoding(Encoding::BINARY).freeze
      end

      # The fields before an event that name the matchers that selected it. Patterns contain no line breaks.
      def names(matchers) = matchers.map { |matcher| "#{matcher.parameter}: #{matcher.pattern}\n" }.join.b

      # An event without an id: it leaves the reader's cursor where it is.
      def transient(data:, type: nil)
        frame = type ? "event: #{type}\n" : +""
        (frame + "data: #{data}\n\n").b.freeze
      end

      def retry_after(milliseconds) = "retry: #{milliseconds}\n\n".b.freeze
    end
  end
end
