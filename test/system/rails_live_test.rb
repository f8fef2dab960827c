# frozen_string_literal: true

require "test_helper"
require "json"
require "support/breakable_line"
require "support/http_client"
require "support/live_application"

# The example with Turbo, in two browsers at once.
class RailsLiveTest < Minitest::Test
  include LiveApplication

  # A model that takes its time, and a page that is long under way: tokens come before its data are read, and after.
  SLOW = {
    "app/jobs/answer_job.rb" => File.read("#{EXAMPLE}/app/jobs/answer_job.rb").sub("pause: 0.04", "pause: 0.15"),
    "app/controllers/answers_controller.rb" => File.read("#{EXAMPLE}/app/controllers/answers_controller.rb")
      .sub(/^(    @answers = .+)$/, "    sleep 0.7 if params[:slow]\n\\1.load\n    sleep 0.7 if params[:slow]")
  }.freeze
  # Names of streams that are good for as long as the address says.
  BRIEF = {
    "app/controllers/conversations_controller.rb" => File.read("#{EXAMPLE}/app/controllers/conversations_controller.rb").sub(/^class .*\n/, <<~RUBY)
      \\0  around_action(if: -> { params[:name_seconds] }) do |_, action|
          before = Hikyaku::Turbo.settings
          Hikyaku::Turbo.settings = Hikyaku::Turbo::Settings.new(turbo: true, turbo_expires_in: params[:name_seconds].to_i)
          action.call
        ensure
          Hikyaku::Turbo.settings = before
        end
    RUBY
  }.freeze
  # What is there when the answer is about to be replaced by the whole of it.
  KEEP_STREAMED = <<~JS
    document.addEventListener("hikyaku:event", ({ detail }) => {
      if (detail.data.includes('action="replace"')) window.streamed ??= document.querySelector(".text").textContent
    })
  JS

  class << self
    def folder = @folder ||= LiveApplication.folder({**SLOW, **BRIEF})
    def server = @server ||= LiveApplication.start(folder, HIKYAKU_ENGINE: ENV.fetch("HIKYAKU_TEST_ENGINE", "c"))

    def finish
      @server&.stop
      @folder&.remove
    end
  end
  Minitest.after_run { finish }

  def teardown
    super
    @line&.close
    @stream&.close
  end

  test "what is said in one browser is read in the other, once, and no page is loaded again" do
    ada, bob = open_page(one, "/conversations/1", who: "Ada"), open_page(other, "/conversations/1", who: "Bob")
    [ada, bob].each { |page| mark(page) }
    send_message(ada, "Is anybody there?")
    [ada, bob].each { |page| await_message(page, "Is anybody there?") }
    send_message(bob, "I am <b>here</b>")
    [ada, bob].each { |page| await_message(page, "I am <b>here</b>") }
    assert_equal [1, 1], [ada, bob].map { |page| messages(page).count("Is anybody there?") }
    assert_equal "", ada.js("document.querySelector('#new_message [type=text]').value")
    assert_equal [true, true], [ada, bob].map { |page| marked?(page) }
    assert_equal [[], []], [ada.complaints, bob.complaints]
  end

  test "the list of conversations is morphed into what it has become, round what is being typed" do
    ada, bob = open_page(one, "/conversations", who: "Ada"), open_page(other, "/conversations/2", who: "Bob")
    mark(ada)
    ada.fill("#new_conversation [type=text]", "half a tit")
    before = ada.text("#conversation_2 .count").to_i
    send_message(bob, "Snow")
    ada.until("the list stayed") { ada.text("#conversation_2 .count").to_i == before + 1 }
    go(bob, "/conversations")
    bob.fill("#new_conversation [type=text]", "About #{before}")
    bob.click("#new_conversation [type=submit]")
    ada.until("no new conversation") { ada.texts("#conversations a").include?("About #{before}") }
    assert_equal [true, "half a tit"], [marked?(ada), ada.js("document.querySelector('#new_conversation [type=text]').value")]
  end

  test "the ticker is for everybody: what is bought in one browser is seen in the other, and prices move by themselves" do
    pages = [open_page(one, "/"), open_page(other, "/")]
    pages.each { |page| mark(page) }
    before = pages.last.text("#stock_1 .volume").to_i
    pages.first.click("#stock_1 button")
    pages.each { |page| page.until("nobody bought") { page.text("#stock_1 .volume").to_i == before + 100 } }
    prices = pages.last.texts(".price")
    pages.last.until("the market stands still") { pages.last.texts(".price") != prices }
    assert_equal [true, true], pages.map { |page| marked?(page) }
  end

  test "a job says how far it is, in all browsers of its user and in nobody else's" do
    here, there, stranger = open_page(one, "/exports", who: "Ada"), open_page(other, "/exports", who: "Ada"), open_page(other, "/exports", who: "Eve")
    here.click("#new_export")
    seen = []
    there.until("it does not end") do
      seen << there.js("document.querySelector('progress')?.value")
      there.text(".export .state") == "done"
    end
    assert_operator seen.compact.uniq.size, :>, 3, "the bar jumped: #{seen.uniq}"
    assert_equal seen.compact.sort, seen.compact
    here.until("it does not end") { here.text(".export .state") == "done" }
    assert_empty stranger.texts(".export")
  end

  test "a language model's words come one by one, in their order, also to a page that is made meanwhile" do
    ada, late = open_page(one, "/answers", who: "Ada"), open_page(other, "/exports", who: "Ada")
    ada.page.execute(KEEP_STREAMED)
    ada.fill("#new_answer [type=text]", "Where is my letter?")
    ada.click("#new_answer [type=submit]")
    ada.until("it says nothing") { ada.texts(".text span").size > 3 }
    late.visit("#{url}/answers?slow=yes")
    refute late.visible?("article.finished"), "it was too late"
    late.page.execute(KEEP_STREAMED)
    texts = [ada, late].map do |page|
      page.until("it does not come to an end") { page.visible?("article.finished") }
      page.text(".text")
    end
    assert_equal texts.first, texts.last
    [ada, late].each do |page|
      streamed = page.js("window.streamed").strip
      assert texts.first.start_with?(streamed) && streamed.size > texts.first.size / 2, "#{streamed.inspect} was streamed of #{texts.first.inspect}"
    end
  end

  test "what happens while a browser is cut off is there when it is back, and nothing twice" do
    ada = open_page(one, "/conversations/1", who: "Ada")
    @line = BreakableLine.new(server.port)
    bob = open_page(other, "/conversations/1", who: "Bob")
    mark(bob)
    @line.break
    bob.until("it did not notice") { states(bob) == ["reconnecting"] }
    texts = Array.new(3) { |number| "while you were away #{number}" }
    texts.each do |text|
      send_message(ada, text)
      await_message(ada, text)
    end
    refute_includes messages(bob), texts.first
    @line.mend
    texts.each { |text| await_message(bob, text) }
    assert_equal texts, messages(bob) & texts
    assert_equal [1, 1, 1], texts.map { |text| messages(bob).count(text) }
    assert marked?(bob)
  end

  test "who signs out in one tab receives nothing more in another, and an old session opens nothing" do
    ada = open_page(one, "/conversations/1", who: "Ada")
    tab = open_tab(one, ada, "/conversations/1")
    bob = open_page(other, "/conversations/1", who: "Bob")
    send_message(bob, "for Ada too")
    await_message(tab, "for Ada too")
    cookie, name = session_cookie(ada), signed_name(ada)
    answer = ask_door([name], cookie)
    assert_equal [[name], {}], [answer["topics"].keys, answer["refused"]]
    path = "/.well-known/mercure?#{URI.encode_www_form(match: answer["topics"][name])}"
    headers = {"host" => "localhost", "authorization" => "Bearer #{answer["token"]}"}
    @stream = HttpClient.new(server.port).stream("GET", path, headers: headers)
    # A token says in whole seconds when it was made, and one of the very second of the revocation passes.
    sleep 1.1

    ada.click("#leave")
    # The hub has ended what nobody else could: a stream that asks the application nothing. Its token is worth nothing any more.
    assert_empty @stream.rest
    assert_equal 401, HttpClient.new(server.port).request("GET", path, headers: headers).status
    ada.until("still there") { !ada.visible?("#leave") && live?(ada) }
    tab.until("it still follows: #{states(tab)}") { states(tab) == ["refused"] }
    send_message(bob, "not for Ada")
    await_message(bob, "not for Ada")
    refute_includes messages(tab), "not for Ada"
    # The cookie from before, the name with no cookie, and a name that nobody has signed.
    assert_equal [{name => "forbidden"}, nil], ask_door([name], cookie).values_at("refused", "token")
    assert_equal({name => "forbidden"}, ask_door([name], nil)["refused"])
    assert_equal({"conversations" => "invalid"}, ask_door(["conversations"], cookie)["refused"])
  end

  test "a page whose name has expired is made anew when it is seen, and has what was said meanwhile" do
    ada, bob = open_page(one, "/conversations/1?name_seconds=2", who: "Ada"), open_page(other, "/conversations/1", who: "Bob")
    mark(ada)
    name = signed_name(ada)
    ada.until("it is good for ever") { ask_door([name], session_cookie(ada))["refused"] == {name => "expired"} }
    # A tab that follows something else asks for both.
    open_tab(one, ada, "/conversations/2")
    ada.until("it still follows: #{states(ada)}") { states(ada) == ["refused"] }
    send_message(bob, "to nobody")
    await_message(bob, "to nobody")
    refute_includes messages(ada), "to nobody"
    ada.page.command("Page.bringToFront")
    await_message(ada, "to nobody")
    await_live(ada)
    refute_equal name, signed_name(ada)
    send_message(bob, "to Ada again")
    await_message(ada, "to Ada again")
    assert_equal [1, 1, true], [*["to nobody", "to Ada again"].map { |text| messages(ada).count(text) }, marked?(ada)]
  end

  test "what is somebody's own is nobody else's, whoever shows the signed name" do
    ada, eve = open_page(one, "/exports", who: "Ada"), open_page(other, "/exports", who: "Eve")
    name = signed_name(ada)
    assert_equal({name => "forbidden"}, ask_door([name], session_cookie(eve))["refused"])
    # The hub gives what is private to nobody who has no token.
    assert_equal 401, HttpClient.new(server.port).request("GET", "/.well-known/mercure?match_urlpattern=/turbo/streams/:name", headers: {"host" => "localhost"}).status
  end

  test "after a restart pages come back by themselves, and show what is there" do
    ada, bob = open_page(one, "/conversations/1", who: "Ada"), open_page(other, "/conversations/1", who: "Bob")
    server.stop
    [ada, bob].each { |page| page.until("it did not notice") { states(page) == ["reconnecting"] } }
    self.class.folder.run("bin/rails", "runner", %(Message.suppressing_turbo_broadcasts { Message.create!(conversation_id: 1, user_id: 1, body: "in the night") }))
    server.start
    # The history was in memory: the hub says that something may be missing, and the page is read once more.
    [ada, bob].each { |page| await_message(page, "in the night") }
    [ada, bob].each { |page| await_live(page) }
    send_message(ada, "good morning")
    [ada, bob].each { |page| await_message(page, "good morning") }
  end

  private

  def server = self.class.server

  def url = "http://localhost:#{@line ? @line.port : server.port}"

  def signed_name(page) = page.js("document.querySelector('hikyaku-stream-source').getAttribute('signed-stream-name')")

  def session_cookie(page)
    page.page.cookies.all.values.map { |cookie| "#{cookie.name}=#{cookie.value}" }.join("; ")
  end

  def ask_door(names, cookie)
    headers = {"host" => "localhost:#{server.port}", "content-type" => "application/json", "cookie" => cookie}.compact
    answer = HttpClient.new(server.port).request("POST", "/hikyaku/streams", headers: headers, body: JSON.generate(names: names))
    assert_equal 200, answer.status, answer.body
    JSON.parse(answer.body)
  end
end
