# frozen_string_literal: true

require "test_helper"
require "nokogiri"
require "support/live_application"
require "support/snippets"

# What docs/guides/javascript.md and docs/guides/presence.md say to write into an application works there, in browsers.
class JavascriptGuideTest < Minitest::Test
  include LiveApplication

  SNIPPETS = Snippets.of("docs/guides/javascript.md").freeze
  JAVASCRIPT = Snippets.files("docs/guides/javascript.md").freeze
  PRESENCE = Snippets.files("docs/guides/presence.md").freeze
  CONTROLLER = "app/controllers/application_controller.rb"
  CLIENT = "app/javascript/application.js"
  ROOM = "app/views/rooms/show.html.erb"
  # One file with the client and what uses it, as a bundler makes it.
  BUNDLE = [File.read(File.join(RailsServer::ROOT, "app/assets/javascripts/hikyaku.js")), <<~JS].join("\n").freeze
    Hikyaku.subscribe("/.well-known/mercure", {match: ["/books/1"], onmessage: () => {}})
    window.Hikyaku = Hikyaku
  JS
  # What the guides leave to the application.
  AROUND = {
    CONTROLLER => "#{File.read("#{EXAMPLE}/#{CONTROLLER}")}\n#{PRESENCE[CONTROLLER]}",
    CLIENT => "#{File.read("#{EXAMPLE}/#{CLIENT}")}\n#{PRESENCE[CLIENT]}",
    ROOM => "#{PRESENCE[ROOM]}\n#{JAVASCRIPT[ROOM]}\n<%= turbo_stream_from @room %>\n",
    "app/controllers/rooms_controller.rb" => "class RoomsController < ApplicationController\n  def show = @room = Conversation.find(params[:id])\nend\n",
    "app/controllers/bundles_controller.rb" => "class BundlesController < ApplicationController\n  layout false\n  def show = nil\nend\n",
    "app/controllers/books_controller.rb" => <<~RUBY,
      class BooksController < ApplicationController
        def show = nil

        def create
          Hikyaku.publish("/books/1", "a book", private: true)
          Hikyaku.publish("/books/2", "another book", private: true)
          Hikyaku.publish("/authors/7", "an author", private: true)
          head :no_content
        end
      end
    RUBY
    "config/routes.rb" => File.read("#{EXAMPLE}/config/routes.rb").sub("  hikyaku\n", <<~RUBY),
      hikyaku
      resources :rooms, only: :show
      resource :books, only: %i[show create]
      resource :token, :bundle, only: :show
    RUBY
    "public/bundle.js" => BUNDLE
  }.freeze

  class << self
    # Of all tests: they look at pages of their own.
    def server
      @server ||= begin
        folder = LiveApplication.folder({**JAVASCRIPT, **PRESENCE, **AROUND})
        LiveApplication.start(folder).tap { |server| Minitest.after_run { server.stop.then { folder.remove } } }
      end
    end
  end

  def setup
    super
    assert_equal [4, 4, 6], [JAVASCRIPT, PRESENCE, SNIPPETS].map(&:size)
    @server = self.class.server
  end

  test "the element of turbo_stream_from is the one that is shown" do
    shown = Nokogiri::HTML5.fragment(SNIPPETS.map(&:code).grep(/\A<hikyaku-stream-source/).first).children.first
    page = open_page(one, "/rooms/1", who: "Ada")
    attributes = page.js("document.querySelector('hikyaku-stream-source').getAttributeNames()") - %w[state]
    assert_equal shown.keys.sort, attributes.sort
    assert_equal shown["src"], page.js("document.querySelector('hikyaku-stream-source').getAttribute('src')")
  end

  test "a stream of the application is read in JavaScript until it is closed" do
    page = open_page(one, "/rooms/1", who: "Ada")
    writer = open_page(other, "/conversations/1", who: "Bob")
    page.until("it is not connected") { %w[connected caught-up].include?(page.text("#line-state")) }
    send_message(writer, "for all lines")
    page.until("it did not come: #{page.texts("#lines li")}") { page.texts("#lines li").any? { |line| line.include?("for all lines") } }
    page.click("#enough")
    send_message(writer, "after the end")
    await_message(writer, "after the end")
    refute_includes page.text("#lines"), "after the end"
  end

  test "topics of the hub are read with a token of the application" do
    page = one.page.tap { |each| @pages << each }
    sign_in(page, "Ada")
    page.visit("#{url}/books")
    page.until("it did not subscribe") { page.js("performance.getEntriesByType('resource').some(({name}) => name.endsWith('/token'))") }
    # What is sent before the subscription begins is not for it.
    page.until("nothing came: #{page.complaints}") do
      page.js_async("fetch('/books', {method: 'POST', headers: {'X-CSRF-Token': document.querySelector('meta[name=csrf-token]').content}}).then(({status}) => status)")
      page.texts("#news li").size >= 2
    end
    assert_equal ["a book", "an author"], page.texts("#news li").uniq.sort
  end

  test "in a bundle the shared worker is started from the file that the page names" do
    page = one.page.tap { |each| @pages << each }
    sign_in(page, "Ada")
    page.visit("#{url}/bundle")
    page.until("no worker: #{page.complaints}") { page.js("window.Hikyaku?.sharing") == "worker" }
    page.until("no worker of the file's: #{workers}") { workers.any? { |address| address.match?(%r{/assets/hikyaku-\h+\.js\z}) } }
    assert_empty workers.grep(/bundle/)
    # As it was advised once: a pipeline with digests serves no such file.
    assert_equal "404", @server.get("/assets/hikyaku.js", "host" => "localhost").code
  end

  test "pages say who is here, and so does the server" do
    ada = open_page(one, "/rooms/1", who: "Ada")
    ada.until("nobody is here") { ada.text("#people") == "Ada" }
    bob = open_page(other, "/rooms/1", who: "Bob")
    [ada, bob].each { |page| page.until("not both are here: #{page.text("#people")}") { page.text("#people").split(", ").sort == %w[Ada Bob] } }
    assert_includes bob.js_async("fetch('/rooms/1').then((answer) => answer.text())")[/id="people">([^<]*)/, 1], "Ada"
  end

  private

  def url = "http://localhost:#{@server.port}"

  def workers = one.targets.filter_map { |target| target["url"] if target["type"] == "shared_worker" }
end
