# frozen_string_literal: true

require "test_helper"
require "json"
require "support/access_tokens"
require "support/availability"
require "support/browser"
require "support/msgpack_site"
require "support/snippets"

# Streams in other formats than Server-Sent Events, and compressed ones, in Chromium, which asks for gzip by itself: docs/streams.md.
class CompressedStreamsTest < Minitest::Test
  include Availability

  class << self
    def site = @site ||= MsgpackSite.new.tap { |site| Minitest.after_run { site.stop } }
    def browser = @browser ||= TestBrowser.new.tap { |browser| Minitest.after_run { browser.quit } }
  end

  # The engine in Ruby does not compress.
  CODING = ("gzip" unless HubServer::ENGINE == "ruby")
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  JOIN_POINTS = File.read(File.expand_path("../support/join_points.js", __dir__))

  def setup
    skip_unless_available("chromium")
    @page = self.class.browser.page
    @page.visit(self.class.site.url)
  end

  def teardown = @page&.close

  def hub = self.class.site.server.hub

  test "EventSource and fetch decode what is compressed, from 200 random join points on, each event as soon as it is flushed" do
    # Chromium has six connections to a host; one is for publishing.
    options = {hub: hub.hub_path, token: AccessTokens.token(:publisher, "*"), seed: SEED, joins: 200, readers: 5}
    result = @page.js_async("(#{JOIN_POINTS})(#{JSON.generate(options)})", wait: 120)
    assert_kind_of Hash, result, result
    assert_equal [200, []], result.values_at("joins", "mistakes"), result
    # Several epochs of 64 events, and enough of each kind.
    %w[events EventSource fetch replayed].zip([150, 70, 70, 40]).each { |name, least| assert_operator result[name], :>, least, result }
    codings = @page.page.network.traffic.filter_map { |exchange| exchange.response&.headers&.slice("content-encoding", "content-type") if exchange.request.url.include?("match=") }
    assert_equal [{"content-encoding" => CODING, "content-type" => "text/event-stream"}.compact], codings.uniq
    assert_operator codings.size, :>=, 200
  end

  test "a page reads MessagePack, compressed: what it missed, what comes, and after a revocation with another token from where it was" do
    topic = "/packed/#{rand(1_000_000_000)}"
    publish(topic, "missed\nby it")
    tokens = %w[ada bob].map { |subject| AccessTokens.token(:subscriber, topic, sub: subject) }
    @page.js_async(<<~JS)
      import("hikyaku-msgpack").then(({MessagePackSource}) => {
        const tokens = #{JSON.generate(tokens)};
        window.seen = [];
        window.states = [];
        window.source = new MessagePackSource("#{hub.hub_path}?match=#{topic}", {
          lastEventId: "earliest",
          token: () => tokens.shift(),
          onmessage: ({id, type, data}) => seen.push([id, type, data]),
          onstate: (state) => states.push(state),
        });
      })
    JS
    @page.until("nothing came: #{@page.complaints}") { @page.js("window.seen.length") == 1 }
    ids = [publish(topic, "é", type: "note", private: true)]
    @page.until("it did not come") { @page.js("window.seen.length") == 2 }
    self.class.site.server.web.disconnect(subject: "ada")
    ids << publish(topic, "while it was away", private: true)
    @page.until("it is not back: #{@page.js("window.states")}") { @page.js("window.seen.length") == 3 }
    assert_equal [["message", "missed\nby it"], ["note", "é"], ["message", "while it was away"]], @page.js("window.seen").map { |event| event.drop(1) }
    assert_equal ids, @page.js("window.seen").drop(1).map(&:first)
    assert_equal %w[connected reconnecting connected], @page.js("window.states")
    headers = @page.page.network.traffic.filter_map { |exchange| exchange.response&.headers&.values_at("content-type", "content-encoding") if exchange.request.url.include?(topic) }
    assert_equal [["application/vnd.msgpack", CODING]], headers.uniq
    @page.js("window.source.close()")
  end

  test "the example of docs/streams.md shows what is published" do
    code = Snippets.of("docs/streams.md").find { |snippet| snippet.language == "js" }.code
    @page.js(<<~JS)
      (() => {
        window.shown = [];
        window.show = (text) => shown.push(text);
        const script = Object.assign(document.createElement("script"), {type: "module", textContent: #{JSON.generate("#{code}\nwindow.source = source")}});
        document.head.append(script);
      })()
    JS
    @page.until("it is not connected: #{@page.complaints}") { @page.js("window.source?.state") == "connected" }
    id = publish("/books/1", "a book", type: "new")
    @page.until("it did not come") { @page.js("window.shown.length") == 1 }
    assert_equal ["#{id} new a book"], @page.js("window.shown")
  end

  private

  # @return [String] the id of the event
  def publish(topic, data, **more) = hub.publish(Hikyaku::Hub::Update.new(topics: [topic], data: data, **more))
end
