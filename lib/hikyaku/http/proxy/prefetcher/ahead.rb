# frozen_string_literal: true

require_relative "../fields"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # What is fetched ahead: the stream ({Held}), by which client, from where and of which kind, what the browser was taken to say and what of it was sent, and
        # the page's note of it, the page's URL, and whether that was left.
        Ahead = Struct.new(:fetch, :client, :address, :kind, :said, :sent, :note, :page_url, :left, keyword_init: true) do
          def page = note.page

          def origin = address.origin

          def like?(other) = !equal?(other) && client.equal?(other.client) && kind == other.kind && origin == other.origin

          def misses?(answer) = Fields.missed?(Fields.decisive(answer, kind, said), said, sent)

          def slim = sent.size < said.size

          # RFC 9110, section 12.5.5: whether another request would have been answered alike. Whatever depends on anything has to say the same in all that
          # is passed on; so has what has fields that browsers do not say by themselves.
          def suits?(headers, response)
            return false unless accepted?(headers)
            needed = Fields.decisive(response, kind, headers)
            return alike?(sent, headers, needed | Fields.unknown(headers)) unless needed.include?("*")
            !Fields.any?(response) && alike?(sent, headers, (sent + headers).map(&:first) - NEVER_SENT)
          end

          def identified?(headers) = alike?(said, headers, IDENTIFYING)

          def pending? = !fetch.done?

          def failed? = fetch.done? && !fetch.outcome.error.nil?

          def of?(url) = page_url == url

          private

          # Pages ask with scripts for what is another thing then, and not every server says so.
          def accepted?(headers)
            accept = values(headers, "accept")
            accept.empty? || accept == values(said, "accept") || Fields.own_accept?(kind, accept)
          end

          def alike?(one, other, names) = names.all? { |name| values(one, name) == values(other, name) }

          def values(headers, name) = headers.filter_map { |each, value| value if each == name }
        end

        # Whose it is, and which part of it: what was fetched is only for a request that says the same of these.
        IDENTIFYING = %w[cookie authorization range].freeze
        # Of what the browser may say, what the proxy does not when it asks by itself: see {Saying}; and conditions, which it answers, and Accept, if it is a browser's own.
        NEVER_SENT = %w[via accept if-none-match if-modified-since].freeze
        private_constant :IDENTIFYING, :NEVER_SENT
      end
    end
  end
end
