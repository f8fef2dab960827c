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

  private

  def url = "http://localhost:#{@line.port}"

  def shown(page) = page.js("getComputedStyle(document.querySelector('#state'), '::after').content")
end
