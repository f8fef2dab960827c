# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require "hikyaku/broker/client"
require "support/availability"
require "support/browser"
require "support/running_hub"

# The developer page in a real browser, against a real hub.
class PageTest < Minitest::Test
  include Availability

  BOOK = "https://example.com/books/1"

  class << self
    def hub = @hub ||= RunningHub.new
    def browser = @browser ||= TestBrowser.new

    def finish
      @browser&.quit
      @hub&.stop
    end
  end
  Minitest.after_run { finish }

  def setup
    skip_unless_available("chromium")
    @pages = []
    @other_hosts = []
  end

  def teardown
    return if skipped?
    assert_equal [], @pages.flat_map(&:complaints), "the console is not empty" unless @complaints_expected
    hosts = @pages.flat_map(&:hosts).uniq - ["127.0.0.1:#{hub.port}", *@other_hosts]
    assert_empty hosts, "the page asked another host"
  ensure
    @pages&.each(&:close)
  end

  def hub = @hub || self.class.hub

  # A page that has begun: its settings are read and its figures arrive.
  def open_page(size: nil, scheme: nil, beside: nil, visit: true)
    page = beside ? self.class.browser.tab_beside(beside) : self.class.browser.page
    @pages << page
    page.resize(size) if size
    page.prefer(scheme) if scheme
    return page unless visit
    page.visit(hub.page)
    page.until("no figures arrived") { page.text("#figure-subscribers .value").match?(/\d/) }
    page
  end

  # Replaces the matchers of the form and subscribes; matchers are [type, pattern].
  def subscribe(page, *matchers, from: nil)
    rows = "#matchers .row"
    page.click("#add-matcher") while page.texts(rows).size < matchers.size
    page.click("#{rows}:last-child .icon") while page.texts(rows).size > matchers.size
    matchers.each.with_index(1) do |(type, pattern), index|
      page.fill("#{rows}:nth-child(#{index}) select", type)
      page.fill("#{rows}:nth-child(#{index}) input", pattern)
    end
    page.fill("#cursor", from) if from
    page.click("#subscribe")
    page.until("the stream did not open") { page.text("#connection-state") == "Open" }
  end

  def publish(page, topic, data, private: false, type: "", id: "")
    page.fill("#topics input", topic)
    page.fill("#publish-data", data)
    page.fill("#publish-type", type)
    page.fill("#publish-id", id)
    page.js("document.querySelector('#publish-private').checked = #{private}")
    before = page.text("#publish-result")
    page.click("#publish-form .main")
    page.until("the publish was not answered") { page.text("#publish-result") != before }
    page.text("#publish-result")
  end

  # The data of the events, oldest first.
  def events(page) = page.texts("#events .event .data pre").reverse

  def wait_for_events(page, count) = page.until("not #{count} events") { events(page).size >= count && events(page) }

  def make_token(page, **rights) = page.js_async("fetch('token', {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(#{JSON.generate(rights)})}).then((r) => r.json()).then((o) => o.token)")

  def use_token(page, token)
    page.fill("#token-text", token)
    page.click("#use-token")
    page.until { page.text("[data-credentials]").include?("the token below") }
  end

  test "the hub's own figures arrive as soon as the page is open, and go on arriving" do
    page = open_page
    first = page.text("#figure-uptime_seconds .value")
    page.until("the figures stand still") { page.text("#figure-uptime_seconds .value") != first }
    assert_equal "live", page.text("#live")
    assert_match(/\A\d+\z/, page.text("#figure-subscribers .value"))
    assert_match(/\d (B|KB|MB)\z/, page.text("#figure-memory_bytes .value"))
    page.until("no line is drawn") { page.js("!!document.querySelector('#figure-memory_bytes .spark-line').getAttribute('d')") }
    assert_equal hub.url, page.text("#hub-url")
    assert_equal Hikyaku::VERSION, page.text("#version")
  end

  test "an exact and a pattern matcher receive what the page publishes, with its topic and latency" do
    page = open_page
    subscribe(page, ["exact", BOOK], ["urlpattern", "https://example.com/authors/:id"])
    assert_match(/\A200, answered in [\d.]+ ms, id \S+\z/, publish(page, BOOK, '{"stock":3}'))
    wait_for_events(page, 1)
    publish(page, "https://example.com/authors/7", "plain", type: "note", id: "urn:example:7")
    publish(page, "https://example.com/other", "not for this page")
    publish(page, BOOK, "last")
    assert_equal ["{\n  \"stock\": 3\n}", "plain", "last"], wait_for_events(page, 3)
    assert_equal [['"stock"'], ["3"]], [page.texts("#events .json-key"), page.texts("#events .json-number")]
    page.until { page.texts("#events .latency").all? { |text| text.match?(/\A[\d.]+ ms\z/) } }
    assert_equal [BOOK, "https://example.com/authors/7", BOOK], page.texts("#events .source").reverse
    assert_includes page.texts("#events .type"), "note"
    assert_includes page.texts("#events .id"), "urn:example:7"
    assert_match(/\A3 events · latency [\d.]+ ms median/, page.text("#events-summary"))
  end

  test "a topic in the way of Mercure 0.x is understood where the hub understands it" do
    page = open_page
    subscribe(page, ["uri_template", "https://example.com/old/{id}"])
    publish(page, "https://example.com/old/1", "as ever")
    assert_equal ["as ever"], wait_for_events(page, 1)
    page.until { page.text("#subscriptions tbody").include?("https://example.com/old/{id}") }
  end

  test "what others publish is shown too, without a latency, and never as markup" do
    page = open_page
    subscribe(page, ["exact", BOOK])
    hostile = %(<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>)
    hub.publish([["topic", BOOK], ["data", hostile], ["type", "<b>"]])
    hub.publish([["topic", BOOK], ["data", JSON.generate(html: hostile)], ["id", hostile.tr("'", "’")]])
    # EventSource and fetch agree: the type is only a name.
    assert_equal [hostile, JSON.pretty_generate(html: hostile)], wait_for_events(page, 2)
    assert_equal "Hikyaku", page.js("document.title")
    assert_equal 0, page.js("document.querySelectorAll('#events img, #events script, #events b').length")
    assert_empty page.texts("#events .latency").reject(&:empty?)
  end

  test "a private update reaches the page with a token that permits it, and no page without" do
    # Mercure draft-08, section "Subscribers".
    reader = open_page
    use_token(reader, make_token(reader, subscribe: [{match: "https://example.com/books/:id", match_type: "urlpattern"}]))
    stranger = open_page
    stranger.click("input[name=carrier][value=none]")
    [reader, stranger].each { |page| subscribe(page, ["exact", BOOK]) }
    publisher = open_page
    publish(publisher, BOOK, "secret", private: true)
    publish(publisher, BOOK, "for all")
    assert_equal ["secret", "for all"], wait_for_events(reader, 2)
    assert_equal ["for all"], wait_for_events(stranger, 1)
  end

  test "the table of subscriptions follows other tabs that come and go" do
    page = open_page
    page.until { page.text("#subscriptions tbody").include?("/figures") }
    other = open_page
    subscribe(other, ["urlpattern", "https://example.com/seen-from-afar/:id"])
    row = "https://example.com/seen-from-afar/:id"
    page.until("the other's subscription is not listed") { page.text("#subscriptions tbody").include?(row) }
    refute_includes page.texts("#subscriptions tr.own").join, row
    assert_includes other.texts("#subscriptions tr.own").join, row
    other.click("#disconnect")
    page.until("the other's subscription stays listed") { !page.text("#subscriptions tbody").include?(row) }
    assert_equal "Closed", other.text("#connection-state")
  end

  test "the token tool says what a token permits, and why another is refused" do
    page = open_page
    page.fill("#token-text", make_token(page, publish: [BOOK], subscribe: [{match: "/news/*", match_type: "urlpattern"}]))
    page.click("#token-form .main")
    page.until { page.texts(".report").size == 2 }
    assert_equal "Permits #{BOOK}", page.text(".report[data-role=publisher] .permits")
    assert_equal "Permits /news/* (URL pattern)", page.text(".report[data-role=subscriber] .permits")
    assert_empty page.texts(".checks [data-ok=false]")

    expired = make_token(page, publish: ["*"], expires_in: 1)
    forged = make_token(page, publish: ["*"]).sub(/\.\K[^.](?=[^.]*\z)/) { |first| (first == "A") ? "B" : "A" }
    {"no token at all" => /./, forged => /signature/i}.each do |token, reason|
      page.fill("#token-text", token)
      page.click("#token-form .main")
      page.until("no check failed") { page.texts(".report").size == 2 && page.texts(".report[data-role=publisher] .checks [data-ok=false]").any? }
      assert_match reason, page.text(".report[data-role=publisher] .checks [data-ok=false]")
      assert_equal "false", page.js("document.querySelector('.report').dataset.valid")
    end
    page.fill("#token-text", expired)
    page.until("the token does not expire") do
      page.click("#token-form .main")
      page.texts(".report[data-role=publisher] .checks [data-ok=false]").any? { |text| text.match?(/expire/i) }
    end
  end

  test "a publish that is refused says why" do
    @complaints_expected = true # browsers write each 403 to the console
    page = open_page
    use_token(page, make_token(page, publish: [BOOK]))
    refusal = publish(page, "https://example.com/other", "x")
    assert_match(/\A403 insufficient_scope: ./, refusal)
    page.until { page.text("#publish-result").include?("The token permits publishers only: #{BOOK}.") }
    use_token(page, "abc")
    page.until { publish(page, BOOK, "x").start_with?("401 invalid_token: ") }
    page.click("input[name=carrier][value=none]")
    assert_match(/\A401: /, publish(page, BOOK, "x"))
  end

  test "a subscription that the hub refuses says why, and is not tried again" do
    @complaints_expected = true
    page = open_page
    page.fill("#matchers .row:nth-child(2) input", "https://example.com/(")
    page.click("#subscribe")
    page.until { page.text("#connection-reason").start_with?("400: ") }
    assert_equal "Closed", page.text("#connection-state")
  end

  test "history is read from the beginning, or after an id that is picked from the list" do
    # Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing".
    page = open_page
    topic = "https://example.com/history/#{rand(1 << 40)}"
    ids = %w[one two three].map { |data| hub.publish([["topic", topic], ["data", data]]) }
    page.click("[data-cursor=earliest]")
    subscribe(page, ["exact", topic])
    assert_equal %w[one two three], wait_for_events(page, 3)
    assert_equal ids, page.texts("#events .id").reverse
    page.click("#clear")
    page.until { events(page).empty? }
    page.click("#disconnect")
    subscribe(page, ["exact", topic], from: ids[1])
    assert_equal %w[three], wait_for_events(page, 1)
    page.click("#events .id")
    assert_equal ids[2], page.js("document.querySelector('#cursor').value")
  end

  test "under a name that the hub was not given the page works without a token of its own, and says why" do
    # Any site could point a name at this machine; it shall not get tokens.
    @complaints_expected = true
    @other_hosts << "#{TestBrowser::NAME}:#{hub.port}"
    page = open_page(visit: false)
    page.visit(hub.page.sub("127.0.0.1", TestBrowser::NAME))
    page.until("no figures arrived") { page.text("#figure-subscribers .value").match?(/\d/) }
    page.until { page.text("#choice-problem").include?("--resource-identifier") }
    page.until { page.text("#subscriptions-note").start_with?("401: ") }
    subscribe(page, ["exact", BOOK])
    hub.publish([["topic", BOOK], ["data", "public"]])
    assert_equal ["public"], wait_for_events(page, 1)
  end

  test "with the cookie the browser's own EventSource is used, and no script can read the token" do
    # Mercure draft-08, section "Cookie".
    page = open_page
    page.click("input[name=carrier][value=cookie]")
    page.until { page.text("[data-credentials]").include?("cookie") }
    assert_equal "", page.text("#choice-problem")
    subscribe(page, ["exact", BOOK])
    publish(page, BOOK, "by cookie", private: true)
    publish(page, BOOK, "of a type", type: "odd")
    assert_equal ["by cookie", "of a type"], wait_for_events(page, 2)
    cookie = page.page.cookies.all.values.find { |each| each.name.end_with?("mercure_access_token") }
    assert cookie&.httponly?
    assert_equal "", page.js("document.cookie")
  end

  test "after the hub was killed and started again the page reconnects, says what may be lost, and receives again" do
    @complaints_expected = true # browsers write each refused connection to the console
    @hub = RunningHub.new
    page = open_page
    subscribe(page, ["exact", BOOK])
    publish(page, BOOK, "before")
    wait_for_events(page, 1)
    last = page.text("#events .id")
    @hub.stop("KILL")
    page.until("the loss is not shown") { page.text("#connection-state") == "Reconnecting…" }
    page.until("no countdown") { page.text("#connection-count").match?(/\Ain \d+ s\z/) }
    @hub.start
    page.until("the page did not come back") { page.text("#connection-state") == "Open" }
    page.until("the gap is not shown") { page.text("#events .gap").include?("The hub does not know the event #{last}") }
    assert_equal 1, page.texts("#events .gap").size
    assert_match(/\A200/, publish(page, BOOK, "after"))
    assert_equal %w[before after], wait_for_events(page, 2)
    page.until("the figures did not come back") { page.text("#live") == "live" }
    page.until("the table did not come back") { page.text("#subscriptions tbody").include?(BOOK) }
  ensure
    @pages.each(&:close)
    @pages.clear
    @hub&.stop
  end

  test "the queues of the broker in the hub's process are there as they change, and without one nothing is said of them" do
    page = open_page
    assert_equal [true, true], %w[#broker #broker-link].map { |selector| page.js("document.querySelector('#{selector}').hidden") }
    Dir.mktmpdir do |folder|
      @hub = RunningHub.new("--broker", "--broker-socket", "#{folder}/broker.sock", "--broker-max-failures", "1")
      page = open_page
      page.until("the broker is not shown") { page.text("#broker-count").start_with?("0 queues") }
      assert_includes page.text("#broker-note"), "hikyaku send"
      client = Hikyaku::Broker::Client.open("unix:#{folder}/broker.sock")
      %w[b a].each { |queue| 3.times { client.send_message(queue, "x") } }
      page.until("the queues are not shown") { page.texts("#broker tbody tr").size == 2 }
      assert_equal %w[a b], page.texts("#broker tbody td[data-label=Queue]")
      client.receiver("b").receive(timeout: 60).reject("no")
      page.until("the dead letter is not shown") { page.texts("#broker td[data-label='Dead letters']") == %w[0 1] }
      assert_includes page.text("#broker-note"), "hikyaku dead"
    ensure
      client&.close(timeout: 0)
      @pages.each(&:close)
      @pages.clear
      @hub&.stop
    end
  end

  test "with the cookie, too, the page comes back after a restart" do
    @complaints_expected = true
    @hub = RunningHub.new
    page = open_page
    page.click("input[name=carrier][value=cookie]")
    page.until { page.text("[data-credentials]").include?("cookie") }
    subscribe(page, ["exact", BOOK])
    publish(page, BOOK, "before")
    wait_for_events(page, 1)
    @hub.stop("KILL")
    page.until { page.text("#connection-state") == "Reconnecting…" }
    @hub.start
    page.until("the page did not come back") { page.text("#connection-state") == "Open" }
    page.until("the gap is not shown") { page.texts("#events .gap").any? }
    publish(page, BOOK, "after")
    assert_equal %w[before after], wait_for_events(page, 2)
  ensure
    @pages.each(&:close)
    @pages.clear
    @hub&.stop
  end

  test "at most 500 events are kept, and long data is shown cut until it is asked for" do
    page = open_page
    subscribe(page, ["exact", BOOK])
    token = hub.token(publish: ["*"])
    hub.publish([["topic", BOOK], ["data", "x" * 5_000]], token: token)
    wait_for_events(page, 1)
    assert_operator page.text("#events .data pre").size, :<, 1_000
    page.click("#events .data button")
    assert_equal 5_000, page.text("#events .data pre").size
    publishing = "Promise.all(Array.from({length: 100}, (_, n) => fetch('..'.replace('..', new URL('../', document.baseURI).pathname.slice(0, -1)), {method: 'POST', headers: {authorization: 'Bearer #{token}'}, body: new URLSearchParams({topic: '#{BOOK}', data: String(n)})}))).then(() => 1)"
    6.times { assert_equal 1, page.js_async(publishing) }
    page.until("not all arrived") { page.text("#events-summary").start_with?("601 events") }
    page.until { page.page.css("#events .event").size < 501 }
    assert_operator page.page.css("#events > li").size, :<=, 500
  end

  test "the lines for curl do what the page does" do
    skip_unless_available("curl")
    page = open_page
    topic = "https://example.com/it's; a $HOME \"quoted\" topic"
    subscribe(page, ["exact", topic])
    page.fill("#topics input", topic)
    page.fill("#publish-data", "a\nb & 'c'")
    page.until { page.js("document.querySelector('#publish-curl').textContent").include?("Bearer") }
    output, status = Open3.capture2e("sh", "-c", page.js("document.querySelector('#publish-curl').textContent").sub("curl ", "curl -sS "))
    assert status.success?, output
    assert_equal ["a\nb & 'c'"], wait_for_events(page, 1)
    line = page.js("document.querySelector('#subscribe-curl').textContent").sub("curl ", "curl -sS -m 2 ")
    stream, = Open3.capture2e("sh", "-c", line.sub(/$/, "").sub("-NG", "-NG -H 'Last-Event-ID: earliest'"))
    assert_includes stream, "data: a\ndata: b & 'c'\n"
  end

  [[:phone, TestBrowser::PHONE], [:desktop, TestBrowser::DESKTOP]].product(%w[light dark]).each do |(name, size), scheme|
    test "on a #{name} in #{scheme} nothing is cut off, every text can be read, and every control has a name" do
      page = open_page(size: size, scheme: scheme)
      subscribe(page, ["exact", BOOK], ["urlpattern", "https://example.com/#{"a-long-path/" * 12}:id"])
      publish(page, BOOK, %({"text": "#{"word " * 60}", "n": [1, true, null], "long": "#{"x" * 300}"}), type: "note")
      page.click("#own-token")
      page.js("document.querySelectorAll('details').forEach((each) => { each.open = true })")
      page.until { page.texts(".report").size == 2 && events(page).any? }
      assert_equal 0, page.js("document.documentElement.scrollWidth - document.documentElement.clientWidth"), "there is a horizontal scroll"
      assert_equal [], page.js(WIDE), "wider than the window"
      assert_equal [], page.js(FAINT), "less contrast than WCAG AA asks for"
      assert_equal [], page.js(NAMELESS), "controls without a name"
      small = (name == :phone) ? page.js(SMALL) : []
      assert_equal [], small, "too small for a thumb"
    end
  end

  # Elements that stick out of the window.
  WIDE = <<~JS
    [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility() && !each.closest(".visually-hidden, thead, .spark, pre") &&
      each.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(each).position !== "absolute").map((each) => each.outerHTML.slice(0, 80))
  JS

  # Texts whose contrast with what is painted behind them is below 4.5 (WCAG 2.2, 1.4.3).
  FAINT = <<~JS
    (() => {
      const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
      const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const behind = (element) => {
        for (let each = element; each; each = each.parentElement) {
          const colour = parse(getComputedStyle(each).backgroundColor);
          if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
      };
      const found = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.textContent.trim() || !element.checkVisibility() || element.closest(".visually-hidden, noscript, option")) continue;
        const [one, other] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
        const contrast = (one + 0.05) / (other + 0.05);
        if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className}: ${node.textContent.trim().slice(0, 30)}`);
      }
      return found;
    })()
  JS

  NAMELESS = <<~JS
    [...document.querySelectorAll("button, input, select, textarea, summary, a")].filter((each) => each.checkVisibility() &&
      !(each.labels?.length || each.getAttribute("aria-label") || each.textContent.trim())).map((each) => each.outerHTML.slice(0, 80))
  JS

  # WCAG 2.2, 2.5.8: 24 by 24 pixels, links within a sentence excepted.
  SMALL = <<~JS
    [...document.querySelectorAll("button, select, input, summary, nav a")].filter((each) => each.checkVisibility() && !each.closest(".check"))
      .filter((each) => each.getBoundingClientRect().height < 24 || each.getBoundingClientRect().width < 24).map((each) => each.outerHTML.slice(0, 80))
  JS

  test "the theme can be chosen, and is remembered" do
    page = open_page(scheme: "light")
    background = -> { page.js("getComputedStyle(document.documentElement).backgroundColor") }
    by_day = background.call
    page.click("#theme")
    by_night = background.call
    refute_equal by_day, by_night
    assert_equal "Theme: dark", page.text("#theme")
    page.visit(hub.page)
    assert_equal by_night, background.call
    page.click("#theme")
    assert_equal by_day, background.call
    page.prefer("dark")
    assert_equal by_day, background.call
    page.click("#theme")
    assert_equal by_night, background.call
  end

  test "the page's reader understands event streams as the HTML standard says, cut anywhere" do
    page = open_page
    {
      "data: a\n\n" => [["", "message", "a"]],
      "data:a\r\rdata:  b\r\n\r\n" => [["", "message", "a"], ["", "message", " b"]],
      "id: 1\nevent: note\ndata: x\ndata: y\n\ndata\n\n" => [["1", "note", "x\ny"], ["1", "message", ""]],
      ": comment\nid: 7\n\ndata: after\n\n" => [["7", "message", "after"]],
      "id: a\u0000b\ndata: nul\n\nid\ndata: none\n\n" => [["", "message", "nul"], ["", "message", "none"]],
      "\uFEFFdata: bom\n\ndata: unfinished\n" => [["", "message", "bom"]],
      "data: é 飛脚 🏃\n\nretry: 12x\nretry: 50\nunknown: x\nevent: x\n\n" => [["", "message", "é 飛脚 🏃"], "retry 50"]
    }.each do |stream, expected|
      whole = read(page, stream, [])
      assert_equal expected, whole, stream.inspect
      assert_equal expected, read(page, stream, (1...stream.size).to_a), "#{stream.inspect}, one character at a time"
      (1...stream.size).each { |cut| assert_equal expected, read(page, stream, [cut]), "#{stream.inspect} cut at #{cut}" } if stream.size < 25
    end
  end

  private

  def read(page, stream, cuts)
    pieces = ([0] + cuts + [stream.size]).each_cons(2).map { |from, to| stream[from...to] }
    page.js_async(<<~JS)
      import("./sse.js").then(({EventParser}) => {
        const seen = [];
        const parser = new EventParser({onEvent: ({id, type, data}) => seen.push([id, type, data]), onRetry: (wait) => seen.push(`retry ${wait}`)});
        for (const piece of #{JSON.generate(pieces)}) parser.push(piece);
        return seen;
      })
    JS
  end
end
