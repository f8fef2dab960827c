# frozen_string_literal: true

require "json"
require "uri"
require_relative "breakable_line"
require_relative "http_client"
require_relative "live_application"

# Tests of examples/rails_meeting in two browsers. The class that includes them has a server of it: the example alone, or with files of a guide.
module MeetingApplication
  include LiveApplication

  EXAMPLE = File.join(RailsServer::ROOT, "examples/rails_meeting")
  # Records typists and pointers that the page shows from now on. They may have expired when the test looks.
  WATCH = <<~JS
    window.shown = [];
    window.pointed = [];
    const [typists, board] = ["#typists", "#board"].map((selector) => document.querySelector(selector));
    new MutationObserver(() => window.shown.push(typists.textContent)).observe(typists, {childList: true, characterData: true, subtree: true});
    new MutationObserver(() => window.pointed.push(...Array.from(board.querySelectorAll(".pointer"), (each) => {
      const [x, y] = each.style.translate.split(" ").map(parseFloat);
      return [each.textContent, x / board.clientWidth, y / board.clientHeight];
    }))).observe(board, {childList: true, subtree: true});
  JS
  # The last parts of the paths to which pages send.
  PATHS = %w[token typing cursor messages summary].freeze

  # @param files [Hash{String => String}] files to add or to replace
  # @return [Array(RailsServer::Folder, RailsServer)]
  def self.serve(files = {})
    folder = RailsServer::Folder.new(files, example: EXAMPLE)
    [folder, RailsServer.new(folder, probe: LiveApplication::PROBE, HIKYAKU_ENGINE: ENV.fetch("HIKYAKU_TEST_ENGINE", "c"))]
  end

  # Defines the tests in the class.
  def self.included(tests)
    tests.test "others see who is typing, whoever types does not, and it vanishes" do
      ada, bob = open_page(one, "/rooms/1", who: "Ada"), open_page(other, "/rooms/1", who: "Bob")
      [ada, bob].each { |page| page.page.execute(WATCH) }
      # More often than the throttle sends.
      ada.page.execute("for (let n = 0; n < 50; n += 1) document.querySelector('[name=text]').dispatchEvent(new Event('input'))")
      bob.until("nobody types") { typed?(bob, "Ada") }
      bob.until("Ada types for ever") { bob.text("#typists") == "" }
      say(bob, "Are you there?")
      await_message(ada, "Are you there?")
      refute typed?(ada, "Ada"), "she was told of herself"
      assert_includes 1..2, posts(ada, "typing")
    end

    tests.test "a message ends the typing of its author" do
      ada, bob = open_page(one, "/rooms/1", who: "Ada"), open_page(other, "/rooms/1", who: "Bob")
      bob.page.execute("#{WATCH}; setTimeout = new Proxy(setTimeout, {apply: (set, it, [action, wait]) => (wait === 5000 ? 0 : set(action, wait))})")
      ada.fill("[name=text]", "half a")
      bob.until("nobody types") { bob.text("#typists").include?("Ada") }
      say(ada, "half a message")
      await_message(bob, "half a message")
      bob.until("Ada types for ever") { bob.text("#typists") == "" }
    end

    tests.test "others see where somebody points last, and whoever points does not" do
      ada, bob = open_page(one, "/rooms/1", who: "Ada"), open_page(other, "/rooms/1", who: "Bob")
      [ada, bob].each { |page| page.page.execute(WATCH) }
      (1..60).each { |n| point(ada, n / 120.0) }
      bob.until("nobody points there: #{bob.js("window.pointed")}") do
        bob.js("window.pointed").any? { |name, x, y| name == "Ada" && (x - 0.5).abs < 0.02 && (y - 0.5).abs < 0.02 }
      end
      bob.until("Ada points for ever") { !bob.visible?(".pointer") }
      say(bob, "I see")
      await_message(ada, "I see")
      assert_empty ada.js("window.pointed")
    end

    tests.test "what is of a moment that has passed is not shown when the connection is back; what was said is" do
      ada = open_page(one, "/rooms/1", who: "Ada")
      @line = BreakableLine.new(server.port)
      bob = open_page(other, "/rooms/1", who: "Bob")
      bob.page.execute(WATCH)
      @line.break
      bob.until("it did not notice") { bob.text("#connection") == "reconnecting" }
      assert_equal [204, 201], [post(ada, "typing"), post(ada, "messages", {text: "in the dark"})]
      @line.mend
      await_message(bob, "in the dark")
      bob.until("it is not back") { live?(bob) }
      assert_empty bob.js("window.shown")
      ada.fill("[name=text]", "again")
      bob.until("nobody types") { typed?(bob, "Ada") }
    end

    tests.test "a question is answered at once, or by an update" do
      ada, bob = open_page(one, "/rooms/2", who: "Ada"), open_page(other, "/rooms/2", who: "Bob")
      say(ada, "")
      ada.until("it does not complain") { ada.text("#complaint") == "A message has 1 to 500 letters." }
      before = ada.texts("#messages p").size
      ["one", "two"].each { |text| say(ada, text).then { await_message(ada, text) } }
      say(bob, "three")
      [ada, bob].each { |page| await_message(page, "three") }
      assert_equal before + 3, ada.texts("#messages p").size
      assert_equal ["", ""], [ada.text("#complaint"), ada.js("document.querySelector('[name=text]').value")]
      ada.click("#summarise")
      # With messages of other tests.
      expected = ada.texts("#messages b").tally.map { |name, count| "#{name} #{count}" }.join(", ")
      ada.until("no summary of #{expected}") { ada.text("#summary") == expected }
      assert_equal "", bob.text("#summary")
      assert_empty bob.complaints
    end

    tests.test "identities come from the session, and rooms are for those whom the application admits" do
      eve, bob = open_page(one, "/rooms/1", who: "Eve"), open_page(other, "/rooms/1", who: "Bob")
      bob.page.execute(WATCH)
      assert_equal 204, post(eve, "typing", {id: "1", name: "Ada", correlation: "f" * 32})
      bob.until("nobody types") { typed?(bob, "Eve") }
      refute typed?(bob, "Ada"), "Eve is Ada"
      assert_equal [404] * PATHS.size, PATHS.map { |name| post(eve, name, {text: "hello"}, path: "/rooms/2") }
      assert_equal [422] * PATHS.size, PATHS.map { |name| post(eve, name, {text: "hello"}, token: "forged") }
      go(bob, "/rooms/2")
      refute_includes messages(bob), "hello"
    end

    tests.test "a token is good for the rooms of its user, whatever is subscribed to" do
      eve, bob = open_page(one, "/rooms/1", who: "Eve"), open_page(other, "/rooms/1", who: "Bob")
      topics = ["/rooms/2/now", "/rooms/2/messages", "/users/#{bob.js("document.querySelector('#room').dataset.user")}/replies", "/rooms/1/now"]
      @stream = HttpClient.new(server.port).stream("GET", "/.well-known/mercure?#{URI.encode_www_form(topics.map { |topic| ["match", topic] })}",
        headers: {"host" => "localhost", "authorization" => "Bearer #{post(eve, "token", read: "text()")}"})
      assert_equal [204, 204, 201], [["typing"], ["cursor"], ["messages", {text: "secret"}]].map { |each| post(bob, *each, path: "/rooms/2") }
      assert_equal 201, post(bob, "messages", {text: "for the hall"})
      bob.click("#summarise")
      bob.until("no summary") { bob.text("#summary").include?("Bob") }
      assert_equal 204, post(bob, "cursor", {x: 0.25, y: 0.25})
      assert_equal ["cursor", 0.25], @stream.next.then { |event| [event.type, JSON.parse(event.data)["x"]] }
    end

    tests.test "after a restart, which the history does not survive, the page loads itself anew" do
      bob = open_page(other, "/rooms/1", who: "Bob")
      server.stop
      bob.until("it did not notice") { bob.text("#connection") == "reconnecting" }
      server.start
      # The users were in memory, too.
      bob.until("it did not load itself anew") { bob.visible?("#sign-in") }
    end

    tests.test "whoever sends too often is refused, and nobody else" do
      eve, bob = open_page(one, "/rooms/1", who: "Eve"), open_page(other, "/rooms/1", who: "Bob")
      statuses = Array.new(70) { post(eve, "typing") }
      assert_equal [204, 429], statuses.uniq
      assert_equal 204, post(bob, "typing")
    end

    tests.test "whoever signs out in one tab sends and receives nothing more in another" do
      ada, bob = open_page(one, "/rooms/1", who: "Ada"), open_page(other, "/rooms/1", who: "Bob")
      tab = open_tab(one, ada, "/rooms/1")
      ada.click("#leave")
      tab.until("it still follows") { tab.text("#connection") == "reconnecting" }
      say(bob, "behind her back")
      await_message(bob, "behind her back")
      tab.click("#summarise")
      # The CSRF token has ended with the session.
      tab.until("it asks for ever") { tab.text("#summary") == "/rooms/1/summary answered 422" }
      refute_includes messages(tab), "behind her back"
    end
  end

  def teardown
    super
    @stream&.close
    @line&.close
  end

  private

  def server = self.class.server

  def url = "http://localhost:#{@line ? @line.port : server.port}"

  def states(page) = page.text("#connection")

  def live?(page) = states(page) == "caught-up"

  def say(page, text)
    page.fill("[name=text]", text)
    page.click("#new_message button")
  end

  def messages(page) = page.texts("#messages span")

  # Whether the page has shown a typist of this name since WATCH.
  def typed?(page, name) = page.js("window.shown").any? { |text| text.include?(name) }

  # @return [Integer] how many POSTs the page has sent to a path with this end
  def posts(page, name) = page.js("performance.getEntriesByType('resource').filter(({name}) => name.endsWith('/#{name}')).length")

  # @return [Integer, String] the status, or the body, of the answer to a POST that the page sends without the helper
  def post(page, name, body = {}, path: "/rooms/1", token: page.js("document.querySelector('meta[name=csrf-token]').content"), read: "status")
    headers = {"Content-Type" => "application/json", "Accept" => "application/json", "X-CSRF-Token" => token}.compact
    page.js_async("fetch(#{"#{path}/#{name}".to_json}, {method: 'POST', headers: #{headers.to_json}, body: #{body.to_json.to_json}}).then((answer) => answer.#{read})")
  end

  def point(page, share)
    page.page.execute(<<~JS, share)
      const board = document.querySelector("#board"), {left, top, width, height} = board.getBoundingClientRect()
      board.dispatchEvent(new PointerEvent("pointermove", {clientX: left + width * arguments[0], clientY: top + height * arguments[0]}))
    JS
  end
end
