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
    "config/routes.rb" => File.read("#{EXAMPLE}/config/routes.rb").sub("  hikyaku\n", "\\0  resource :temperature, only: %i[show create]\n  resource :whispers, only: %i[show create]\n"),
    SWITCH => "",
    CLIENT => GUIDE[CLIENT].lines.grep_v(/"hikyaku"/).join,
    "config/initializers/anonymous.rb" => "Rails.application.config.hikyaku.anonymous = true\n",
    "app/channels/application_cable/connection.rb" => <<~RUBY,
      class ApplicationCable::Connection < ActionCable::Connection::Base
        identified_by :current_user

        def connect
          self.current_user = SignIn.find_by(id: request.session[:sign_in_id])&.user || reject_unauthorized_connection
        end
      end
    RUBY
    "app/controllers/whispers_controller.rb" => <<~RUBY,
      class WhispersController < ApplicationController
        def create
          Turbo::StreamsChannel.broadcast_append_to("whispers to \#{params[:to]} in 1", target: "whispers", html: "<li id=\#{params[:text]}>\#{params[:text]}</li>")
          head :no_content
        end
      end
    RUBY
    **GUIDE.except(SWITCH, CLIENT)
  }.freeze

  def setup
    super
    assert_equal 6, GUIDE.size
    @folder = LiveApplication.folder(BEFORE)
  end

  def teardown
    super
    @server&.stop
    @folder&.remove
  end

  test "the two lines of the guide take Turbo Streams from Action Cable to the hub, and one takes them back" do
    serve do
      assert_live "turbo-cable-stream-source[connected]"
      assert_whispers "turbo-cable-stream-source[connected]", "turbo-cable-stream-source:not([connected])"
    end
    write SWITCH => GUIDE[SWITCH], CLIENT => GUIDE[CLIENT]
    serve do
      assert_live "hikyaku-stream-source[state]"
      assert_temperature
      assert_whispers "hikyaku-stream-source[state=caught-up]", "hikyaku-stream-source[state=refused]"
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
    assert_equal 204, post(page, "/temperature", degrees: 21)
    page.until("it does not get warmer") { page.text("#degrees") == "21" }
  end

  # A class chooses the stream, and refuses.
  def assert_whispers(connected, refused)
    @pages.each do |page|
      page.visit("#{url}/whispers?conversation=1")
      page.until("no #{connected}") { page.js("!!document.querySelector('#{connected}')") }
    end
    %w[Bob Ada].each { |name| assert_equal 204, post(@pages.first, "/whispers", to: name, text: "for-#{name}") }
    @pages.zip(%w[Ada Bob]).each do |page, name|
      page.until("nobody whispers to #{name}") { page.texts("#whispers li") == ["for-#{name}"] }
    end
    @pages.first.visit("#{url}/whispers?conversation=0")
    @pages.first.until("no #{refused}") { @pages.first.js("!!document.querySelector('#{refused}')") }
    assert_nil @pages.first.js("document.querySelector('#{connected}')")
  end

  # @return [Integer] the status
  def post(page, path, **values)
    page.js_async("fetch('#{path}', {method: 'POST', body: new URLSearchParams(#{values.to_json}), " \
      "headers: {'X-CSRF-Token': document.querySelector('meta[name=csrf-token]').content}}).then((answer) => answer.status)")
  end
end
