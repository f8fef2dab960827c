# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy/scanner"

# Content Security Policy Level 3: what a page's policies allow to be fetched ahead.
class HTTPProxyScannerContentSecurityPolicyTest < Minitest::Test
  Scanner = Hikyaku::HTTP::Proxy::Scanner
  BASE = "http://example.com/dir/page.html"
  # One of each kind.
  PAGE = <<~HTML
    <img src=a.png><link rel=stylesheet href=a.css><script src=a.js></script><link rel=preload as=font href=a.woff2 crossorigin><link rel=preload as=fetch href=a.json>
  HTML
  ALL = %w[a.png a.css a.js a.woff2 a.json].freeze

  # A policy, and what it leaves of these.
  KINDS = {
    "" => ALL, ";; ;" => ALL, "x" => ALL, "x-src 'none'" => ALL, "frame-ancestors 'none'; form-action 'self'; report-uri /r" => ALL,
    "default-src *" => ALL, "default-src 'none'" => [], "default-src" => [], "default-src 'self'" => ALL, "DEFAULT-SRC 'SELF'" => ALL,
    "img-src 'none'" => ALL - %w[a.png], "style-src 'none'" => ALL - %w[a.css], "script-src 'none'" => ALL - %w[a.js], "font-src 'none'" => ALL - %w[a.woff2],
    "connect-src 'none'" => ALL - %w[a.json],
    "default-src 'none'; img-src *" => %w[a.png], "default-src 'none';img-src 'self';style-src http:" => %w[a.png a.css],
    "style-src *; style-src-elem 'none'; script-src 'none'; script-src-elem *" => ALL - %w[a.css], "style-src-attr 'none'; script-src-attr 'none'" => ALL,
    # Of two with one name the first counts; of several policies each.
    "img-src 'none'; img-src *" => ALL - %w[a.png], "img-src *; img-src 'none'" => ALL, "img-src 'none', style-src 'none'" => ALL - %w[a.png a.css],
    "img-src 'none', img-src *" => ALL - %w[a.png], ",," => ALL,
    # With these a browser says another thing, or asks for another URL.
    "sandbox" => [], "sandbox allow-scripts allow-same-origin" => [], "upgrade-insecure-requests" => [], "Upgrade-Insecure-Requests; default-src *" => [],
    # What is by far too much is not read.
    ";" * 63 => ALL, ";" * 64 => [], "img-src #{"a " * 255}*" => ALL, "img-src #{"a " * 256}*" => [], "x #{"a " * 300}" => [], "," * 8 => ALL, "#{"x," * 8}x" => [], "x," * 7 => ALL
  }.freeze

  # A source, and whether http://example.com/dir/a.png is sure to be allowed by it.
  SOURCES = {
    "*" => true, "'self'" => true, "'SELF'" => true, "'none'" => false, "'none' *" => true, "http:" => true, "HTTP:" => true, "https:" => false, "data:" => false, "h" => false, "http" => false,
    "example.com" => true, "EXAMPLE.com" => true, "http://example.com" => true, "HTTP://example.com" => true, "https://example.com" => false, "ws://example.com" => false,
    "other.example" => false, "example.com." => false, "example.comm" => false, "xexample.com" => false, "www.example.com" => false, "*.example.com" => false, "*.com" => true, "*com" => false, "*." => false,
    "example.com:80" => true, "example.com:080" => true, "example.com:*" => true, "example.com:81" => false, "example.com:" => false, "http://*" => true, "*:80" => true, "*:81" => false, "https://*" => false,
    "example.com/" => true, "example.com/dir" => false, "example.com/dir/" => true, "example.com/dir/a.png" => true, "example.com/dir/A.png" => false, "example.com/di" => false,
    "example.com/dir/a.png/" => false, "example.com/dir/%61.png" => false, "example.com/dir/a.png?b" => false, "example.com/dir/a.png#b" => false,
    "'nonce-abc'" => false, "'unsafe-inline'" => false, "'strict-dynamic' example.com" => true, "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='" => false, "self" => false,
    "\u00E9" => false, "\xFF *" => true, "http://user@example.com" => false, "//example.com" => false, "http://" => false, "://example.com" => false
  }.freeze
  private_constant :Scanner, :BASE, :PAGE, :ALL, :KINDS, :SOURCES

  test "each directive is about its kind, and default-src about those without" do
    KINDS.each { |policy, found| assert_equal found, names(PAGE, policy), policy[0, 100] }
  end

  test "a source allows what it names, and what is not sure is not allowed" do
    SOURCES.each { |source, allowed| assert_equal (allowed ? %w[a.png] : []), names("<img src=a.png>", "img-src #{source}"), source }
  end

  test "several header fields are several policies" do
    assert_equal ALL - %w[a.png a.css], names(PAGE, "img-src 'none'", "style-src 'none'")
  end

  test "ports and schemes of the page count" do
    page = "http://example.com:8080/"
    {"'self'" => true, "example.com" => false, "example.com:8080" => true, "http://example.com:*" => true, "http:" => true, "*.com:8080" => true}.each do |source, allowed|
      assert_equal (allowed ? %w[a] : []), names("<img src=a>", "img-src #{source}", base: page), source
    end
    {"'self'" => true, "http:" => true, "https:" => true, "example.com" => true, "http://example.com" => true, "http://example.com:443" => true, "example.com:80" => false}.each do |source, allowed|
      assert_equal (allowed ? %w[a] : []), names("<img src=a>", "img-src #{source}", base: "https://example.com/"), source
    end
  end

  test "an address is no host, but for 127.0.0.1" do
    {"127.0.0.1" => true, "127.0.0.2" => false, "192.0.2.1" => false}.each do |host, allowed|
      assert_equal (allowed ? %w[a] : []), names("<img src=a>", "img-src #{host}", base: "http://#{host}/"), host
    end
    assert_empty names("<img src=a>", "img-src [::1]", base: "http://[::1]/")
    assert_equal %w[a], names("<img src=a>", "img-src 'self'", base: "http://[::1]/")
  end

  test "a nonce allows the scripts and style sheets that have it" do
    html = "<script nonce=Abc src=1></script><script nonce=abc src=2></script><script src=3></script><link rel=stylesheet nonce=Abc href=4><link rel=preload as=script nonce=Abc href=5>" \
      "<img nonce=Abc src=6>"
    assert_equal %w[1 4 5], names(html, "default-src 'nonce-Abc'")
    assert_equal %w[1 2 3 5], names(html, "script-src 'nonce-Abc' *; default-src 'none'")
    assert_equal %w[1 5], names(html, "script-src 'nonce-Abc' 'strict-dynamic' *; default-src 'none'")
    assert_equal %w[1 5 6], names(html, "script-src 'NONCE-Abc' 'STRICT-dynamic'; style-src 'none'")
    assert_empty names("<script nonce src=1></script><script nonce='' src=2></script>", "script-src 'nonce-' 'nonce-='")
  end

  private

  def names(html, *policies, base: BASE) = (Scanner.new(base: base, policies: policies) << html).map { |inline| inline.url[%r{[^/]*\z}] }
end
