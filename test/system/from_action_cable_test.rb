# frozen_string_literal: true

require "test_helper"
require "support/live_application"
require "support/snippets"

# What docs/guides/from-action-cable.md says: an application on Action Cable is on Hikyaku with two lines, and back again with one.
class FromActionCableTest < Minitest::Test
  include LiveApplication

  GUIDE = Snippets.files("docs/guides/from-action-cable.md").freeze
  SWITCH = "config/initializers/hikyaku.rb"
  CLIENT = "app/javascript/application.js"
  # The example as it would be with Action Cable, and with the page of the guide.
  BEFORE = {
    "config/application.rb" => File.read("#{EXAMPLE}/config/application.rb").sub(%(require "action_view/railtie"), %(\\0\nrequire "action_cable/engine")),
    "config/cable.yml" => "development:\n  adapter: async\n",
    "config/routes.rb" => File.read("#{EXAMPLE}/config/routes.rb").sub("  hikyaku\n", "\\0  resource :temperature, only: %i[show create]\n"),
    SWITCH => "",
    CLIENT => GUIDE[CLIENT].lines.grep_v(/"hikyaku"/).join,
    "config/initializers/anonymous.rb" => "Rails.application.config.hikyaku.anonymous = true\n",
    **GUIDE.slice("app/controllers/temperatures_controller.rb", "app/views/temperatures/show.html.erb")
  }.freeze

  def setup
    super
    assert_equal 4, GUIDE.size
    @folder = LiveApplication.folder(BEFORE)
  end

  def teardown
    super
    @server&.stop
    @folder&.remove
  end

  test "the two lines of the guide take Turbo Streams from Action Cable to the hub, and one takes them back" do
    serve { assert_live "turbo-cable-stream-source[connected]" }
    write SWITCH => GUIDE[SWITCH], CLIENT => GUIDE[CLIENT]
    serve do
      assert_live "hikyaku-stream-source[state]"
      assert_temperature
    end
    write SWITCH => GUIDE[SWITCH].sub("turbo = true", "turbo = false")
    serve { assert_live "turbo-cable-stream-source[connected]" }
  end

  private

  def url = "http://localhost:#{@server.port}"

  def write(files) = files.each { |path, text| File.write(File.join(@folder.path, path), text) }

  def serve
    @server = LiveApplication.start(@folder)
    yield
    @pages.each(&:close).clear
    @server.stop
  end

  def assert_live(element)
    pages = [one, other].zip(%w[Ada Bob]).map do |browser, who|
      browser.page.tap { |page| @pages << page }.tap { |page| sign_in(page, who) }
    end
    pages.each do |page|
      page.visit("#{url}/conversations/1")
      page.until("no #{element}") { page.js("!!document.querySelector('#{element}')") }
      mark(page)
    end
    text = "by #{element} #{pages.first.texts(".message").size}"
    send_message(pages.first, text)
    pages.each { |page| await_message(page, text) }
    assert_equal [true, true], pages.map { |page| marked?(page) }
  end

  def assert_temperature
    page, = @pages
    page.visit("#{url}/temperature")
    measured = page.js_async("fetch('/temperature', {method: 'POST', body: new URLSearchParams({degrees: 21}), " \
      "headers: {'X-CSRF-Token': document.querySelector('meta[name=csrf-token]').content}}).then((answer) => answer.status)")
    assert_equal 204, measured
    page.until("it does not get warmer") { page.text("#degrees") == "21" }
  end
end
