# frozen_string_literal: true

require_relative "availability"
require_relative "browser"
require_relative "rails_server"

# For tests that look at examples/rails_live in two browsers at once.
module LiveApplication
  EXAMPLE = File.join(RailsServer::ROOT, "examples/rails_live")
  PROBE = "/session/new"

  # Two browsers, not two tabs of one: with nothing in common. One pair for all tests of the process.
  def self.browsers
    @browsers ||= Array.new(2) { TestBrowser.new }.each { |browser| Minitest.after_run { browser.quit } }
  end

  # @param files [Hash{String => String}] files to add or to replace
  # @return [RailsServer::Folder] with a database
  def self.folder(files = {})
    folder = RailsServer::Folder.new(files, example: EXAMPLE)
    output, status = folder.run("bin/rails", "db:prepare")
    raise "no database: #{output}" unless status.success?
    folder
  end

  # @param folder [RailsServer::Folder]
  # @return [RailsServer]
  def self.start(folder, **env) = RailsServer.new(folder, probe: PROBE, **env)

  def setup
    skip_unless_available("chromium")
    @pages = []
  end

  def teardown = @pages&.each(&:close)

  private

  # @return [TestBrowser]
  def one = LiveApplication.browsers.first

  # @return [TestBrowser]
  def other = LiveApplication.browsers.last

  # @param browser [TestBrowser]
  # @param who [String, nil] who signs in
  # @return [TestBrowser::Page] that shows a page of the application, and follows its streams
  def open_page(browser, path, who: nil)
    page = browser.page.tap { |each| @pages << each }
    sign_in(page, who) if who
    go(page, path)
  end

  # @return [TestBrowser::Page] another tab of the same browser
  def open_tab(browser, page, path)
    go(browser.tab_beside(page).tap { |each| @pages << each }, path)
  end

  def go(page, path)
    page.visit("#{url}#{path}")
    await_live(page)
  end

  def await_live(page)
    page.until("it is not live: #{states(page)}") { live?(page) }
    page
  end

  def sign_in(page, who)
    page.visit("#{url}/session/new")
    page.fill("#sign-in [type=text]", who)
    page.click("#sign-in [type=submit]")
    page.until("nobody is signed in") { page.visible?("#leave") }
  end

  # @return [Array<String, nil>] what the elements of turbo_stream_from say of themselves
  def states(page) = page.js("Array.from(document.querySelectorAll('hikyaku-stream-source'), (each) => each.getAttribute('state'))")

  def live?(page) = states(page).then { |states| states.any? && states.all? { |state| %w[connected caught-up].include?(state) } }

  def send_message(page, text)
    page.fill("#new_message [type=text]", text)
    page.click("#new_message [type=submit]")
  end

  def messages(page) = page.texts(".message span")

  def await_message(page, text) = page.until("#{text} did not come") { messages(page).include?(text) }

  # Whatever changes from now on, the page must not be loaded again.
  def mark(page) = page.js("window.marked = true")

  def marked?(page) = page.js("window.marked === true")
end
