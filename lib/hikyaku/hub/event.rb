# frozen_string_literal: true

module Hikyaku
  class Hub
    # The Server-Sent Events form of what the hub sends: bytes, made once and shared by all who receive them.
    #
    # HTML Living Standard, section "Server-sent events"; Mercure draft-08, sections "Publication" and
    # "Server-Sent Events Field Injection".
    module Event
      LINE_BREAK = /\r\n|\r|\n/
      # Names of fields that say which matcher selected an event: those of the parameters that ask for it.
      FIELDS = {"exact" => "match", "urlpattern" => "match_urlpattern", "uri_template" => "topic"}.freeze
      private_constant :LINE_BREAK, :FIELDS

      # A comment: keeps proxies and clients from closing an idle stream.
      HEARTBEAT = ":\n\n".b.freeze
      # A comment: tells a stream that may be changed that it has been sent what it asked for.
      CAUGHT_UP = ": caught up\n\n".b.freeze

      module_function

      def encode(id:, data:, type: nil, retry_after: nil)
        event = "event: #{type}\n" if type && !type.empty?
        wait = "retry: #{retry_after}\n" if retry_after
        data = data.split(LINE_BREAK, -1).join("\ndata: ") if data.match?(/[\r\n]/)
        "#{event}#{wait}id: #{id}\ndata: #{data}\n\n".force_encoding(Encoding::BINARY).freeze
      end

      # What stands before an event in a stream whose events name the matchers that selected them. Patterns hold no line breaks.
      def names(matchers) = matchers.map { |matcher| "#{FIELDS.fetch(matcher.type)}: #{matcher.pattern}\n" }.join.b

      # An event without an id: it leaves the reader's cursor where it is.
      def transient(data:, type: nil)
        frame = type ? "event: #{type}\n" : +""
        (frame + "data: #{data}\n\n").b.freeze
      end

      def retry_after(milliseconds) = "retry: #{milliseconds}\n\n".b.freeze
    end
  end
end
