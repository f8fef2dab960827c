# frozen_string_literal: true

require "test_helper"
require "support/browser"
require "support/client_process"
require "support/free_port"
require "support/http_client"
require "tmpdir"

# Who is on a page, as browsers see it: with tabs, reloads, late comers, and a hub that dies.
class PresenceSystemTest < Minitest::Test
  APPLICATION = File.expand_path("../support/presence_application.rb", __dir__)
  LIB = File.expand_path("../../lib", __dir__)
  GRACE = 2
  # Long enough for a browser to come back to a hub that died, however busy the machine is.
  GRACE_AFTER_DEATH = 20

  def setup
    skip_unless_available("chromium")
    @folder = Dir.mktmpdir("hikyaku-presence")
    File.write(File.join(@folder, "config.ru"), "require #{APPLICATION.inspect}\nrun Rails.application\nRails.application.load_server\n")
    @port = FreePort.pick
    @processes = []
    @browser = TestBrowser.new
  end

  def teardown
    @browser&.quit
    @processes&.each(&:close)
    FileUtils.rm_rf(@folder) if @folder
  end

  test "users see each other come and go; several tabs of one are one, and who comes late sees all" do
    start
    ada = visit("ada")
    await_here(ada, "ADA")
    bob = visit("bob")
    [ada, bob].each { |page| await_here(page, "ADA BOB") }
    tab = @browser.tab_beside(bob)
    tab.visit(url)
    await_here(tab, "ADA BOB")
    cyd = visit("cyd")
    [ada, bob, tab, cyd].each { |page| await_here(page, "ADA BOB CYD") }
    assert_match(/\AADA BOB( CYD)?\z/, cyd.text("#rendered"))
    assert_equal ["+ -", "+BOB -", "+CYD -"], news(ada)
    assert_equal ["+ -", "+CYD -"], news(tab)
    assert_equal "3", ada.js("document.querySelector('#presence').getAttribute('count')")

    bob.close
    cyd.close
    await_here(ada, "ADA BOB")
    await_here(tab, "ADA BOB")
    tab.close
    await_here(ada, "ADA")
    assert_equal ["+ -CYD", "+ -BOB"], news(ada).last(2)
  end

  test "a page that is loaded anew shows the others nothing" do
    start
    ada, bob = visit("ada"), visit("bob")
    [ada, bob].each { |page| await_here(page, "ADA BOB") }
    seen = news(ada)
    3.times do
      bob.visit(url)
      await_here(bob, "ADA BOB")
    end
    cyd = visit("cyd")
    await_here(ada, "ADA BOB CYD")
    cyd.close
    await_here(ada, "ADA BOB")
    assert_equal ["+CYD -", "+ -CYD"], news(ada) - seen
  end

  test "after a hub that died and came back everybody who is there is there, and who has gone meanwhile is gone" do
    start(grace: GRACE_AFTER_DEATH)
    ada, bob, cyd = visit("ada"), visit("bob"), visit("cyd")
    [ada, bob, cyd].each { |page| await_here(page, "ADA BOB CYD") }
    @processes.last.signal("KILL")
    @processes.pop.status
    cyd.close
    assert_equal "ADA BOB CYD", ada.text("#here")
    start(grace: GRACE_AFTER_DEATH)
    [ada, bob].each { |page| await_here(page, "ADA BOB") }
    assert_equal ["+ -CYD"], news(ada).last(1)
    refute_includes news(ada).join, "-BOB"
  end

  private

  def url(user = nil) = "http://127.0.0.1:#{@port}/rooms/1#{"?user=#{user}" if user}"

  # @return [TestBrowser::Page] of somebody who has nothing in common with the others
  def visit(user) = @browser.page.tap { |page| page.visit(url(user)) }

  # Longer than a page's own patience: after a hub that was away, others have a while to come back.
  def await_here(page, names)
    deadline = HttpClient.now + 120
    until page.text("#here") == names
      flunk "#{names} should be here, and #{news(page)} was told; #{page.complaints}" if HttpClient.now > deadline
      sleep 0.05
    end
  end

  def news(page) = page.js("window.news")

  # @param grace [Numeric] seconds that a page waits before it believes that a user has left
  def start(grace: GRACE)
    env = {"HUB_URL" => "http://127.0.0.1:#{@port}/.well-known/mercure", "GRACE" => grace.to_s, "RAILS_ENV" => "development", "RUBYLIB" => [LIB, ENV["RUBYLIB"]].compact.join(":")}
    @processes << ClientProcess.new("puma", "--environment", "development", "--threads", "5", "--bind", "tcp://127.0.0.1:#{@port}", env: env, chdir: @folder)
    deadline = HttpClient.now + 60
    until up?
      flunk "the application did not start: #{@processes.last.output} #{@processes.last.errors[0, 2000]}" if HttpClient.now > deadline
      sleep 0.1
    end
  end

  def up?
    HttpClient.new(@port).request("GET", "/up", headers: {"host" => "127.0.0.1"}).status == 200
  rescue SystemCallError, HttpClient::TooLate, EOFError
    false
  end
end
