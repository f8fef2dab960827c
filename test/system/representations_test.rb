# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/rack/explorer"
require "json"
require "msgpack"
require "puma"
require "puma/server"
require "support/availability"
require "support/browser"

# The page that shows both representations of a response, in a real browser.
class RepresentationsTest < Minitest::Test
  include Availability

  ITEMS = [{"title" => "<img src=x onerror=alert(1)>", "numbers" => (1..100).to_a}].freeze

  def setup
    skip_unless_available("chromium")
    explorer = Hikyaku::Codec::Rack::Explorer.new(method(:items), environment: "test")
    @puma = Puma::Server.new(explorer, nil, min_threads: 1, max_threads: 2, log_writer: Puma::LogWriter.null)
    @puma.add_tcp_listener("127.0.0.1", 0)
    @puma.run
    @browser = TestBrowser.new
  end

  def teardown
    @browser&.quit
    @puma&.stop(true)
  end

  def items(env)
    return [404, {}, []] unless env["PATH_INFO"] == "/items"
    packed = env["HTTP_ACCEPT"] == "application/vnd.msgpack"
    [200, {"content-type" => packed ? "application/vnd.msgpack" : "application/json"}, [packed ? MessagePack.pack(ITEMS) : JSON.generate(ITEMS)]]
  end

  test "one asks for a path, and sees both, styled, with nothing of them run" do
    page = @browser.page
    page.visit("http://127.0.0.1:#{@puma.connected_ports.first}/hikyaku/representations")
    page.fill("input", "/items?page=2")
    page.click("button")
    page.until { page.texts("section h2") == %w[JSON MessagePack] }
    assert_equal "/items?page=2", page.js("document.querySelector('input').value")
    page.texts("pre").each { |text| assert_includes text, "\"title\": \"#{ITEMS.first["title"]}\"" }
    assert_equal 2, page.js("document.querySelectorAll('pre').length")
    assert_equal [0, "grid"], page.js("[document.images.length, getComputedStyle(document.querySelector('.both')).display]")
    assert_match(/\A\d+ \(\d+ %\)\z/, page.texts("td.number").last)
    assert_empty page.complaints
    assert_equal ["127.0.0.1:#{@puma.connected_ports.first}"], page.hosts
  end
end
