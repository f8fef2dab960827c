# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy/prefetcher"
require "hikyaku/http/proxy/scanner"

# What is said when something in a page is asked for before the browser does.
class HTTPProxyPrefetcherRequestHeadersTest < Minitest::Test
  Proxy = Hikyaku::HTTP::Proxy
  URL = "http://a.example/b/c?d"
  SAID = [["accept", "text/html"], ["referer", "http://search.example/?q=private"], ["cookie", "a=b"], ["user-agent", "test"], ["upgrade-insecure-requests", "1"],
    ["if-none-match", '"a"'], ["cache-control", "max-age=0"], ["via", "1.1 a"]].freeze
  METADATA = [%w[sec-fetch-dest document], %w[sec-fetch-mode navigate], %w[sec-fetch-site cross-site], %w[sec-fetch-user ?1]].freeze
  private_constant :Proxy, :URL, :SAID, :METADATA

  test "what is of the page alone is not said, and no field twice; who asks is, and that is the page" do
    said = said_of("<img src=x>")
    assert_equal [%w[cookie a=b], %w[user-agent test], %w[referer http://a.example/b/c?d]], said.reject { |field| field.first == "accept" }
    assert_equal said.map(&:first).uniq, said.map(&:first)
    assert_match(%r{\Aimage/avif}, said.assoc("accept").last)
    assert_includes said_of("<img src=x>", said: SAID + [%w[cache-control no-cache]]), %w[cache-control no-cache]
  end

  test "where a browser says what it is for, so is said here" do
    {"<img src=x>" => %w[no-cors image], "<link rel=stylesheet href=x>" => %w[no-cors style], "<script src=x></script>" => %w[no-cors script],
     "<script src=x type=module></script>" => %w[cors script], "<img src=x crossorigin>" => %w[cors image], "<link rel=preload as=font href=x crossorigin>" => %w[cors font],
     "<link rel=preload as=fetch href=x>" => %w[cors empty]}.each do |html, (mode, destination)|
      said = said_of(html, said: SAID + METADATA).select { |name, _| name.start_with?("sec-fetch") }
      assert_equal [%w[sec-fetch-site same-origin], ["sec-fetch-mode", mode], ["sec-fetch-dest", destination]], said, html
    end
    refute(said_of("<img src=x>").any? { |name, _| name.start_with?("sec-fetch") })
  end

  test "the policies of the element, of the page and of its answer decide who is said to ask, in this order" do
    origin = "http://a.example/"
    {["", nil] => URL, ["", "no-referrer"] => nil, ["", "origin"] => origin, ["", "unsafe-url, nonsense"] => URL, ["", "no-referrer, same-origin"] => URL,
     ["<meta name=referrer content=never>", nil] => nil, ["<meta name=Referrer content=No-Referrer>", "origin"] => nil, ["<meta name=referrer content=nonsense>", "origin"] => origin,
     ["<meta name=referrer content=origin-when-crossorigin>", "no-referrer"] => URL}.each do |(meta, field), expected|
      assert_equal_or_nil expected, referer("#{meta}<img src=x>", policy: field), [meta, field].inspect
    end
    {"no-referrer" => nil, "Strict-Origin" => origin, "nonsense" => nil, "" => nil, "unsafe-url" => URL, "never" => nil}.each do |attribute, expected|
      assert_equal_or_nil expected, referer("<img src=x referrerpolicy='#{attribute}'>", policy: "no-referrer"), attribute
    end
    assert_nil referer("<meta name=referrer content=no-referrer><img src=x referrerpolicy=nonsense>")
    assert_equal [origin, nil], [referer("<img src=/x>", url: "http://a.example/#{"a" * 4_200}"), referer("<img src=x>", url: nil)]
  end

  private

  def assert_equal_or_nil(expected, actual, message) = expected.nil? ? assert_nil(actual, message) : assert_equal(expected, actual, message)

  def said_of(html, said: SAID, policy: nil, url: URL)
    inline = (Proxy::Scanner.new(base: URL) << html).first
    Proxy::Prefetcher::RequestHeaders.new(said, url: url, policy: policy).for(inline)
  end

  def referer(...) = said_of(...).assoc("referer")&.last
end
