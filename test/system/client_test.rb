# frozen_string_literal: true

require "test_helper"
require "json"
require "support/availability"
require "support/breakable_line"
require "support/browser"
require "support/client_site"
require "support/running_hub"

# hikyaku.js in Chromium: what needs a browser, over HTTP/1.1. What follows from bytes and time is in test/javascript.
class ClientTest < Minitest::Test
  include Availability

  class << self
    def site = @site ||= ClientSite.new.tap { |site| Minitest.after_run { site.stop } }
    def browser = @browser ||= TestBrowser.new.tap { |browser| Minitest.after_run { browser.quit } }
  end

  WORKER = [].freeze
  TABS = ["SharedWorker"].freeze
  ALONE = %w[SharedWorker locks].freeze
  SHARING = {"worker" => WORKER, "tabs" => TABS}.freeze
  # A browser writes it to the console when a stream ended before a change of it arrived. The client then opens another stream.
  ENDED_STREAM = %r{status of 404 .*/\.well-known/mercure/streams/}

  def setup
    skip_unless_available("chromium")
    @pages = []
    @stream = "/room/#{rand(1_000_000_000)}"
  end

  def teardown
    return if skipped?
    assert_empty @pages.flat_map(&:complaints).grep_v(ENDED_STREAM), "the console is not empty" unless @complaints_expected
  ensure
    @pages&.each(&:close)
    @site&.stop
  end

  def site = @site || self.class.site

  # A tab of a browser of its own, or beside another.
  def tab(beside = nil) = (beside ? self.class.browser.tab_beside(beside) : self.class.browser.page).tap { |page| @pages << page }

  # A tab that follows the test's stream and has caught up.
  def open_tab(beside = nil, without: WORKER, **more)
    page = tab(beside)
    page.visit(site.page(@stream, without: without, **more))
    caught_up(page)
  end

  def caught_up(page)
    page.until("did not catch up: #{states(page)}") { page.js("document.querySelector('[state]')?.state") == "caught-up" }
    page
  end

  def states(page) = page.js("window.states")

  def seen(page) = page.js("window.seen")

  def assert_seen(expected, page) = page.until("#{expected} did not come: #{seen(page)}") { seen(page) == expected }

  def publish(*all) = all.each { |data| site.publish(@stream, data) }

  def sharing(page) = page.js("Hikyaku.sharing")

  def close(page)
    @pages.delete(page)
    page.close
  end

  SHARING.each do |kind, without|
    test "seven tabs and one more, all get what is published over one connection, and none hangs (#{kind})" do
      before = streams
      first = open_tab(without: without)
      tabs = [first] + Array.new(7) { open_tab(first, without: without) }
      assert_equal [kind], tabs.map { |page| sharing(page) }.uniq
      publish("for all")
      tabs.each { |page| assert_seen(["for all"], page) }
      first.until("#{streams - before} connections") { streams - before == 1 }
    end

    # Over HTTP/1.1 a browser has six connections to a host: with one a tab, the seventh would hang.
    test "fifty tabs get every update once, in order, over one connection, also when the tab is closed that holds it (#{kind})" do
      @site = ClientSite.new
      opener = open_fifty(without)
      assert_in_tabs [kind], opener, "tab.Hikyaku?.sharing"
      publish(*"1".."5")
      assert_in_tabs [[*"1".."5"]], opener, "tab.seen"
      assert_equal 1, site.streams
      publish("6")
      holder = (kind == "tabs") ? HOLDER : "tabs[0]"
      opener.js_async("(await #{holder}).close()")
      publish(*"7".."9")
      assert_in_tabs [[*"1".."9"]], opener, "tab.seen", 49
      opener.until("#{site.streams} connections") { site.streams == 1 }
      publish("10")
      assert_in_tabs [[*"1".."10"]], opener, "tab.seen", 49
      assert_in_tabs [false], opener, "tab.states.some(([state]) => state === 'gap')", 49
    ensure
      opener&.js("tabs.forEach((tab) => tab.close()), 0")
    end

    test "tabs with different streams get their own, and a stream that comes and goes disturbs no other (#{kind})" do
      first = open_tab(without: without)
      second = tab(first)
      second.visit(site.page("#{@stream}/second", "#{@stream}/third", without: without))
      caught_up(second)
      10.times do |number|
        site.publish(@stream, "first #{number}")
        site.publish("#{@stream}/second", "second #{number}")
        first.js("window.extra?.remove(), window.extra = element(#{"#{@stream}/extra #{number}".to_json}), 0")
        sleep 0.05
      end
      assert_seen(Array.new(10) { |number| "first #{number}" }, first)
      assert_seen(Array.new(10) { |number| "second #{number}" }, second)
      refute_includes states(first).map(&:first), "reconnecting"
    end

    test "a tab that is closed takes nothing with it, though the connection may have been its own (#{kind})" do
      first = open_tab(without: without)
      others = Array.new(3) { open_tab(first, without: without) }
      publish("1")
      others.each { |page| assert_seen(["1"], page) }
      close(first)
      publish("2")
      later = open_tab(others.first, without: without)
      publish("3")
      others.each { |page| assert_seen(%w[1 2 3], page) }
      assert_seen(["3"], later)
    end

    test "a page that was rendered before it is connected gets what it missed, also where another tab has the stream (#{kind})" do
      first = open_tab(without: without)
      publish("1")
      site.publish("#{@stream}/elsewhere", "x")
      cursor = site.newest
      publish("2", "3")
      second = open_tab(first, without: without, cursor: cursor)
      publish("4")
      assert_seen(%w[2 3 4], second)
      assert_seen(%w[1 2 3 4], first)
    end

    test "a storm of reloads leaves one connection, and what is published meanwhile arrives (#{kind})" do
      before = streams
      page = tab
      page.visit(site.page(@stream, without: without, reloads: 15))
      page.until("it was not reloaded") { reloaded(page) == 15 }
      caught_up(page)
      publish("after")
      page.until("did not come") { seen(page).include?("after") }
      page.until("#{streams - before} connections") { streams - before == 1 }
    end

    test "a page that comes out of the back/forward cache has what it missed there (#{kind})" do
      page = open_tab(without: without)
      publish("1")
      assert_seen(["1"], page)
      page.js("window.kept = true")
      page.visit("#{site.origin}/other")
      publish("2")
      page.page.back
      publish("3")
      # Browsers may also load it anew: then it was rendered later.
      if page.until("it is not there") { page.js("document.readyState") == "complete" } && page.js("window.kept === true")
        assert_seen(%w[1 2 3], page)
      else
        caught_up(page)
      end
      publish("4")
      page.until("did not come") { seen(page).last == "4" }
    end

    test "a tab that was frozen has everything when it is thawed, and the others did not wait for it (#{kind})" do
      first = open_tab(without: without)
      second = open_tab(first, without: without)
      first.page.command("Page.setWebLifecycleState", state: "frozen")
      publish("1")
      assert_seen(["1"], second)
      first.page.command("Page.setWebLifecycleState", state: "active")
      assert_seen(["1"], first)
      publish("2")
      [first, second].each { |page| assert_seen(%w[1 2], page) }
    end
  end

  test "two tabs that were rendered at different events have one connection again as soon as the hub tells that both have all" do
    @site = ClientSite.new(heartbeat: 0)
    first = open_tab
    site.publish("#{@stream}/elsewhere", "x")
    second = open_tab(first)
    first.until("#{site.streams} connections") { site.streams == 1 }
    publish("1")
    [first, second].each { |page| assert_seen(["1"], page) }
    assert_equal %w[connected caught-up], states(second).map(&:first)
  end

  test "where there is neither a shared worker nor a lock each tab has a connection of its own" do
    before = streams
    first = open_tab(without: ALONE)
    second = open_tab(first, without: ALONE)
    assert_equal "page", sharing(first)
    publish("1")
    [first, second].each { |page| assert_seen(["1"], page) }
    first.until("#{streams - before} connections") { streams - before == 2 }
  end

  test "where a policy forbids workers, the tabs share by themselves" do
    @complaints_expected = true
    @site = ClientSite.new
    site.policy = site.policy.sub("worker-src 'self'", "worker-src 'none'")
    page = open_tab
    publish("1")
    assert_seen(["1"], page)
    assert_equal "tabs", sharing(page)
  end

  {"/silent.js" => "/silent.js says nothing. Name the address", "/dead.js" => "/dead.js cannot be started"}.each do |file, complaint|
    test "where the page names another file for the worker, the tabs share by themselves, and those that come later do not start it (#{file})" do
      @complaints_expected = true
      @site = ClientSite.new
      page = open_tab(worker: file)
      assert_equal "tabs", sharing(page)
      page.until("nobody says what is wrong: #{page.complaints}") { page.complaints.any? { |each| each.include?(complaint) } }
      second = open_tab(page, worker: file)
      publish("1")
      [page, second].each { |each| assert_seen(["1"], each) }
      assert_equal ["tabs", 1], [sharing(second), site.useless_loads]
      page.until("#{site.streams} connections") { site.streams == 1 }
      assert_empty second.complaints
      # That goes for this file only.
      assert_equal "worker", sharing(open_tab(page))
    end
  end

  test "where the page names a file for the worker that is not there, the tabs share by themselves at once" do
    @complaints_expected = true
    page = open_tab(worker: "/streams/nothing.js")
    assert_equal "tabs", sharing(page)
    assert page.complaints.any? { |each| each.include?("/streams/nothing.js cannot be started as shared worker") }, page.complaints.inspect
  end

  test "a worker that is late takes over when it speaks, and nothing is lost" do
    @site = ClientSite.new
    site.late = 2.5
    page = open_tab(worker: "/silent.js")
    publish("1")
    assert_seen(["1"], page)
    page.until("the tab does not go back to it") { sharing(page) == "worker" }
    publish("2")
    assert_seen(%w[1 2], page)
    assert_equal "worker", sharing(open_tab(page, worker: "/silent.js"))
    page.until("#{site.streams} connections") { site.streams == 1 }
    assert_equal 1, site.useless_loads
  end

  test "a worker that is configured after the first stream is of no use, and the page is told" do
    @complaints_expected = true
    page = open_tab
    page.js("Hikyaku.configure({worker: '/elsewhere.js'}), 0")
    page.until("nothing is said") { page.complaints.any? { |each| each.include?("configure({worker}) comes too late") } }
  end

  test "after the shared worker has ended another one takes its place, and nothing is lost" do
    page = open_tab
    publish("1")
    assert_seen(["1"], page)
    former = worker_of(page)
    self.class.browser.evaluate_in(former, "setTimeout(() => self.close(), 200)")
    # The next one may be there before anybody has looked.
    page.until("it does not end") { worker_of(page) != former }
    publish("2")
    page.js("document.dispatchEvent(new Event('visibilitychange')), 0")
    page.until("no other one is there") do
      # Chromium has it wait for the debugger of its predecessor, from a moment on that nobody tells.
      worker_of(page)&.then { |worker| self.class.browser.tell_target(worker, "Runtime.runIfWaitingForDebugger") }
      seen(page) == %w[1 2]
    end
    assert_equal "worker", sharing(page)
  end

  test "tokens that live for seconds are renewed on the live stream" do
    @site = ClientSite.new
    site.token_seconds = 5
    site.token_grace = 5
    page = open_tab
    13.times do |number|
      publish(number.to_s)
      sleep 1
    end
    assert_seen(Array.new(13, &:to_s), page)
    refute_includes states(page).map(&:first), "reconnecting"
    assert_operator site.token_requests.size, :>, 2
  end

  test "names that are refused say so, and the others go on" do
    @site = ClientSite.new
    site.refused["/secret"] = "forbidden"
    page = tab
    page.visit(site.page(@stream, "/secret"))
    caught_up(page)
    page.until { states(page).include?(["refused", "forbidden"]) }
    publish("1")
    assert_seen(["1"], page)
    assert_equal %w[caught-up refused], page.js("Array.from(document.querySelectorAll('hikyaku-stream-source'), (each) => each.state)")
  end

  test "an element that is moved goes on with its stream, and nobody asks for anything" do
    page = open_tab
    token_requests = site.token_requests.size
    page.js("document.body.append(document.createElement('div')), document.querySelector('div').append(document.querySelector('hikyaku-stream-source')), 0")
    publish("1")
    assert_seen(["1"], page)
    assert_equal token_requests, site.token_requests.size
  end

  test "an element whose page was rendered again at another event gets what came after that" do
    page = open_tab
    publish("1")
    cursor = site.newest
    publish("2")
    assert_seen(%w[1 2], page)
    page.js("document.querySelector('hikyaku-stream-source').setAttribute('cursor', #{cursor.to_json}), 0")
    assert_seen(%w[1 2 2], page)
  end

  test "where there is no Turbo what comes is dispatched as a message, once for elements of the same stream" do
    page = open_tab
    page.js("element(#{@stream.to_json}, #{site.newest.to_json}), element(#{@stream.to_json}, #{site.newest.to_json}), 0")
    page.until("not all are there") { page.js("document.querySelectorAll('[state=caught-up]').length") == 3 }
    publish("1", "2")
    page.until { seen(page).size == 6 }
    assert_operator page.js("window.messages.length"), :<=, 2
  end

  test "the hub may be a stranger's, and restarted: pages say that something may be missing, and go on" do
    @complaints_expected = true
    @site = ClientSite.new
    running = hub_of_strangers
    site.hub_url = running.url
    page = open_tab(cursor: "earliest")
    tell(running, "1")
    assert_seen(["1"], page)
    running.stop("KILL")
    page.until { states(page).any? { |state, _| state == "reconnecting" } }
    running.start
    page.until("no gap: #{states(page)}") { states(page).include?(%w[gap unknown]) }
    tell(running, "2")
    assert_seen(%w[1 2], page)
  ensure
    running&.stop
  end

  %w[c ruby].each do |engine|
    test "a page of when there was no event yet, away while one is published and the hub restarted, says that something may be missing (#{engine})" do
      @complaints_expected = true
      @site = ClientSite.new
      running = hub_of_strangers("--engine", engine)
      line = BreakableLine.new(running.port)
      site.hub_url = running.url.sub(running.port.to_s, line.port.to_s)
      page = open_tab(cursor: beginning(running))
      line.break
      page.until { states(page).any? { |state, _| state == "reconnecting" } }
      tell(running, "lost")
      running.stop("KILL")
      running.start
      line.mend
      page.js("window.dispatchEvent(new Event('online')), 0")
      page.until("no gap: #{states(page)}") { states(page).include?(%w[gap unknown]) }
      tell(running, "2")
      assert_seen(["2"], page)
    ensure
      line&.close
      running&.stop
    end
  end

  test "the modules that the file is joined from do the same as they are, in the page and in the worker" do
    modules = {client: "/modules/index.js", worker: "/modules/index.js"}
    first = open_tab(**modules)
    second = open_tab(first, **modules)
    publish("1")
    [first, second].each { |page| assert_seen(["1"], page) }
    assert_equal %w[worker worker], [first, second].map { |page| sharing(page) }
    assert first.js("performance.getEntriesByType('resource').length > 10"), "they are not divided"
  end

  test "without a token endpoint a page follows topics of a hub" do
    page = open_tab
    page.js(<<~JS)
      window.got = [], Hikyaku.subscribe("/.well-known/mercure", {
        match: #{@stream.to_json}, lastEventId: #{site.newest.to_json}, onmessage: ({data, type}) => window.got.push([type, data])
      }), 0
    JS
    site.hub.publish(Hikyaku::Hub::Update.new(topics: [@stream], data: "public"))
    page.until("did not come") { page.js("window.got") == [%w[message public]] }
  end

  private

  # Of the tabs that a page has opened, the one that holds the lock. Locks tell whose they are, but nobody who he is, unless by a lock.
  HOLDER = <<~JS
    (async () => {
      const held = async (name) => (await navigator.locks.query()).held.filter((lock) => lock.name === name).map((lock) => lock.clientId);
      const [holder] = await held("hikyaku/1");
      for (const tab of tabs) {
        if (await tab.navigator.locks.request("who", async () => (await held("who"))[0] === holder)) return tab;
      }
    })()
  JS
  private_constant :HOLDER

  # @return [RunningHub] of another origin, which trusts the site
  def hub_of_strangers(*flags)
    RunningHub.new("--no-dev", "--issuer", AccessTokens::ISSUER, "--publisher-key", AccessTokens::SECRETS[:publisher],
      "--subscriber-key", AccessTokens::SECRETS[:subscriber], "--resource-identifier", AccessTokens::HUB_URL, "--cors-origin", site.origin, *flags)
  end

  def tell(running, data)
    topic = site.topic(@stream)
    running.publish([["topic", topic], ["data", data], ["type", topic], ["private", "on"]], token: AccessTokens.token(:publisher, "*"))
  end

  # @return [String] the cursor at which an application renders pages while nothing was published
  def beginning(running)
    authorization = "Bearer #{AccessTokens.token(:subscriber, "/newest")}"
    answer = HttpClient.new(running.port).request("HEAD", "#{URI(running.url).path}?match=/newest&last_event_id=", headers: {"authorization" => authorization})
    assert_equal "earliest", answer["mercure-last-event-id"]
    answer["hikyaku-cursor"]
  end

  # @return [TestBrowser::Page] which has opened the tabs, and sees what they have
  def open_fifty(without)
    opener = tab
    opener.visit("#{site.origin}/other")
    opener.js("window.tabs = Array.from({length: 50}, () => open(#{site.page(@stream, without: without).to_json})), 0")
    opener.tap { assert_in_tabs ["caught-up"], opener, "tab.document.querySelector('[state]')?.state" }
  end

  # @param expected [Array] what the tabs that are open have, each of it once
  # @param expression [String] JavaScript, about `tab`
  def assert_in_tabs(expected, opener, expression, count = 50)
    found = nil
    opener.until("#{found} of #{count} tabs") do
      found = JSON.parse(opener.js("JSON.stringify(tabs.filter((tab) => !tab.closed).map((tab) => #{expression} ?? null))"))
      found.size == count && found.uniq == expected
    end
  end

  # Streams of this test's own: those of the tests before may need a moment until the hub notices that they have ended.
  def streams
    [site.topic(@stream), site.topic("#{@stream}/second")].sum { |topic| site.hub.subscriptions(type: "exact", pattern: topic).last.size }
  end

  # While a page is being loaded there is nobody to ask.
  def reloaded(page)
    page.js("document.readyState === 'complete' ? window.reloaded : 0")
  rescue Ferrum::Error
    0
  end

  # @return [String, nil]
  def worker_of(page)
    targets = self.class.browser.targets
    targets.find { |target| target["type"] == "shared_worker" && target["browserContextId"] == page.page.context_id }&.fetch("targetId")
  end
end
