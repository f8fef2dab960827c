# frozen_string_literal: true

require "test_helper"
require "support/availability"
require "support/client_site"
require "support/firefox"

# hikyaku.js in Firefox, as far as browsers may differ: workers, locks, tabs, the back/forward cache. All else is in ClientTest.
class ClientFirefoxTest < Minitest::Test
  include Availability

  class << self
    def site = @site ||= ClientSite.new.tap { |site| Minitest.after_run { site.stop } }
    def firefox = @firefox ||= Firefox.new.tap { |firefox| Minitest.after_run { firefox.quit } }
  end

  def setup
    skip_unless_available("firefox-esr")
    @stream = "/room/#{rand(1_000_000_000)}"
  end

  def site = self.class.site

  def firefox = self.class.firefox

  def open_tab(**more)
    firefox.open_tab.tap do
      firefox.visit(site.page(@stream, **more))
      firefox.until("it did not catch up: #{firefox.js("return window.states")}") { firefox.js("return document.querySelector('[state]')?.state") == "caught-up" }
    end
  end

  def publish(data) = site.publish(@stream, data)

  def assert_seen(expected, tab)
    firefox.show(tab)
    firefox.until("#{expected} did not come: #{firefox.js("return window.seen")}") { firefox.js("return window.seen") == expected }
  end

  # The last tab cannot be closed: there is one that nothing is done with.
  def close(tab)
    firefox.show(tab)
    firefox.close_tab
    firefox.show(@idle)
  end

  def with_tabs
    @idle = firefox.tab
    yield(tabs = [])
  ensure
    tabs&.each { |tab| close(tab) }
  end

  {"worker" => [], "tabs" => ["SharedWorker"]}.each do |kind, without|
    test "seven tabs and one more get what is published, over one connection, also when the first is closed (#{kind})" do
      with_tabs do |tabs|
        8.times { tabs << open_tab(without: without) }
        assert_equal kind, firefox.js("return Hikyaku.sharing")
        publish("1")
        tabs.each { |tab| assert_seen(["1"], tab) }
        firefox.until("more than one connection") { site.hub.subscriptions(type: "exact", pattern: site.topic(@stream)).last.one? }
        close(tabs.shift)
        publish("2")
        tabs.each { |tab| assert_seen(%w[1 2], tab) }
      end
    end

    test "a page gets what it missed between its rendering and its connection, and in the back/forward cache (#{kind})" do
      with_tabs do |tabs|
        cursor = site.newest
        publish("1")
        tabs << open_tab(without: without, cursor: cursor)
        assert_seen(["1"], tabs.first)
        firefox.js("window.kept = true")
        firefox.visit("#{site.origin}/other")
        publish("2")
        firefox.back
        firefox.until("it is not back") { firefox.js("return document.readyState") == "complete" }
        # A page that was not kept has it from its own address, which says where it was rendered.
        assert_seen(%w[1 2], tabs.first)
      end
    end
  end
end
