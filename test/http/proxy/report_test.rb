# frozen_string_literal: true

require "test_helper"
require "hikyaku/http"
require "hikyaku/http/proxy/report"
require "hikyaku/http/proxy/visits"

# The proxy's own page.
class HTTPProxyReportTest < Minitest::Test
  Proxy = Hikyaku::HTTP::Proxy
  HOSTILE = ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "</title></svg><b>", "&lt;b&gt;", "\xFF<i>"].freeze
  private_constant :Proxy, :HOSTILE

  test "nothing that servers, pages or URLs say is markup of it" do
    HOSTILE.each do |text|
      visits = Proxy::Visits.new
      [true, false].each do |ahead|
        page = visits.begin("http://a/#{text}", ahead: ahead, now: 0.0)
        page.add("http://a/b/#{text}", :image, :ahead, 0.1).finish(200, 3, 0.2)
      end
      html = Proxy::Report.new(visits, explanations: ["http://a #{text}"], ahead: true, token: text).to_s
      lonely = Proxy::Visits.new.tap { |one| one.begin("http://a/#{text}", ahead: true, now: 0.0) }
      refute_includes Proxy::Report.new(lonely, explanations: [], ahead: true, token: "x").to_s, text
      quiet = Proxy::Report.new(plain, explanations: ["http://a x"], ahead: true, token: "x").to_s
      assert_equal quiet.scan(/<\/?\w+/), html.scan(/<\/?\w+/), text
      assert_includes html, "&amp;lt;b" if text.start_with?("&")
    end
  end

  test "both loads of the newest page are compared, each resource with how it came" do
    html = Proxy::Report.new(plain, explanations: [], ahead: false, token: "t").to_s
    assert_includes html, "http://a/x: 0.20 s with, 0.20 s without, a ratio of 1.00."
    assert_equal 2, html.scan('<rect class="ahead"').size
    assert_includes html, "None was asked yet."
  end

  test "where nothing was loaded it says what to do" do
    html = report(Proxy::Visits.new)
    assert_match(/None was loaded yet\. Open one in this browser whose address begins with http:/, html)
  end

  test "to compare it says what to press, or not to press" do
    visits = Proxy::Visits.new.tap { |one| one.begin("http://a/x", ahead: true, now: 0.0) }
    assert_includes report(visits, ahead: true), "press “Pass on only” above, load http://a/x once more"
    assert_includes report(visits, ahead: false), "To compare, load http://a/x once more"
    assert_includes report(visits, ahead: false), "<button>Pipeline and fetch ahead</button>"
  end

  test "a page takes until the browser has what it wanted: neither what it did not ask for counts, nor what was there before it asked" do
    visits = Proxy::Visits.new
    page = visits.begin("http://a/x", ahead: true, now: 10.0)
    page.add("http://a/x", :document, :pipeline, 10.0).finish(200, 3, 10.1)
    page.add("http://a/a", :image, :ahead, 10.1, wanted: false).tap { |one| one.finish(200, 3, 10.2) }.wanted(10.5)
    page.add("http://a/b", :image, :ahead, 10.1, wanted: false).finish(200, 3, 14.0)
    page.add("http://a/c", :image, :pipeline, 10.1)
    assert_in_delta 0.5, page.seconds
    html = report(visits)
    assert_includes html, "with: 4 resources in 0.50 s"
    assert_includes html, ">a 200 3 B 0.20 s<"
    assert_includes html, ">c under way<"
    x, width = html.match(/class="ahead" x="([\d.]+)" y="\d+" width="([\d.]+)"/).captures.map(&:to_f)
    asked = html[/<line x1="([\d.]+)" x2="[\d.]+" y1="#{2 * 14 + 1}"/, 1]
    assert_equal [16.0, 16.0, 80.0], [x, width, asked.to_f] # of 640, which are 4 s
    assert_equal ["0.0 s", "0.5 s", "1.0 s"], html.scan(/y="10">([\d.]+ s)</).flatten.first(3)
  end

  test "what came to nothing, or from the cache, is shown so, and long names are cut in the middle" do
    visits = Proxy::Visits.new
    page = visits.begin("http://a/x", ahead: true, now: 0.0)
    page.add("http://a/lost", :image, :ahead, 0.0).finish(nil, 0, 0.1)
    page.add("http://a/kept", :image, :pipeline, 0.0).tap(&:cached).finish(200, 1, 0.1)
    page.add("http://a/#{"b" * 100}\u202Ec.png?secret", :image, :pipeline, 0.0).finish(200, 1, 0.1)
    html = report(visits)
    assert_includes html, ">lost came to nothing 0.10 s<"
    assert_match(/<rect class="cache".*>kept 200 1 B/, html)
    assert_match(/>b{22}…b+\?c\.png\?… 200/, html)
    refute_match(/secret|\u202E/, html)
  end

  private

  def report(visits, ahead: true) = Proxy::Report.new(visits, explanations: [], ahead: ahead, token: "x").to_s

  def plain
    Proxy::Visits.new.tap do |visits|
      [true, false].each { |ahead| visits.begin("http://a/x", ahead: ahead, now: 0.0).add("http://a/b/x", :image, :ahead, 0.1).finish(200, 3, 0.2) }
    end
  end
end
