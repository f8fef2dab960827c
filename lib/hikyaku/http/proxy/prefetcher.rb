# frozen_string_literal: true

require_relative "../address"
require_relative "browser_cache"
require_relative "header_filter"
require_relative "prefetcher/buffered_response"
require_relative "prefetcher/store"
require_relative "scanner"

module Hikyaku
  module HTTP
    class Proxy
      # Requests the resources of a page before the browser does, and stores the responses until it does: a browser sends six requests to a server at a time, and a
      # page has more.
      #
      # It sends the fields that the browser would send (see {HeaderFilter}). It does not prefetch what the browser would not take from it: resources of another
      # origin, or after `Set-Cookie`, which changes the browser's requests. The browser gets a stored response once, also while it still comes. A long response
      # waits for the browser ({BufferedResponse}).
      #
      # If the browser leaves the page, the prefetcher cancels the requests that no server has yet, and others if they would delay the next page.
      class Prefetcher
        MAX = 500
        MAX_BYTES = 16_777_216
        LIFETIME = 30.0 # seconds
        PRIORITIES = {style: 1, script: 1, font: 2, image: 3, other: 3}.freeze
        # After so many responses with "Vary: *" in a row, the next one of the kind is expected to have it, too.
        UNUSABLE = 2
        MAX_UNUSABLE = 1_000
        private_constant :MAX, :MAX_BYTES, :LIFETIME, :PRIORITIES, :UNUSABLE, :MAX_UNUSABLE

        def initialize(header_filter, browser_cache: BrowserCache.new, max: MAX, max_bytes: MAX_BYTES, lifetime: LIFETIME)
          @header_filter = header_filter
          @browser_cache = browser_cache
          @lock = Mutex.new
          @skipped = {}
          @accepts = {}
          @unusable = {}
          @store = Store.new(max: max, max_bytes: max_bytes, lifetime: lifetime) { |prefetch, head| learn(prefetch, head) }
        end

        def fetch(subresources, page:, client:, origin:, headers:, credentials:, now:, url: nil, policy: nil)
          request_headers = RequestHeaders.new(headers, url: url, policy: policy, accepts: @accepts)
          client.together do
            subresources.each do |subresource|
              address = Address.parse(subresource.url)
              next unless address.origin == origin
              if @browser_cache.include?(address, headers, credentials: credentials)
                next skip(subresource, page, headers: headers, url: url, policy: policy, origin: origin, credentials: credentials)
              end
              @store.add([credentials, address.url]) { build(address, subresource, page, client, request_headers, now) }
            rescue InvalidURL
              next
            end
          end
        end

        # The model of the browser's cache was wrong: prefetches what it held back of the latest page.
        def fetch_skipped(client:, credentials:, now:)
          subresources, page, arguments = @lock.synchronize { @skipped.tap { @skipped = {} }.values_at(:subresources, :page, :arguments) }
          fetch(subresources.values, page: page, client: client, now: now, **arguments) if page && !page.left? && arguments[:credentials] == credentials
        end

        def requested(url) = @lock.synchronize { @skipped[:subresources]&.delete(url) }

        # Learns from a browser's request the Accept that it sends for the kind of resource.
        def learn_accept(kind, headers)
          accept = headers.assoc("accept")&.last
          @accepts[kind] = accept if accept && @accepts[kind] != accept && HeaderFilter.default_accept?(kind, [accept])
        end

        # Counts responses with "Vary: *" in a row. Such a response answers no other request, so that its prefetch is useless: RFC 9110, section 12.5.5.
        def observe(origin, kind, response)
          @lock.synchronize do
            count = @unusable.delete([origin, kind]).to_i
            @unusable[[origin, kind]] = count + 1 if HeaderFilter.varies_by_anything?(response)
            @unusable.shift if @unusable.size > MAX_UNUSABLE
          end
        end

        # The prefetch for a request, or nil.
        def take(address, headers:, credentials:, now:)
          found = @store.take([credentials, address.url], now) { |prefetch| prefetch.cookies_added?(headers) } or return
          return found if found.same_identity?(headers) || found.cookies_added?(headers)
          found.response.cancel
          nil
        end

        # The page has other cookies now, on which the responses of this kind may depend.
        def drop_like(prefetch) = @store.drop { |_, other| other.like?(prefetch) }

        # The browser requests another page.
        def open_page(credentials, to: nil, from: nil)
          @store.cancel do |(owner, _), prefetch|
            if to && prefetch.of?(to) then :waiting if owner == credentials
            elsif prefetch.page.left? || (from && prefetch.of?(from)) then :all
            end
          end
        end

        # The browser has left the page, or, without one, has closed all connections.
        def leave(page = nil) = @store.cancel { |_, prefetch| :all if page.nil? || prefetch.page.equal?(page) }

        def drop(urls) = @store.drop { |(_, url), _| urls.include?(url) }

        def size = @store.size

        def bytes = @store.bytes

        def close = @store.drop { true }

        private

        # It remembers only the latest page.
        def skip(subresource, page, **arguments)
          @lock.synchronize do
            @skipped = {page: page, arguments: arguments, subresources: {}} unless page.equal?(@skipped[:page])
            @skipped[:subresources][subresource.url] = subresource
          end
        end

        def unusable?(origin, kind) = @lock.synchronize { @unusable[[origin, kind]].to_i } >= UNUSABLE

        def build(address, subresource, page, client, request_headers, now)
          headers = request_headers.for(subresource)
          kind = HeaderFilter.kind(address, headers)
          return if unusable?(address.origin, kind)
          sent = @header_filter.call(address.origin, kind, headers)
          response = request(client, address, sent, subresource.kind)
          entry = page.add(address.url, subresource.kind, :prefetch, now, requested: false)
          Prefetch.new(response: response, client: client, address: address, kind: kind, headers: headers, sent: sent, entry: entry, page_url: request_headers.url)
        end

        def request(client, address, sent, kind) = client.stream(BufferedResponse, address, headers: sent, priority: PRIORITIES.fetch(kind, 3))

        # Requests of the kind that lack a needed field are repeated with all needed fields, if no server has them yet.
        def learn(prefetch, head)
          refused = prefetch.shortened? && HeaderFilter.refused?(head.status)
          refused ? @header_filter.send_all(prefetch.origin, prefetch.kind) : @header_filter.learn(prefetch.origin, prefetch.kind, head)
          observe(prefetch.origin, prefetch.kind, head)
          return @store.replace { |other| other.response.withdraw && nil if other.like?(prefetch) } if unusable?(prefetch.origin, prefetch.kind)
          @store.replace { |other| repeat(other) if other.like?(prefetch) && other.shortened? && (refused || other.lacks_for?(head)) && other.response.withdraw }
        end

        def repeat(prefetch)
          sent = @header_filter.call(prefetch.origin, prefetch.kind, prefetch.headers)
          Prefetch.new(**prefetch.to_h, response: request(prefetch.client, prefetch.address, sent, prefetch.entry.kind), sent: sent)
        end

        # The header fields with which Chromium requests a resource of a page, for the page's own origin: those of the request for the page, but for the fields of
        # the page alone.
        #
        # Fetch Standard, section "HTTP-network-or-cache fetch"; Referrer Policy, section 8.
        class RequestHeaders
          # Until the browser has sent its own.
          ACCEPT = {
            image: "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", style: "text/css,*/*;q=0.1"
          }.freeze
          # The proxy forwards no message here, so that it need not send Via: RFC 9110, section 7.6.3.
          OF_PAGE = %w[accept if-match if-modified-since if-none-match if-range if-unmodified-since range referer origin upgrade-insecure-requests via
            sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-fetch-storage-access].freeze
          # A browser that reloads a page sends it for the page only.
          RELOAD = ["cache-control", "max-age=0"].freeze
          DESTINATIONS = %i[image style script font].freeze
          CORS = %i[font other].freeze
          # A longer one is cut to the origin.
          MAX_REFERER = 4_096
          ORIGIN_ONLY = %w[origin strict-origin].freeze
          private_constant :ACCEPT, :OF_PAGE, :RELOAD, :DESTINATIONS, :CORS, :MAX_REFERER, :ORIGIN_ONLY

          attr_reader :url

          def initialize(headers, url: nil, policy: nil, accepts: {})
            @accepts = accepts
            @headers = headers.reject { |field| OF_PAGE.include?(field.first) || field == RELOAD }
            @fetch_metadata = headers.any? { |field| field.first == "sec-fetch-dest" }
            @url = url
            @origin = url && url[%r{\A\w+://[^/]+}]
            @policy = policy.to_s.downcase.split(",").filter_map { |name| Scanner.referrer_policy(name.strip) }.last
          end

          def for(subresource)
            cors = subresource.crossorigin || subresource.module? || CORS.include?(subresource.kind)
            referer = referer(subresource.referrer_policy)
            [*@headers, ["accept", @accepts[subresource.kind] || ACCEPT.fetch(subresource.kind, "*/*")], *([["origin", @origin]] if cors && @url), *([["referer", referer]] if referer),
              *(metadata(subresource.kind, cors) if @fetch_metadata)]
          end

          private

          # Prefetches are for the page's own origin, for which most policies are the same.
          def referer(named)
            policy = named || @policy
            return if @url.nil? || policy == "no-referrer"
            (ORIGIN_ONLY.include?(policy) || @url.bytesize > MAX_REFERER) ? "#{@origin}/" : @url
          end

          def metadata(kind, cors)
            [["sec-fetch-site", "same-origin"], ["sec-fetch-mode", cors ? "cors" : "no-cors"], ["sec-fetch-dest", DESTINATIONS.include?(kind) ? kind.name : "empty"]]
          end
        end
      end
    end
  end
end
