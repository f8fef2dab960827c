# frozen_string_literal: true

require_relative "browser"
require_relative "test_site"

# Pages of sites of their own, in one Chromium, and what their EventSources say. For Integration::Test.
module BrowserSources
  # Keeps in `window.sources` what happens to each EventSource.
  OPEN = <<~JS
    (() => {
      const [url, options, types] = arguments;
      const source = new EventSource(url, options);
      const log = {opened: [], errors: [], events: []};
      source.onopen = () => log.opened.push(performance.now());
      source.onerror = () => log.errors.push([performance.now(), source.readyState]);
      for (const type of ["message", ...types]) {
        source.addEventListener(type, (event) => log.events.push([event.type, event.lastEventId, event.data]));
      }
      log.source = source;
      window.sources = [...(window.sources || []), log];
      return window.sources.length - 1;
    })()
  JS
  private_constant :OPEN

  # An EventSource of a page.
  class Source
    # @param page [TestBrowser::Page]
    def initialize(page, number)
      @page = page
      @number = number
    end

    # @return [Array<Array(String, String, String)>] type, id and data
    def events = get("events")

    # @return [Array<Float>] when, in ms
    def opened = get("opened")

    # @return [Array<Array(Float, Integer)>] when, in ms, and the state then
    def errors = get("errors")

    # @return [Integer] 0 is connecting, 1 open, 2 closed for good
    def state = get("source.readyState")

    # @return [Array] events, when there are so many
    def take(count) = @page.until("not #{count} events: #{events}") { events.size >= count && events }

    def until_open(times = 1) = @page.until("did not open #{times} times: #{errors}") { opened.size >= times }

    def until_error = @page.until("no error") { errors.first }

    private

    def get(what) = @page.js("window.sources[#{@number}].#{what}")
  end

  def self.browser(switches = {})
    @browsers ||= {}.tap { |all| Minitest.after_run { all.each_value(&:quit) } }
    @browsers[switches] ||= TestBrowser.new(switches)
  end

  # @return [TestBrowser::Page] of another site than the hub's, in a context of its own
  def open_site(site = ending(TestSite.new), switches: {})
    skip_unless_available("chromium")
    page = ending(BrowserSources.browser(switches).page)
    page.visit("#{site.origin}/")
    page
  end

  # @param types [Array<String>] beside "message"
  # @return [Source]
  def open_source(page, url, credentials: false, types: [])
    Source.new(page, page.js(OPEN, url, {withCredentials: credentials}, types))
  end

  def set_cookie(page, name, value, **attributes)
    page.page.cookies.set(name: name, value: value, domain: "127.0.0.1", path: "/.well-known/mercure", httponly: true, samesite: "Strict", **attributes)
  end
end
