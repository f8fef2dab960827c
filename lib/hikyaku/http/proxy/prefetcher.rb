# frozen_string_literal: true

require_relative "../address"
require_relative "fields"

module Hikyaku
  module HTTP
    class Proxy
      # Fetches what a page contains before the browser asks, and keeps it until it does: a browser asks a server for six things at once, a page has more.
      #
      # What is fetched is what the browser would ask for: with its header fields (see {Fields}), for itself alone. It is bounded in number and bytes,
      # given once, dropped when nobody asks for it in time, and not fetched at all where the browser would not use it: for another origin than the
      # page's, after `Set-Cookie`, which changes what the browser says.
      class Prefetcher
        # Whose it is, and which part of it: what was fetched is only for a request that says the same of these.
        IDENTIFYING = %w[cookie authorization range].freeze
        MOST = 500 # of one page
        MOST_KEPT_BYTES = 16_777_216
        LIFETIME = 30.0 # seconds
        PRIORITIES = {style: 1, script: 1, font: 2, image: 3, other: 3}.freeze
        private_constant :IDENTIFYING, :MOST, :MOST_KEPT_BYTES, :LIFETIME, :PRIORITIES

        # What was fetched ahead: the fetch, what the browser was taken to say and what of it was sent, and the page's note of it.
        Ahead = Struct.new(:fetch, :said, :sent, :at, :note, keyword_init: true) do
          # @return [Boolean] whether not all was sent
          def slim = sent.size < said.size

          # RFC 9110, section 12.5.5: whether another request would have been answered alike.
          #
          # @param headers [Array<Array(String, String)>]
          # @param response [Response]
          # @return [Boolean]
          def suits?(headers, response)
            names = Fields.named(response["vary"])
            !names.include?("*") && alike?(sent, headers, names)
          end

          # @return [Boolean] whether it is for who says this
          def identified?(headers) = alike?(said, headers, IDENTIFYING)

          # @return [Integer] that it takes, once it is there
          def bytes = (fetch.done? && fetch.outcome.ok?) ? fetch.outcome.body.bytesize : 0

          private

          def alike?(one, other, names) = names.all? { |name| one.assoc(name)&.last == other.assoc(name)&.last }
        end

        # @param fields [Fields]
        # @param lifetime [Numeric] seconds
        def initialize(fields, lifetime: LIFETIME)
          @fields = fields
          @lifetime = lifetime
          @lock = Mutex.new
          @kept = {}
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
              ahead(address, inline, page, client, headers, credentials, now)
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
          found = @lock.synchronize do
            drop_old(now)
            @kept.delete([credentials, address.url])
          end
          return unless found
          return found if found.identified?(headers)
          found.fetch.cancel
          nil
        end

        # @return [Integer]
        def size = @lock.synchronize { @kept.size }

        # @return [void]
        def close
          all = @lock.synchronize { @kept.values.tap { @kept = {} } }
          all.each { |ahead| ahead.fetch.cancel }
        end

        private

        def ahead(address, inline, page, client, headers, credentials, now)
          key = [credentials, address.url]
          return if @lock.synchronize { @kept.key?(key) || @kept.size >= MOST }
          asked = with_accept(headers, inline.kind)
          sent = @fields.for(address.origin, inline.kind, asked)
          fetch = client.fetch(address, headers: sent, priority: PRIORITIES.fetch(inline.kind, 3))
          note = page.add(address.url, inline.kind, :ahead, now, wanted: false)
          entry = Ahead.new(fetch: fetch, said: asked, sent: sent, at: now, note: note)
          @lock.synchronize { @kept[key] = entry }
        end

        # As Chromium says it.
        ACCEPT = {
          image: "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", style: "text/css,*/*;q=0.1"
        }.freeze
        # RFC 9110, section 7.6.3, asks for Via in what is forwarded. Nobody has sent this: it is the proxy's own request, and shorter so.
        NOT_AHEAD = %w[accept via].freeze
        private_constant :ACCEPT, :NOT_AHEAD

        def with_accept(headers, kind) = headers.reject { |field| NOT_AHEAD.include?(field.first) } + [["accept", ACCEPT.fetch(kind, "*/*")]]

        # Oldest first, those that nobody came for.
        def drop_old(now)
          bytes = @kept.each_value.sum(&:bytes)
          @kept.each do |key, entry|
            break if now - entry.at < @lifetime && bytes <= MOST_KEPT_BYTES
            bytes -= entry.bytes
            entry.fetch.cancel
            @kept.delete(key)
          end
        end
      end
    end
  end
end
