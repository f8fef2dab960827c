# frozen_string_literal: true

require_relative "../../../support/clock"
require_relative "../browser_cache"
require_relative "../header_filter"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # A request that the proxy sent before the browser: its response ({BufferedResponse}), the fields that the browser would have sent, and those of them that
        # the proxy sent, its entry in the page log, and whether the browser has left the page.
        Prefetch = Struct.new(:response, :client, :address, :kind, :headers, :sent, :entry, :page_url, :left, keyword_init: true) do
          def page = entry.page

          def origin = address.origin

          def like?(other) = !equal?(other) && client.equal?(other.client) && kind == other.kind && origin == other.origin

          # Whether it lacks a field on which this response depends.
          def lacks_for?(head) = HeaderFilter.omitted?(HeaderFilter.decisive_vary(head, kind, headers), headers, sent)

          def shortened? = sent.size < headers.size

          # Whether the server would have answered a request with these fields alike: RFC 9110, section 12.5.5. If the response depends on anything, all fields must
          # be the same; so must fields that a script added.
          def suits?(headers, head)
            return false unless accepted?(headers)
            return false unless same_identity?(headers) || BrowserCache.shareable?(head)
            needed = HeaderFilter.decisive_vary(head, kind, headers)
            return same?(sent, headers, needed | HeaderFilter.unknown(headers)) unless needed.include?("*")
            !HeaderFilter.varies_by_anything?(head) && same?(sent, headers, (sent + headers).map(&:first) - NOT_COMPARED)
          end

          def same_identity?(headers) = same?(self.headers, headers, IDENTIFYING)

          # Whether the same browser sends the request without credentials, and with the same cookies and others: a script of the page may have added them. It never
          # omits or changes a cookie of the prefetch, as another user's request would.
          def cookies_added?(headers)
            headers.assoc("authorization").nil? && same?(self.headers, headers, SAME_BROWSER) && (cookies(self.headers) - cookies(headers)).empty?
          end

          def pending? = !response.done?

          def failed? = response.done? && !response.outcome.error.nil?

          def of?(url) = page_url == url

          private

          # A script may request the same URL with another Accept, and not every server sends Vary for it.
          def accepted?(headers)
            accept = values(headers, "accept")
            accept.empty? || accept == values(self.headers, "accept") || HeaderFilter.default_accept?(kind, accept)
          end

          def same?(one, other, names) = names.all? { |name| values(one, name) == values(other, name) }

          def cookies(headers) = values(headers, "cookie").flat_map { |value| value.split(/;\s*/) }

          def values(headers, name) = headers.filter_map { |each, value| value if each == name }
        end

        # A response is for requests with the same user, and for the same range.
        IDENTIFYING = %w[cookie authorization range].freeze
        SAME_BROWSER = %w[authorization range user-agent].freeze
        # {RequestHeaders} has no Via, the proxy evaluates the conditions itself, and {Prefetch#suits?} has compared Accept.
        NOT_COMPARED = %w[via accept if-none-match if-modified-since].freeze
        private_constant :IDENTIFYING, :SAME_BROWSER, :NOT_COMPARED

        # Prefetches that the browser has not requested yet, within limits of number, bytes and time. While there are any, a thread removes the expired ones.
        #
        # A thread that starts a request, or receives a piece of a response, takes the client's lock first, and then this one. Therefore nothing is cancelled under
        # this lock.
        class Store
          include Support::Clock

          # The least time between two clean-ups, seconds.
          PAUSE = 0.05
          # A server may never answer: seconds between two looks at cancelled requests that still await a response.
          RETRY = 1.0
          # Of one origin. A long response occupies a connection until the browser takes it.
          MAX_LONG = 2
          private_constant :PAUSE, :RETRY, :MAX_LONG

          # The block gets each prefetch with the head of its response.
          def initialize(max:, max_bytes:, lifetime:, &on_head)
            @on_head = on_head
            @max = max
            @max_bytes = max_bytes
            @lifetime = lifetime
            @lock = Mutex.new
            @changed = ConditionVariable.new
            @prefetches = {}
            @sizes = {}.compare_by_identity
            @bytes = 0
            @cleaner = nil
            @pending_changes = false
          end

          # Adds the prefetch that the block makes, if it makes one and there is room. The caller holds the client's lock.
          def add(key)
            return if @lock.synchronize { @prefetches.key?(key) || @prefetches.size >= @max }
            prefetch = yield or return
            @lock.synchronize do
              put(key, prefetch)
              @cleaner = Thread.new { clean_up } unless @cleaner&.alive?
            end
            attach(prefetch)
          end

          # Replaces each prefetch for which the block makes another. The caller holds the client's lock.
          def replace
            @lock.synchronize { @prefetches.to_a }.each do |key, prefetch|
              other = yield(prefetch) or next
              replaced = @lock.synchronize { @prefetches[key].equal?(prefetch) && put(key, other, before: prefetch) }
              replaced ? attach(other) : other.response.cancel
            end
          end

          # A response has received bytes. Returns whether the store is full.
          def grew(response, count)
            @lock.synchronize do
              before = @sizes[response] or next false
              @sizes[response] = before + count
              @bytes += count
              full = @bytes > @max_bytes
              wake if full || response.long?
              full
            end
          end

          # The block says whether a prefetch with other credentials may answer the request.
          def take(key, now, &other)
            found = @lock.synchronize do
              key = other_key(key.last, &other) unless @prefetches.key?(key)
              @prefetches[key]&.tap { |prefetch| forget(key => prefetch) }
            end
            return unless found
            return found.tap { found.response.take! } unless expired?(found, now)
            found.response.cancel
            nil
          end

          # Cancels prefetches for which the block is :waiting, if no server has their requests, or :all: then also stopped ones, and those that would delay the next
          # requests, see {Client#abandon}.
          def cancel(&selects)
            found = @lock.synchronize { @prefetches.to_a }.group_by { |key, prefetch| selects.call(key, prefetch) }
            waiting, all = found.values_at(:waiting, :all).map(&:to_a)
            (waiting + all).each { |_, prefetch| prefetch.response.withdraw }
            abandon(all.filter_map { |_, prefetch| prefetch if prefetch.pending? })
            @lock.synchronize do
              forget((waiting + all).select { |_, prefetch| prefetch.failed? })
              all.each { |_, prefetch| prefetch.left = true }
              wake
            end
          end

          def drop(&selects)
            gone = @lock.synchronize { @prefetches.select(&selects).tap { |found| forget(found) } }
            gone.each_value { |prefetch| prefetch.response.cancel }
          end

          def size = @lock.synchronize { @prefetches.size }

          def bytes = @lock.synchronize { @bytes }

          private

          def put(key, prefetch, before: nil)
            @bytes -= @sizes.delete(before.response) if before
            @sizes[prefetch.response] = 0
            @prefetches[key] = prefetch
          end

          def attach(prefetch) = prefetch.response.attach(self, prefetch.entry) { |head| @on_head&.call(prefetch, head) }

          def other_key(url) = @prefetches.find { |(_, other), prefetch| other == url && yield(prefetch) }&.first

          # Another prefetch may have replaced it meanwhile.
          def forget(gone)
            gone.each do |key, prefetch|
              @prefetches.delete(key) if @prefetches[key].equal?(prefetch)
              @bytes -= @sizes.delete(prefetch.response).to_i
            end
            wake if @prefetches.empty?
          end

          def wake
            @pending_changes = true
            @changed.signal
          end

          def abandon(prefetches)
            stopped, coming = prefetches.partition { |prefetch| prefetch.response.stopped? }
            stopped.each { |prefetch| prefetch.response.cancel }
            coming.group_by(&:client).each { |client, all| client.abandon(all.map(&:response)) }
          end

          def clean_up
            loop do
              gone, stopped, left = @lock.synchronize { sweep }
              gone.each_value { |prefetch| prefetch.response.cancel }
              stopped.each { |prefetch| prefetch.response.resume }
              abandon(left)
              @lock.synchronize do
                return @cleaner = nil if @prefetches.empty?
                @changed.wait(@lock, pause) unless @pending_changes
              end
            end
          end

          def sweep
            gone = surplus(now)
            forget(gone)
            @pending_changes = false
            stopped, others = @prefetches.values.partition { |prefetch| prefetch.response.stopped? }
            [gone, stopped, others.select { |prefetch| prefetch.left && prefetch.pending? }]
          end

          def pause
            first = @prefetches.each_value.filter_map { |prefetch| prefetch.response.settled_at }.min
            max = (@prefetches.each_value.any? { |prefetch| prefetch.left && prefetch.pending? }) ? RETRY : @lifetime
            [first ? [first + @lifetime - now, max].min : max, PAUSE].max
          end

          def surplus(now)
            gone = @prefetches.select { |_, prefetch| expired?(prefetch, now) || prefetch.failed? }.merge(surplus_long)
            bytes = @bytes - gone.sum { |_, prefetch| @sizes[prefetch.response] }
            return gone if bytes <= @max_bytes
            by_importance(@prefetches.reject { |key, _| gone.key?(key) }.to_a).each do |key, prefetch|
              break if bytes <= @max_bytes
              bytes -= @sizes[prefetch.response]
              gone[key] = prefetch
            end
            gone
          end

          # The browser requests them in the order of the page, the last ones last.
          def surplus_long
            long = @prefetches.select { |_, prefetch| prefetch.response.long? && prefetch.pending? }
            long.group_by { |_, prefetch| prefetch.origin }.flat_map { |_, all| all.drop(MAX_LONG) }.to_h
          end

          # The least important first: those of former pages, then those that the browser will request last.
          def by_importance(entries)
            latest = entries.last.last.page
            before, rest = entries.partition { |_, prefetch| !prefetch.page.equal?(latest) }
            before + rest.reverse
          end

          def expired?(prefetch, now) = !prefetch.response.settled_at.nil? && now - prefetch.response.settled_at >= @lifetime
        end
      end
    end
  end
end
