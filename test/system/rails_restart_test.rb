# frozen_string_literal: true

require "test_helper"
require "support/live_application"

# An application with the initializer that the generator writes is stopped and started again while pages are open.
class RailsRestartTest < Minitest::Test
  include LiveApplication

  TEMPLATE = File.read(File.join(RailsServer::ROOT, "lib/generators/hikyaku/install/templates/hikyaku.rb.tt"))
  INITIALIZER = "#{TEMPLATE.sub("# config.hikyaku.turbo = true", "config.hikyaku.turbo = true")}\nHikyaku::Turbo.authorize { |stream_name, _request| may_follow?(stream_name) }\n".freeze

  def setup
    super
    @folder = LiveApplication.folder({"config/initializers/hikyaku.rb" => INITIALIZER})
    @server = LiveApplication.start(@folder)
  end

  def teardown
    super
    @server&.stop
    @folder&.remove
  end

  test "pages go on where they are, and keep what has been typed" do
    ada = open_page(one, "/conversations/1", who: "Ada")
    ada.js("window.log = [], ['gap', 'refresh-waits'].forEach((name) => document.addEventListener(`hikyaku:${name}`, () => log.push(name))), addEventListener('turbo:visit', () => log.push('visit')), 0")
    bob = open_page(other, "/conversations/1", who: "Bob")
    send_message(bob, "before")
    await_message(ada, "before")
    ada.fill("#new_message [type=text]", "half a mess")
    @server.stop
    ada.until("it does not notice") { states(ada).include?("reconnecting") }
    @server.start
    [ada, bob].each { |page| await_live(page) }
    send_message(bob, "after")
    await_message(ada, "after")
    assert_equal [[], "half a mess", 1], [ada.js("log"), ada.js("document.querySelector('#new_message [type=text]').value"), messages(ada).count("after")]
    assert_path_exists File.join(@folder.path, "tmp/hikyaku_storage/hub")
  end

  private

  def url = "http://localhost:#{@server.port}"
end
