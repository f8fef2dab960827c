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

  private

  def plain
    Proxy::Visits.new.tap do |visits|
      [true, false].each { |ahead| visits.begin("http://a/x", ahead: ahead, now: 0.0).add("http://a/b/x", :image, :ahead, 0.1).finish(200, 3, 0.2) }
    end
  end
end
