# frozen_string_literal: true

require "support/integration"
require "support/browser_sources"

# EventSource and fetch of a browser, on pages of other origins than the hub's.
class BrowserEventSourceTest < Integration::Test
  include AccessTokens
  include BrowserSources

  BOOK = Integration::BOOK
  COOKIE = "mercureAuthorization"

  test "an origin on the list reads with its cookie what is private; another one reads nothing (Subscription; Presenting the Access Token)" do
    site, stranger = ending(TestSite.new), ending(TestSite.new)
    hub = start_strict_hub("--cors-origin", site.origin, "--cookie-name", COOKIE)
    page, strange = open_site(site), open_site(stranger)
    [page, strange].each { |each| set_cookie(each, COOKIE, token(:subscriber, BOOK, aud: hub.url)) }
    reader = open_source(page, subscription(hub, BOOK), credentials: true)
    without = open_source(page, subscription(hub, BOOK))
    refused = open_source(strange, subscription(hub, BOOK), credentials: true)
    [reader, without].each(&:until_open)
    assert_equal 2, strange.until("the stranger was let in") { refused.errors.any? && refused.state }
    publisher = token(:publisher, "*", aud: hub.url)
    secret = hub.publish([["topic", BOOK], ["data", "secret"], ["private", "on"]], token: publisher)
    public = hub.publish([["topic", BOOK], ["data", "public"]], token: publisher)
    assert_equal [["message", secret, "secret"], ["message", public, "public"]], reader.take(2)
    assert_equal [["message", public, "public"]], without.take(1), "without credentials the browser sends no cookie"
    assert_empty refused.events
  end

  test "with the wildcard every page reads, but none with its cookie (Subscription)" do
    hub = start_strict_hub("--cors-origin", "*", "--cookie-name", COOKIE)
    page = open_site
    set_cookie(page, COOKIE, token(:subscriber, BOOK, aud: hub.url))
    open_source(page, subscription(hub, BOOK)).until_open
    refused = open_source(page, subscription(hub, BOOK), credentials: true)
    refused.until_error
    assert_equal 2, refused.state
  end

  test "types, ids and lines of data arrive as they were published" do
    site = ending(TestSite.new)
    hub = start_hub("--cors-origin", site.origin)
    page = open_site(site)
    source = open_source(page, subscription(hub, BOOK, match_urlpattern: "https://example.com/authors/:id"), types: %w[price été])
    source.until_open
    hub.publish([["topic", BOOK], ["data", "one\rtwo\r\n\nfour"], ["id", "urn:1"]])
    hub.publish([["topic", "https://example.com/authors/3"], ["data", " € 12 "], ["type", "price"], ["id", "ünd 2"]])
    hub.publish([["topic", BOOK], ["data", ""], ["type", "été"], ["id", "urn:3"]])
    hub.publish([["topic", BOOK], ["data", "end"], ["id", "urn:4"]])
    events = page.until("no end") { source.events.find { |event| event.last == "end" } && source.events }
    assert_equal [["message", "urn:1", "one\ntwo\n\nfour"], ["price", "ünd 2", " € 12 "]], events.first(2)
    assert_equal ["message", "urn:4", "end"], events.last
  end

  test "after kill -9 the page comes back by itself, not before `retry`, is told of the gap, and receives what follows" do
    site = ending(TestSite.new)
    hub = start_hub("--cors-origin", site.origin)
    page = open_site(site)
    source = open_source(page, subscription(hub, BOOK), types: ["mercure"])
    source.until_open
    id = hub.publish([["topic", BOOK], ["data", "before"], ["retry", "800"]])
    source.take(1)
    hub.stop("KILL")
    hub.start
    source.until_open(2)
    assert_operator source.opened.last - source.errors.first.first, :>=, 780
    gap = source.take(2).last
    assert_equal ["mercure", {"type" => "gap", "reason" => "unknown", "last_event_id" => id}], [gap.first, JSON.parse(gap.last)]
    after = hub.publish([["topic", BOOK], ["data", "after"]])
    assert_equal ["message", after, "after"], source.take(3).last
  end

  test "a stream that the hub ends goes on from the page's last event, and nothing comes twice" do
    site = ending(TestSite.new)
    hub = start_hub("--cors-origin", site.origin, "--max-lifetime", "1")
    page = open_site(site)
    source = open_source(page, subscription(hub, BOOK), types: ["mercure"])
    source.until_open
    numbers = (1..30).to_a
    numbers.each do |number|
      hub.publish([["topic", BOOK], ["data", number.to_s], *([["retry", "100"]] if number == 1)])
      sleep 0.05
    end
    events = source.take(30)
    assert_operator source.opened.size, :>=, 2
    assert_equal numbers.map(&:to_s), events.map(&:last)
  end

  test "a graceful stop tells the page when to come back, and it does" do
    site = ending(TestSite.new)
    hub = start_hub("--cors-origin", site.origin)
    page = open_site(site)
    source = open_source(page, subscription(hub, BOOK))
    source.until_open
    assert_equal 0, hub.stop.exitstatus
    source.until_error
    assert_equal 0, source.state, "connecting, not closed for good"
    hub.start
    source.until_open(2)
    hub.publish([["topic", BOOK], ["data", "after"]])
    assert_equal "after", source.take(1).last.last
  end

  test "fetch of another origin: with Authorization and QUERY, after a preflight; what scripts may read (Subscription; Reconnection)" do
    site = ending(TestSite.new)
    hub = start_strict_hub("--cors-origin", site.origin, "--subscriptions")
    page = open_site(site)
    publisher = token(:publisher, "*", aud: hub.url)
    first = hub.publish([["topic", BOOK], ["data", "first"], ["private", "on"]], token: publisher)
    hub.publish([["topic", BOOK], ["data", "second"], ["private", "on"]], token: publisher)
    reader = "Bearer #{token(:subscriber, "*", aud: hub.url)}"
    text = page.js_async(<<~JS)
      (async () => {
        const response = await fetch(#{hub.url.to_json}, {
          method: "QUERY", headers: {"Authorization": #{reader.to_json}, "Last-Event-ID": #{first.to_json}, "Content-Type": "application/x-www-form-urlencoded"},
          body: new URLSearchParams({match: #{BOOK.to_json}}),
        })
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
        let text = ""
        while (!text.includes("second")) text += (await reader.read()).value
        await reader.cancel()
        return [response.status, response.headers.get("Mercure-Last-Event-ID"), text]
      })()
    JS
    assert_equal [200, first], text.first(2), text.inspect
    refute_includes text.last, "data: first"
    published = page.js_async(<<~JS)
      fetch(#{hub.url.to_json}, {
        method: "POST", headers: {"Authorization": #{"Bearer #{publisher}".to_json}, "Idempotency-Key": "1"},
        body: new URLSearchParams({topic: #{BOOK.to_json}, data: "from the page"}),
      }).then(async (response) => [response.status, await response.text()])
    JS
    assert_equal 200, published.first
    listed = page.js_async(<<~JS)
      fetch(#{"#{hub.url}/subscriptions".to_json}, {headers: {"Authorization": #{reader.to_json}}})
        .then((response) => [response.status, response.headers.get("Link")])
    JS
    assert_equal 200, listed.first
    assert_includes listed.last, published.last.delete_prefix("#")
    refused = page.js_async("fetch(#{hub.url.to_json}, {method: 'POST', body: new URLSearchParams({topic: 'a'})}).then((response) => [response.status, response.headers.get('WWW-Authenticate')])")
    assert_equal [401, true], [refused.first, refused.last.to_s.start_with?("Bearer ")]
  end

  test "a page of an origin that is not on the list gets past no preflight" do
    hub = start_strict_hub("--cors-origin", "https://app.example.com")
    page = open_site
    headers = {"Authorization" => "Bearer #{token(:publisher, "*", aud: hub.url)}"}
    stream = follow(hub, BOOK)
    answer = page.js_async("fetch(#{hub.url.to_json}, {method: 'POST', headers: #{headers.to_json}, body: new URLSearchParams({topic: #{BOOK.to_json}})}).then(() => 'answered')")
    assert_match(/\Aerror: TypeError/, answer)
    assert_match(/\Aerror: TypeError/, page.js_async("fetch(#{hub.url.to_json}, {method: 'QUERY', body: new URLSearchParams({match: 'a'})}).then(() => 'answered')"))
    hub.publish([["topic", BOOK], ["data", "mark"]], token: token(:publisher, "*", aud: hub.url))
    assert_equal "mark", stream.next.data, "something was published"
  end

  test "every tab of an origin gets the update" do
    site = ending(TestSite.new)
    hub = start_hub("--cors-origin", site.origin)
    first = open_site(site)
    tabs = [first] + Array.new(2) { ending(BrowserSources.browser.tab_beside(first)).tap { |tab| tab.visit("#{site.origin}/") } }
    sources = tabs.map { |tab| open_source(tab, subscription(hub, BOOK)) }
    sources.each(&:until_open)
    hub.publish([["topic", BOOK], ["data", "for all tabs"]])
    sources.each { |source| assert_equal "for all tabs", source.take(1).last.last }
  end
end
