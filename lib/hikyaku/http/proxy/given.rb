# frozen_string_literal: true

require "digest"
require_relative "../cache/directives"
require_relative "../cache/freshness"

module Hikyaku
  module HTTP
    class Proxy
      # What the browsers of a user were given lately, and surely have in their own caches, so that it is not fetched ahead. Nothing of the answers is here, only of
      # which URL and until when they are fresh, by the heuristic of RFC 9111, section 4.2.2, too, as browsers have it: until then a browser does not ask. After it, it
      # asks whether what it has is still right, and so does the proxy when it fetches ahead what it has with the same credentials; with others it has nothing.
      #
      # Cookies change between two pages, and the browser is the same: the same User-Agent, and when it said cookies before, one of the same name. This is a guess.
      # A browser that asks for what it was taken to have, several times on one page, is another, or has cleared its cache: all of that server is forgotten.
      class Given
        MOST = 10_000
        MOST_BROWSERS = 1_000
        MOST_COOKIES = 100
        MOST_WRONG = 3
        # With its own of these a request says nothing of what the browser has.
        OWN = %w[if-none-match if-modified-since if-range range cache-control pragma].freeze
        private_constant :MOST, :MOST_BROWSERS, :MOST_COOKIES, :MOST_WRONG, :OWN

        # A browser at one origin: what it was given has its number. The names of its cookies, and how often it was taken to have what it had not.
        Browser = Struct.new(:number, :cookies, :wrong)
        # What it was given: when it is not fresh any more, with which credentials it came, and whether a server can be asked about it.
        Answer = Struct.new(:number, :until, :credentials, :validators)
        private_constant :Browser, :Answer

        # @param most [Integer] answers that are remembered
        # @param clock [#call] seconds of the wall clock
        def initialize(most: MOST, clock: -> { Time.now.to_f })
          @most = most
          @clock = clock
          @lock = Mutex.new
          @browsers = {}
          @numbers = 0
          @answers = {}
        end

        # A browser asks for a page.
        #
        # @param origin [Origin]
        # @param headers [Array<Array(String, String)>] what it says, names in lower case
        # @return [void]
        def turn_page(origin, headers)
          names = headers.filter_map { |name, value| value.scan(/(?:\A|;)\s*([^=;\s]+)/) if name == "cookie" }.flatten.first(MOST_COOKIES)
          @lock.synchronize do
            browser = browser(origin, headers)
            another = browser.cookies.any? && (browser.cookies & names).empty?
            browser = begin_anew(origin, headers) if another
            browser.cookies = names
            browser.wrong = 0
          end
        end

        # A browser was given a whole answer, or told that what it has is right.
        #
        # @param address [Address]
        # @param headers [Array<Array(String, String)>] what it said
        # @param answer [Response, Client::Stream]
        # @param credentials [String] see {Clients}
        # @return [void]
        def give(address, headers, answer, credentials:)
          seconds = seconds_of(answer)
          validators = !(answer["etag"] || answer["last-modified"]).nil?
          @lock.synchronize do
            @answers.delete(key = key(address.url))
            next if seconds.nil? || !(seconds.positive? || validators)
            @answers[key] = Answer.new(browser(address.origin, headers).number, @clock.call + seconds, credentials, validators)
            @answers.shift if @answers.size > @most
          end
        end

        # @param address [Address]
        # @param headers [Array<Array(String, String)>] what the browser said of a page
        # @param credentials [String] see {Clients}
        # @return [Boolean] whether it will not ask, or ask for less than would be fetched
        def given?(address, headers, credentials:)
          return false if no_cache?(headers)
          @lock.synchronize do
            answer = had(address, browser(address.origin, headers)) or next false
            answer.until > @clock.call || answer.credentials != credentials
          end
        end

        # A browser asks.
        #
        # @param address [Address]
        # @param headers [Array<Array(String, String)>] what it says
        # @return [Boolean] whether it has nothing of what it was taken to have
        def asked(address, headers)
          return false if headers.any? { |name, _| OWN.include?(name) }
          @lock.synchronize do
            browser = browser(address.origin, headers)
            next false unless had(address, browser)
            @answers.delete(key(address.url))
            next false if (browser.wrong += 1) < MOST_WRONG
            begin_anew(address.origin, headers).cookies = browser.cookies
            true
          end
        end

        # @param urls [Array<String>] what is there now is another thing
        # @return [void]
        def drop(urls) = @lock.synchronize { urls.each { |url| @answers.delete(key(url)) } }

        # @return [Integer] answers that are remembered
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
          @browsers[name_of(origin, headers)] = Browser.new(@numbers += 1, [], 0)
        end

        def name_of(origin, headers) = key("#{origin} #{headers.assoc("user-agent")&.last}")

        # So long a URL may be, and so secret.
        def key(text) = Digest::SHA256.digest(text)

        # Nil where it is not kept, or of no use with other cookies: RFC 9110, section 12.5.5.
        def seconds_of(answer)
          directives = Cache::Directives.parse([answer["cache-control"]].compact)
          return if ![200, 304].include?(answer.status) || directives.include?("no-store") || answer["vary"].to_s.match?(/\*|\bcookie\b/i)
          return 0 if directives.include?("no-cache")
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
