# frozen_string_literal: true

require_relative "../address"
require_relative "fields"
require_relative "prefetcher/ahead"
require_relative "prefetcher/kept"

module Hikyaku
  module HTTP
    class Proxy
      # Fetches what a page contains before the browser asks, and keeps it until it does: a browser asks a server for six things at once, a page has more.
      #
      # What is fetched is what the browser would ask for: with its header fields (see {Fields}), for itself alone. It is bounded in number and bytes,
      # given once, dropped when nobody asks for it in time, and not fetched at all where the browser would not use it: for another origin than the
      # page's, after `Set-Cookie`, which changes what the browser says. What no server was asked for yet is let be when the browser leaves the page.
      class Prefetcher
        MOST = 500
        MOST_BYTES = 16_777_216
        LIFETIME = 30.0 # seconds
        PRIORITIES = {style: 1, script: 1, font: 2, image: 3, other: 3}.freeze
        private_constant :MOST, :MOST_BYTES, :LIFETIME, :PRIORITIES

        # @param fields [Fields]
        # @param most [Integer] that are kept
        # @param most_bytes [Integer] of all that are kept
        # @param lifetime [Numeric] seconds
        def initialize(fields, most: MOST, most_bytes: MOST_BYTES, lifetime: LIFETIME)
          @fields = fields
          @kept = Kept.new(most: most, most_bytes: most_bytes, lifetime: lifetime)
        end

        # @param inlines [Array<Scanner::Inline>] what a page contains
        # @param page [Visits::Page]
        # @param client [Client]
        # @param origin [Origin] the page's
        # @param headers [Array<Array(String, String)>] as the browser says them of a resource of a page, names in lower case
        # @param credentials [String] whose it is: see {Clients}
        # @param now [Float] seconds of the monotonic clock
        # @return [void]
        def fetch(inlines, page:, client:, origin:, headers:, credentials:, now:)
          client.together do
            inlines.each do |inline|
              address = Address.parse(inline.url)
              next unless address.origin == origin
              @kept.add([credentials, address.url]) { ahead(address, inline, page, client, headers, now) }
            rescue InvalidURL
              next
            end
          end
        end

        # What was fetched ahead for a request, if it suits it.
        #
        # @param address [Address]
        # @param headers [Array<Array(String, String)>]
        # @return [Ahead, nil] which is the caller's now; whether it suits is known when it is there: {Ahead#suits?}
        def take(address, headers:, credentials:, now:)
          found = @kept.take([credentials, address.url], now) or return
          return found if found.identified?(headers)
          found.fetch.cancel
          nil
        end

        # The browser asks for another page of the origin.
        #
        # @param origin [Origin]
        # @param credentials [String]
        # @return [void]
        def turn_page(origin, credentials) = @kept.withdraw { |(whose, _), entry| whose == credentials && entry.origin == origin }

        # The browser does not want the page any more; without one, it is gone.
        #
        # @param page [Visits::Page, nil]
        # @return [void]
        def leave(page = nil) = @kept.withdraw { |_, entry| page.nil? || entry.page.equal?(page) }

        # @param urls [Array<String>] what is there now is another thing
        # @return [void]
        def drop(urls) = @kept.drop { |(_, url), _| urls.include?(url) }

        # @return [Integer]
        def size = @kept.size

        # @return [Integer] of all that is kept
        def bytes = @kept.bytes

        # @return [void]
        def close = @kept.drop { true }

        private

        def ahead(address, inline, page, client, headers, now)
          asked = with_accept(headers, inline.kind)
          sent = @fields.for(address.origin, inline.kind, asked)
          fetch = client.fetch(address, headers: sent, priority: PRIORITIES.fetch(inline.kind, 3))
          note = page.add(address.url, inline.kind, :ahead, now, wanted: false)
          Ahead.new(fetch: fetch, origin: address.origin, said: asked, sent: sent, at: now, note: note)
        end

        # As Chromium says it.
        ACCEPT = {
          image: "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", style: "text/css,*/*;q=0.1"
        }.freeze
        # RFC 9110, section 7.6.3, asks for Via in what is forwarded. Nobody has sent this: it is the proxy's own request, and shorter so.
        NOT_AHEAD = %w[accept via].freeze
        private_constant :ACCEPT, :NOT_AHEAD

        def with_accept(headers, kind) = headers.reject { |field| NOT_AHEAD.include?(field.first) } + [["accept", ACCEPT.fetch(kind, "*/*")]]
      end
    end
  end
end
