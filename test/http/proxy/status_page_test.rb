# frozen_string_literal: true

require "test_helper"
require "hikyaku/http"
require "hikyaku/http/proxy/status_page"
require "hikyaku/http/proxy/page_log"

# The proxy's own page.
class HTTPProxyStatusPageTest < Minitest::Test
  Proxy = Hikyaku::HTTP::Proxy
  HOSTILE = ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "</title></svg><b>", "&lt;b&gt;", "\xFF<i>"].freeze
  private_constant :Proxy, :HOSTILE

  test "nothing that servers, pages or URLs say is markup of it" do
    HOSTILE.each do |text|
      log = Proxy::PageLog.new
      [true, false].each do |prefetch|
        page = log.open("http://a/#{text}", prefetch: prefetch, now: 0.0)
        page.add("http://a/b/#{text}", :image, :prefetch, 0.1).finish(200, 3, 0.2)
      end
      html = Proxy::StatusPage.new(log, explanations: ["http://a #{text}"], prefetch: true, token: text).to_s
      lonely = Proxy::PageLog.new.tap { |one| one.open("http://a/#{text}", prefetch: true, now: 0.0) }
      refute_includes Proxy::StatusPage.new(lonely, explanations: [], prefetch: true, token: "x").to_s, text
      quiet = Proxy::StatusPage.new(plain, explanations: ["http://a x"], prefetch: true, token: "x").to_s
      assert_equal quiet.scan(/<\/?\w+/), html.scan(/<\/?\w+/), text
      assert_includes html, "&amp;lt;b" if text.start_with?("&")
    end
  end

  test "both loads of the newest page are compared, each resource with how it came" do
    html = Proxy::StatusPage.new(plain, explanations: [], prefetch: false, token: "t").to_s
    assert_includes html, "http://a/x: 0.20 s with, 0.20 s without, a ratio of 1.00."
    assert_equal 2, html.scan('<rect class="prefetch"').size
    assert_includes html, "No server was contacted yet."
  end

  test "where nothing was loaded it says what to do" do
    html = report(Proxy::PageLog.new)
    assert_match(/No page was loaded yet\. Open an http:/, html)
  end

  test "to compare it says what to press, or not to press" do
    log = Proxy::PageLog.new.tap { |one| one.open("http://a/x", prefetch: true, now: 0.0) }
    assert_includes report(log, prefetch: true), "press “Only pass through” above, load http://a/x once more"
    assert_includes report(log, prefetch: false), "To compare, load http://a/x once more"
    assert_includes report(log, prefetch: false), "<button>Pipeline and prefetch</button>"
  end

  test "a page takes until the browser has what it wanted: neither what it did not ask for counts, nor what was there before it asked" do
    log = Proxy::PageLog.new
    page = log.open("http://a/x", prefetch: true, now: 10.0)
    page.add("http://a/x", :document, :pipeline, 10.0).finish(200, 3, 10.1)
    page.add("http://a/a", :image, :prefetch, 10.1, requested: false).tap { |one| one.finish(200, 3, 10.2) }.requested(10.5)
    page.add("http://a/b", :image, :prefetch, 10.1, requested: false).finish(200, 3, 14.0)
    page.add("http://a/c", :image, :pipeline, 10.1)
    assert_in_delta 0.5, page.seconds
    html = report(log)
    assert_includes html, "with: 4 resources in 0.50 s"
    assert_includes html, ">a 200 3 B 0.20 s<"
    assert_includes html, ">c pending<"
    x, width = html.match(/class="prefetch" x="([\d.]+)" y="\d+" width="([\d.]+)"/).captures.map(&:to_f)
    asked = html[/<line x1="([\d.]+)" x2="[\d.]+" y1="#{2 * 14 + 1}"/, 1]
    assert_equal [16.0, 16.0, 80.0], [x, width, asked.to_f] # of 640, which are 4 s
    assert_equal ["0.0 s", "0.5 s", "1.0 s"], html.scan(/y="10">([\d.]+ s)</).flatten.first(3)
  end

  test "what came to nothing, or from the cache, is shown so, and long names are cut in the middle" do
    log = Proxy::PageLog.new
    page = log.open("http://a/x", prefetch: true, now: 0.0)
    page.add("http://a/lost", :image, :prefetch, 0.0).finish(nil, 0, 0.1)
    page.add("http://a/kept", :image, :pipeline, 0.0).tap(&:cached).finish(200, 1, 0.1)
    page.add("http://a/#{"b" * 100}\u202Ec.png?secret", :image, :pipeline, 0.0).finish(200, 1, 0.1)
    html = report(log)
    assert_includes html, ">lost failed 0.10 s<"
    assert_match(/<rect class="cache".*>kept 200 1 B/, html)
    assert_match(/>b{22}…b+\?c\.png\?… 200/, html)
    refute_match(/secret|\u202E/, html)
  end

  private

  def report(log, prefetch: true) = Proxy::StatusPage.new(log, explanations: [], prefetch: prefetch, token: "x").to_s

  def plain
    Proxy::PageLog.new.tap do |log|
      [true, false].each { |prefetch| log.open("http://a/x", prefetch: prefetch, now: 0.0).add("http://a/b/x", :image, :prefetch, 0.1).finish(200, 3, 0.2) }
    end
  end
end
