# frozen_string_literal: true

require "digest"
require_relative "../cache/directives"
require_relative "../cache/freshness"
require_relative "fields"

module Hikyaku
  module HTTP
    class Proxy
      # What the browsers of a user were given lately, and surely have in their own caches, so that it is not fetched ahead. Nothing of the answers is here, only of
      # which URL and until when they are fresh, by the heuristic of RFC 9111, section 4.2.2, too, as browsers have it: until then a browser does not ask. After it, it
      # asks whether what it has is still right, and so does the proxy when it fetches ahead what came whole with the same credentials. With others, or where the
      # browser was only told that what it has is right, the proxy has nothing to ask about, and would fetch all of it. Where a page changes its cookies while it
      # loads, what was asked ahead with those from before is asked once more with the others.
      #
      # Cookies come, change and go between two pages, and of one server not every path has the same; the browser is the same with the same User-Agent. This is a
      # guess. One that asks for what it was taken to have, several times on one page, is another, or has cleared its cache: all of that server is forgotten.
      class Given
        MOST = 10_000
        MOST_BROWSERS = 1_000
        MOST_WRONG = 3
        # With its own of these a request says nothing of what the browser has.
        OWN = %w[if-none-match if-modified-since if-range range cache-control pragma].freeze
        private_constant :MOST, :MOST_BROWSERS, :MOST_WRONG, :OWN

        # A browser at one origin: what it was given has its number. How often it was taken to have what it had not, what it said its cookies were with the page,
        # whether it said others with what is in it, nil while it has asked for nothing of it, and whether that was so with the page before.
        Browser = Struct.new(:number, :wrong, :cookies, :others, :fickle)
        # What it was given: when it is not fresh any more, with which credentials the proxy can ask about it, nil with none, and whether the browser can.
        Answer = Struct.new(:number, :until, :credentials, :validators)
        private_constant :Browser, :Answer

        def initialize(most: MOST, clock: -> { Time.now.to_f })
          @most = most
          @clock = clock
          @lock = Mutex.new
          @browsers = {}
          @numbers = 0
          @answers = {}
        end

        # A browser asks for a page.
        def turn_page(origin, headers)
          @lock.synchronize do
            browser = browser(origin, headers)
            browser.fickle = browser.others unless browser.others.nil?
            browser.wrong, browser.cookies, browser.others = 0, cookies_of(headers), nil
          end
        end

        # A browser was given a whole answer, or told that what it has is right.
        def give(address, headers, answer, credentials:)
          seconds = seconds_of(answer)
          validators = !(answer["etag"] || answer["last-modified"]).nil?
          @lock.synchronize do
            before = @answers.delete(key = key(address.url))
            next if seconds.nil? || !(seconds.positive? || validators)
            own = credentials if kept?(answer, before&.credentials == credentials)
            @answers[key] = Answer.new(browser(address.origin, headers).number, @clock.call + seconds, own, validators)
            @answers.shift if @answers.size > @most
          end
        end

        def given?(address, headers, credentials:)
          return false if no_cache?(headers)
          @lock.synchronize do
            answer = had(address, browser = browser(address.origin, headers)) or next false
            answer.until > @clock.call || answer.credentials != credentials || !!browser.fickle
          end
        end

        # A browser asks.
        def asked(address, headers)
          @lock.synchronize do
            browser = browser(address.origin, headers)
            browser.others ||= browser.cookies != cookies_of(headers)
            next false if headers.any? { |name, _| OWN.include?(name) } || !had(address, browser)
            @answers.delete(key(address.url))
            next false if (browser.wrong += 1) < MOST_WRONG
            begin_anew(address.origin, headers)
            true
          end
        end

        def drop(urls) = @lock.synchronize { urls.each { |url| @answers.delete(key(url)) } }

        def size = @lock.synchronize { @answers.size }

        private

        # What is neither fresh nor can be asked about is as if it had not been given.
        def had(address, browser)
          answer = @answers[key(address.url)]
          answer if answer && answer.number == browser.number && (answer.validators || answer.until > @clock.call)
        end

        # The one that was heard of longest ago goes.
        def browser(origin, headers)
          name = name_of(origin, headers)
          found = @browsers.delete(name) or return begin_anew(origin, headers)
          @browsers[name] = found
        end

        def begin_anew(origin, headers)
          @browsers.shift if @browsers.size >= MOST_BROWSERS
          @browsers[name_of(origin, headers)] = Browser.new(@numbers += 1, 0, [])
        end

        # As digests, since they are secret.
        def cookies_of(headers) = headers.filter_map { |name, value| key(value) if name == "cookie" }

        def name_of(origin, headers) = key("#{origin} #{headers.assoc("user-agent")&.last}")

        # So long a URL may be, and so secret.
        def key(text) = Digest::SHA256.digest(text)

        # A browser that says what it has is told that it is right, which leaves nothing with the proxy. What depends on anything it does not keep: RFC 9111, section 4.1.
        def kept?(answer, before) = (answer.status == 200 || before) && !Fields.any?(answer)

        # Nil where it is not kept. With Vary: Cookie it is, by Chromium for all cookies; another browser asks.
        def seconds_of(answer)
          directives = Cache::Directives.parse([answer["cache-control"]].compact)
          return if ![200, 304].include?(answer.status) || directives.include?("no-store")
          return 0 if directives.include?("no-cache") || Fields.any?(answer)
          now = @clock.call
          freshness = Cache::Freshness.new(status: 200, headers: answer.headers, directives: directives, requested_at: now, received_at: now, heuristic: true)
          freshness.lifetime - freshness.age(now)
        end

        def no_cache?(headers)
          headers.any? { |name, value| %w[cache-control pragma].include?(name) && Cache::Directives.parse([value]).include?("no-cache") }
        end
      end
    end
  end
end
