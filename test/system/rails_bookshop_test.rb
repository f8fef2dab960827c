# frozen_string_literal: true

require "test_helper"
require "support/availability"
require "support/browser"
require "support/rails_server"

# The example without Turbo in a real browser.
class RailsBookshopTest < Minitest::Test
  class << self
    def browser = @browser ||= TestBrowser.new
    def folder = @folder ||= RailsServer::Folder.new
    def shop = @shop ||= RailsServer.new(folder)

    def finish
      @browser&.quit
      @shop&.stop
      @folder&.remove
    end
  end
  Minitest.after_run { finish }

  def setup
    skip_unless_available("chromium")
    @pages = []
  end

  def teardown = @pages&.each(&:close)

  test "what is sold on one screen is gone on the other" do
    one, other = open_page, open_page
    left = one.text("#book-1 .stock").to_i
    one.click("#book-1 button.sell")
    [one, other].each { |page| page.until("the stock stayed") { page.text("#book-1 .stock") == (left - 1).to_s } }
    other.click("#book-1 button.take-back")
    [one, other].each { |page| page.until("the stock stayed") { page.text("#book-1 .stock") == left.to_s } }
    assert_equal [[], []], [one.complaints, other.complaints]
  end

  test "what a thread of the server publishes arrives" do
    page = open_page
    page.js("(() => { window.seen = 0; new EventSource('/.well-known/mercure?match=/visitors').addEventListener('visitors', () => window.seen++) })()")
    page.until("nobody came") { page.js("window.seen") > 0 }
  end

  test "bin/rails hikyaku:doctor looks at the hub where browsers find it, and says whether the application's keys are good there" do
    shop = self.class.shop
    output, status = self.class.folder.run("bin/rails", "hikyaku:doctor", PORT: shop.port.to_s,
      HIKYAKU_DOCTOR: "--idle 0 --patience 10 --only reach --only publisher --only subscriber")
    assert status.success?, output
    assert_match(%r{^ok    reach +http://localhost:#{shop.port}/\.well-known/mercure .*\nok    publisher +accepted.*\nok    subscriber +with a token.*\n\n3 well$}, output)
  end

  test "the till is only seen with the cookie, until that is given back" do
    staff, guest = open_page, open_page
    staff.click("#enter")
    staff.until("no till") { live?(staff) && staff.text("#takings").match?(/\A-?\d+\z/) }
    before = staff.text("#takings").to_i
    left = guest.text("#book-2 .stock").to_i
    guest.click("#book-2 button.sell")
    staff.until("the till stayed") { staff.text("#takings").to_i == before + 12 }
    guest.until("the stock stayed") { guest.text("#book-2 .stock") == (left - 1).to_s }
    assert_equal "for staff only", guest.text("#takings")

    staff.click("#leave")
    staff.until("still there") { live?(staff) && staff.text("#takings") == "for staff only" }
    guest.click("#book-2 button.take-back")
    staff.until("the stock stayed") { staff.text("#book-2 .stock") == left.to_s }
    assert_equal "for staff only", staff.text("#takings")
  end

  test "after a restart the page comes back by itself, asks for what it missed, and catches up" do
    page = open_page
    left = page.text("#book-3 .stock").to_i
    page.click("#book-3 button.sell")
    page.until("the stock stayed") { page.text("#book-3 .stock") == (left - 1).to_s }
    shop.stop
    page.until("it did not notice") { page.text("#connection") == "reconnecting" }
    shop.start
    # The gap is only told to who names an event: the browser has sent Last-Event-ID.
    page.until("it did not come back") { page.text("#connection") == "caught up" }
    # The stock was in memory.
    page.until("it did not catch up") { page.text("#book-3 .stock") == "8" }
    page.click("#book-3 button.sell")
    page.until("it is not live again") { page.text("#book-3 .stock") == "7" }
  end

  private

  def shop = self.class.shop

  def live?(page) = page.text("#connection") == "live"

  def open_page
    page = self.class.browser.page
    @pages << page
    page.visit(shop.url)
    page.until("it is not live") { live?(page) }
    page
  end
end
