# frozen_string_literal: true

require "digest"
require_relative "../cache/entry"
require_relative "header_filter"

module Hikyaku
  module HTTP
    class Proxy
      # A model of the caches of a user's browsers, so that the proxy does not prefetch what a browser has. It knows of a response only the URL, the time until which
      # it is fresh, also by the heuristic of RFC 9111, section 4.2.2, and whether it has a validator.
      #
      # While a response is fresh, the browser requests nothing. Then it revalidates the response, and so does a prefetch if the proxy's cache has the response with
      # the same credentials. Otherwise a prefetch would transfer all of it, and the proxy waits for the browser's own revalidation. The same holds for a page that
      # changes its cookies while it loads: its prefetches have the wrong cookies.
      #
      # The model identifies a browser by its User-Agent, because cookies change between pages, and differ between the paths of a server. If the browser requests
      # several responses of a page that the model takes for fresh, it is another one, or has an empty cache: the model forgets all of that server.
      class BrowserCache
        MAX = 10_000
        MAX_BROWSERS = 1_000
        MAX_MISTAKES = 3
        # A request with such a field does not tell whether the browser has a response.
        CONDITIONS = %w[if-none-match if-modified-since if-range range cache-control pragma].freeze
        private_constant :MAX, :MAX_BROWSERS, :MAX_MISTAKES, :CONDITIONS

        # A browser at one origin. `cookies` were sent with the page. `changed` says whether the page's parts had other cookies, and is nil before the first part;
        # `changes` says so of the page before.
        Browser = Struct.new(:number, :mistakes, :cookies, :changed, :changes)
        # `credentials` are those with which the proxy's cache has the response, if it has; `validator` says whether there is one.
        Entry = Struct.new(:number, :fresh_until, :credentials, :validator)
        private_constant :Browser, :Entry

        class << self
          # Nil if the browser does not store the response. Chromium stores one with "Vary: Cookie" for all cookies; another browser revalidates it.
          def remaining_lifetime(response, now)
            directives = directives_of(response)
            return if ![200, 304].include?(response.status) || directives.include?("no-store")
            return 0 if directives.include?("no-cache") || HeaderFilter.varies_by_anything?(response)
            Cache::Freshness.new(status: 200, headers: response.headers, directives: directives, requested_at: now, received_at: now, heuristic: true).remaining(now)
          end

          # Whether a shared cache, and the browser's own, could give the response to a request with other cookies: RFC 9111, sections 3, 4 and 5.2.2.
          def shareable?(response, now = Time.now.to_f)
            return false unless response.status == 200 && response["set-cookie"].nil? && !response["vary"].to_s.match?(/\bcookie\b/i)
            directives = directives_of(response)
            !directives.include?("private") && directives.least("s-maxage") != 0 && remaining_lifetime(response, now).to_f.positive?
          end

          private

          def directives_of(response) = Cache::Directives.parse([response["cache-control"]].compact)
        end

        def initialize(max: MAX, clock: -> { Time.now.to_f })
          @max = max
          @clock = clock
          @lock = Mutex.new
          @browsers = {}
          @numbers = 0
          @entries = {}
        end

        # The browser requests a page.
        def open_page(origin, headers)
          @lock.synchronize do
            browser = browser(origin, headers)
            browser.changes = browser.changed unless browser.changed.nil?
            browser.mistakes, browser.cookies, browser.changed = 0, cookies_of(headers), nil
          end
        end

        # The browser got a complete response, or a 304.
        def store(address, headers, response, credentials:)
          seconds = BrowserCache.remaining_lifetime(response, @clock.call)
          validator = !(response["etag"] || response["last-modified"]).nil?
          @lock.synchronize do
            before = @entries.delete(key = digest(address.url))
            next if seconds.nil? || !(seconds.positive? || validator)
            own = credentials if proxy_stores?(response, before&.credentials == credentials)
            @entries[key] = Entry.new(browser(address.origin, headers).number, @clock.call + seconds, own, validator)
            @entries.shift if @entries.size > @max
          end
        end

        # Whether a prefetch would be useless.
        def include?(address, headers, credentials:)
          return false if no_cache?(headers)
          @lock.synchronize do
            entry = entry(address, browser = browser(address.origin, headers)) or next false
            entry.fresh_until > @clock.call || entry.credentials != credentials || !!browser.changes
          end
        end

        # The browser requests a part of a page. Returns whether the model was wrong about this browser, and forgot it.
        def requested(address, headers)
          @lock.synchronize do
            browser = browser(address.origin, headers)
            browser.changed ||= browser.cookies != cookies_of(headers)
            next false if headers.any? { |name, _| CONDITIONS.include?(name) } || !entry(address, browser)
            @entries.delete(digest(address.url))
            next false if (browser.mistakes += 1) < MAX_MISTAKES
            add_browser(address.origin, headers)
            true
          end
        end

        def drop(urls) = @lock.synchronize { urls.each { |url| @entries.delete(digest(url)) } }

        def size = @lock.synchronize { @entries.size }

        private

        def entry(address, browser)
          entry = @entries[digest(address.url)]
          entry if entry && entry.number == browser.number && (entry.validator || entry.fresh_until > @clock.call)
        end

        # The least recently used one goes first.
        def browser(origin, headers)
          name = name_of(origin, headers)
          found = @browsers.delete(name) or return add_browser(origin, headers)
          @browsers[name] = found
        end

        def add_browser(origin, headers)
          @browsers.shift if @browsers.size >= MAX_BROWSERS
          @browsers[name_of(origin, headers)] = Browser.new(@numbers += 1, 0, [])
        end

        # Cookies are secret.
        def cookies_of(headers) = headers.filter_map { |name, value| digest(value) if name == "cookie" }

        def name_of(origin, headers) = digest("#{origin} #{headers.assoc("user-agent")&.last}")

        # A URL may be long, and secret.
        def digest(text) = Digest::SHA256.digest(text)

        # The browser's own revalidation gives the proxy nothing to store, and the proxy does not store "Vary: *": RFC 9111, section 4.1.
        def proxy_stores?(response, before) = (response.status == 200 || before) && !HeaderFilter.varies_by_anything?(response)

        def no_cache?(headers)
          headers.any? { |name, value| %w[cache-control pragma].include?(name) && Cache::Directives.parse([value]).include?("no-cache") }
        end
      end
    end
  end
end
