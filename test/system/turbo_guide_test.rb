# frozen_string_literal: true

require "test_helper"
require "support/breakable_line"
require "support/live_application"
require "support/snippets"

# What docs/guides/turbo.md says to write into an application works there.
class TurboGuideTest < Minitest::Test
  include LiveApplication

  GUIDE = Snippets.files("docs/guides/turbo.md").freeze

  def setup
    super
    assert_equal 7, GUIDE.size
    @folder = LiveApplication.folder(GUIDE)
    @server = LiveApplication.start(@folder)
    @line = BreakableLine.new(@server.port)
  end

  def teardown
    super
    @line&.close
    @server&.stop
    @folder&.remove
  end

  test "messages arrive, states are seen, and whoever signs out is refused" do
    ada, bob = open_page(one, "/conversations/1", who: "Ada"), open_page(other, "/conversations/1", who: "Bob")
    tab = open_tab(one, ada, "/conversations/1")
    send_message(ada, "as the guide says")
    [ada, bob, tab].each { |page| await_message(page, "as the guide says") }

    @line.break
    bob.until("it says nothing") { shown(bob) == '"offline, trying again"' }
    @line.mend
    bob.until("it still says it") { live?(bob) && shown(bob) == "none" }
    await_live(tab)

    ada.click("#leave")
    tab.until("it says nothing") { shown(tab) == '"please sign in again"' }
    assert_equal "forbidden", tab.js("document.querySelector('hikyaku-stream-source').title")
  end

  # Its token may be of the second in which it is revoked: most of these rounds take less than one.
  test "whoever signs out as soon as the page is there is refused, and receives nothing more" do
    bob = open_page(other, "/conversations/1", who: "Bob")
    4.times do |round|
      ada = open_page(one, "/conversations/1", who: "Ada")
      assert_equal 200, ada.js_async(LEAVE)
      ada.until("it goes on") { shown(ada) == '"please sign in again"' }
      send_message(bob, "for members #{round}")
      await_message(bob, "for members #{round}")
      refute_includes ada.text("body"), "for members #{round}"
      ada.close
    end
  end

  # As the button does, but the page stays.
  LEAVE = "fetch(document.querySelector('#leave').form.action, {method: 'POST', body: new FormData(document.querySelector('#leave').form)}).then((answer) => answer.status)"
  private_constant :LEAVE

  private

  def url = "http://localhost:#{@line.port}"

  def shown(page) = page.js("getComputedStyle(document.querySelector('#state'), '::after').content")
end
