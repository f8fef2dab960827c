# frozen_string_literal: true

module Hikyaku
  class Web
    # Link header values (RFC 8288) and entity tags (RFC 9110, section 8.8.3) that carry event ids.
    #
    # Mercure draft-08, section "Hub Discovery".
    module LinkHeader
      module_function

      # The value of a `Link` header that leads to a hub.
      def hub(url, last_event_id: nil, type: nil, content_type: nil)
        attributes = {"last-event-id" => last_event_id, "type" => type, "content-type" => content_type}.compact
        ["<#{url.gsub(/[<>\s]/) { |c| format("%%%02X", c.ord) }}>", %(rel="mercure"), *attributes.map { |name, value| %(#{name}="#{quote(value)}") }].join("; ")
      end

      def etag(id)
        id.b.gsub(/[^\x21\x23\x24\x26-\x7e]/n) { |byte| format("%%%02X", byte.ord) }.force_encoding(Encoding::UTF_8)
      end

      def quote(value) = value.gsub(/["\\]/) { |character| "\\#{character}" }

      private_class_method :quote
    end
  end
end
