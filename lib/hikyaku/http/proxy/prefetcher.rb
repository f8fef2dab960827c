# frozen_string_literal: true

require_relative "../address"
require_relative "fields"
require_relative "given"
require_relative "kind"
require_relative "prefetcher/ahead"
require_relative "prefetcher/held"
require_relative "prefetcher/kept"
require_relative "prefetcher/saying"

module Hikyaku
  module HTTP
    class Proxy
      # Fetches what a page contains before the browser asks, and keeps it until it does: a browser asks a server for six things at once, a page has more.
      #
      # What is fetched is what the browser would ask for: with its header fields (see {Fields}), for itself alone. It is bounded in number and bytes,
      # given once, dropped when nobody asks for it in time, and not fetched at all where the browser would not use it: for another origin than the
      # page's, after `Set-Cookie`, which changes what the browser says. Who asks while it comes gets what came, and what goes on to come; what is long
      # waits for that ({Held}).
      #
      # When the browser leaves the page, what no server was asked for yet is let be; so is what was, where its answers would hold up the next page.
      class Prefetcher
        MOST = 500
        MOST_BYTES = 16_777_216
        LIFETIME = 30.0 # seconds
        PRIORITIES = {style: 1, script: 1, font: 2, image: 3, other: 3}.freeze
        private_constant :MOST, :MOST_BYTES, :LIFETIME, :PRIORITIES

        def initialize(fields, given: Given.new, most: MOST, most_bytes: MOST_BYTES, lifetime: LIFETIME)
          @fields = fields
          @given = given
          @lock = Mutex.new
          @passed_over = {}
          @accepts = {}
          @kept = Kept.new(most: most, most_bytes: most_bytes, lifetime: lifetime) { |entry, head| learn(entry, head) }
        end

        def fetch(inlines, page:, client:, origin:, headers:, credentials:, now:, url: nil, policy: nil)
          saying = Saying.new(headers, url: url, policy: policy, accepts: @accepts)
          client.together do
            inlines.each do |inline|
              address = Address.parse(inline.url)
              next unless address.origin == origin
              next pass_over(inline, page, headers: headers, url: url, policy: policy, origin: origin, credentials: credentials) if @given.given?(address, headers, credentials: credentials)
              @kept.add([credentials, address.url]) { ahead(address, inline, page, client, saying, now) }
            rescue InvalidURL
              next
            end
          end
        end

        # The browser does not have what it was taken to have: what of the newest page was not fetched for that reason is now.
        def fetch_passed_over(client:, credentials:, now:)
          inlines, page, said = @lock.synchronize { @passed_over.tap { @passed_over = {} }.values_at(:inlines, :page, :said) }
          fetch(inlines.values, page: page, client: client, now: now, **said) if page && !page.left? && said[:credentials] == credentials
        end

        def asked(url) = @lock.synchronize { @passed_over[:inlines]&.delete(url) }

        # The browser asks for something: so it asks for others of the kind, in this version.
        def heard(kind, headers)
          accept = headers.assoc("accept")&.last
          @accepts[kind] = accept if accept && @accepts[kind] != accept && Fields.own_accept?(kind, [accept])
        end

        # What was fetched ahead for a request, if it suits it.
        def take(address, headers:, credentials:, now:)
          found = @kept.take([credentials, address.url], now) or return
          return found if found.identified?(headers)
          found.fetch.cancel
          nil
        end

        # The browser asks for another page.
        def turn_page(credentials, to: nil, from: nil)
          @kept.withdraw do |(whose, _), entry|
            if to && entry.of?(to) then :waiting if whose == credentials
            elsif entry.page.left? || (from && entry.of?(from)) then :all
            end
          end
        end

        # The browser does not want the page any more; without one, it is gone.
        def leave(page = nil) = @kept.withdraw { |_, entry| :all if page.nil? || entry.page.equal?(page) }

        def drop(urls) = @kept.drop { |(_, url), _| urls.include?(url) }

        def size = @kept.size

        def bytes = @kept.bytes

        def close = @kept.drop { true }

        private

        # Of the newest page alone.
        def pass_over(inline, page, **said)
          @lock.synchronize do
            @passed_over = {page: page, said: said, inlines: {}} unless page.equal?(@passed_over[:page])
            @passed_over[:inlines][inline.url] = inline
          end
        end

        def ahead(address, inline, page, client, saying, now)
          asked = saying.of(inline)
          kind = Kind.of(address, asked)
          sent = @fields.for(address.origin, kind, asked)
          held = begin_fetch(client, address, sent, inline.kind)
          note = page.add(address.url, inline.kind, :ahead, now, wanted: false)
          Ahead.new(fetch: held, client: client, address: address, kind: kind, said: asked, sent: sent, note: note, page_url: saying.url)
        end

        def begin_fetch(client, address, sent, kind) = client.stream(Held, address, headers: sent, priority: PRIORITIES.fetch(kind, 3))

        # What others of the kind would miss as well, they say too, as long as no server was asked for them.
        def learn(entry, head)
          refused = entry.slim && Fields.refusal?(head.status)
          refused ? @fields.refused(entry.origin, entry.kind) : @fields.answered(entry.origin, entry.kind, Fields.lasting(head, entry.kind))
          @kept.replace { |other| anew(other) if other.like?(entry) && other.slim && (refused || other.misses?(head)) && other.fetch.withdraw }
        end

        def anew(entry)
          sent = @fields.for(entry.origin, entry.kind, entry.said)
          Ahead.new(**entry.to_h, fetch: begin_fetch(entry.client, entry.address, sent, entry.note.kind), sent: sent)
        end
      end
    end
  end
end
