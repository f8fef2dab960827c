# frozen_string_literal: true

require "test_helper"
require "support/availability"
require "support/browser"
require "support/client_site"

# A browser opens six connections to a host over HTTP/1.1, for all of its tabs, and a page's own requests need one of them.
class ConnectionsTest < Minitest::Test
  include Availability

  def self.browser = @browser ||= TestBrowser.new.tap { |browser| Minitest.after_run { browser.quit } }

  # What a page opens itself, beside the streams of its elements: topics of the hub, and an EventSource.
  OPEN = <<~JS
    (() => {
      window.told = [];
      for (const topic of ["/one", "/two"]) Hikyaku.subscribe("/.well-known/mercure", {match: topic, lastEventId: CURSOR, onmessage: ({data}) => window.told.push(data)});
      window.source = new EventSource("/.well-known/mercure?match=/three");
    })()
  JS
  ASK = "(async () => { let answers = 0; for (let i = 0; i < 20; i++) answers += (await fetch(`/page.js?${Math.random()}`)).ok; return answers; })()"
  # No request is given up: what waits for a connection waits until there is one.
  PATIENT = "((set) => window.setTimeout = (action, wait, ...more) => (wait === 30000 ? 0 : set(action, wait, ...more)))(setTimeout)"
  private_constant :OPEN, :ASK, :PATIENT

  def setup
    skip_unless_available("chromium")
    # No heartbeat says in place of the hub's answers what has arrived.
    @site = ClientSite.new(heartbeat: 3600)
    @pages = []
  end

  def teardown
    @pages&.each(&:close)
    @site&.stop
  end

  test "two tabs with Turbo, presence, two subscriptions and an EventSource each leave connections for what they ask for" do
    first = open_page(@site.newest)
    @site.publish("/elsewhere", "so that the second page is rendered at another event")
    second = open_page(@site.newest, beside: first)
    [first, second].each { |page| assert_equal 20, page.js_async(ASK) }
    # Of the token endpoint's streams, of the hub's topics, and of each page's EventSource.
    first.until("#{@site.streams} streams") { @site.streams == 4 }
    [first, second].each { |page| assert_equal 20, page.js_async(ASK) }
    @site.publish("/room", "to both")
    tell("/one", "one")
    tell("/two", "two")
    [first, second].each do |page|
      page.until("it did not come") { page.js("window.seen").include?("to both") }
      page.until("#{page.js("window.told")} came") { page.js("window.told.sort().join()") == "one,two" }
    end
  end

  test "subscriptions of a browser share one connection, whatever their topics are, and each token has one" do
    page = open_page(@site.newest)
    page.js(<<~JS.sub("TOKENS", %w[/five /six].map { |topic| AccessTokens.token(:subscriber, topic, sub: "somebody") }.to_json))
      (() => {
        window.more = [];
        const subscribe = (match, token) => Hikyaku.subscribe("/.well-known/mercure", {match, token, onmessage: ({data}) => window.more.push(`${match} ${data}`)});
        for (const match of [["/one", "/three"], "/three", "/four"]) subscribe(match);
        TOKENS.forEach((token, index) => subscribe(["/five", "/six"][index], token));
      })()
    JS
    # The token endpoint's, that of what has no token, one for each of two tokens, and the EventSource's.
    page.until("#{@site.streams} streams") { @site.streams == 5 }
    page.until("they are not there") do
      tell("/three", "now", private: false)
      page.js("window.more").include?("/three now")
    end
    %w[/four /five /six].each { |topic| tell(topic, "then", private: topic != "/four") }
    page.until("#{page.js("window.more")} came") { (%w[/four /five /six].map { |topic| "#{topic} then" } - page.js("window.more")).empty? }
    assert_operator page.js("window.more").count("/one,/three now"), :>, 0
    assert_equal 20, page.js_async(ASK)
  end

  private

  def tell(topic, data, **options) = @site.hub.publish(Hikyaku::Hub::Update.new(topics: topic, data: data, **options))

  def open_page(cursor, beside: nil)
    page = (beside ? self.class.browser.tab_beside(beside) : self.class.browser.page).tap { |each| @pages << each }
    page.page.command("Page.addScriptToEvaluateOnNewDocument", source: PATIENT)
    page.visit(@site.page("/room", cursor: cursor, turbo: "1", presence: "room", without: ["SharedWorker"]))
    page.until("no client") { page.js("Boolean(window.Hikyaku)") }
    page.js(OPEN.sub("CURSOR", cursor.to_json))
    page.until("no element") { page.js("document.querySelector('[state]')?.state") == "caught-up" }
    page
  end
end
