# frozen_string_literal: true

require "test_helper"
require "time"
require "http/proxy/proxied"
require "hikyaku/http/proxy/browser_cache"

# What a browser has already is not fetched ahead.
class HTTPProxyBrowserCacheTest < Minitest::Test
  include Proxied

  BrowserCache = Hikyaku::HTTP::Proxy::BrowserCache
  Address = Hikyaku::HTTP::Address
  START = 1_800_000_000.0
  SAID = [["user-agent", "one"], ["cookie", "a=1; b=2"]].freeze
  URL = "http://a.example/x"
  TARGETS = Array.new(12) { |i| "/#{i}.png" }.freeze
  AGENT = "User-Agent: one"
  private_constant :BrowserCache, :Address, :START, :SAID, :URL, :TARGETS, :AGENT

  def setup
    @now = START
    @cache = BrowserCache.new(max: 5, clock: -> { @now })
    turn
  end

  test "it has what is fresh, by what the server said or by a tenth of the time since it was changed; not what it does not keep" do
    {{"cache-control" => "max-age=60"} => 60, {"cache-control" => "max-age=60", "age" => "50"} => 10, {"expires" => date(60)} => 60,
     {"last-modified" => date(-600)} => 60, {"cache-control" => "no-cache", "last-modified" => date(-600)} => 0, {} => 0, {"etag" => '"a"'} => 0,
     {"cache-control" => "max-age=60, no-store"} => 0, {"cache-control" => "max-age=60", "vary" => "Cookie"} => 60, {"cache-control" => "max-age=60", "vary" => "*"} => 0,
     {"cache-control" => "max-age=60", "vary" => "Accept-Encoding, Origin"} => 60}.each do |fields, seconds|
      @now = START
      give(fields)
      assert_equal seconds > 0, given?, fields
      @now += [seconds - 1, 0].max
      assert_equal seconds > 1, given?, fields
      @now += 2
      refute given?, fields
    end
    [304, 206, 404].each do |status|
      give({"cache-control" => "max-age=60"}, status: status)
      assert_equal status == 304, given?, status
    end
  end

  test "what is stale, and was given with other credentials, it asks about by itself" do
    {{"etag" => '"a"'} => true, {"last-modified" => date(0)} => true, {} => false, {"etag" => '"a"', "cache-control" => "no-cache"} => true,
     {"etag" => '"a"', "cache-control" => "no-store"} => false}.each do |fields, asks|
      give(fields)
      assert_equal [false, asks], [given?, given?(credentials: "others")], fields
    end
  end

  test "who reloads a page past all caches has nothing" do
    give
    [["cache-control", "no-cache"], ["pragma", "no-cache"]].each { |field| refute given?([*SAID, field]) }
    assert given?([*SAID, ["cache-control", "max-age=0"]])
  end

  test "about what it was only told is right, and about what depends on anything, it asks by itself, with the same credentials too" do
    give({"etag" => '"a"'}, status: 304)
    assert given?
    give({"etag" => '"a"'})
    give({"etag" => '"a"'}, status: 304)
    refute given?, "the proxy has it from before"
    give({"etag" => '"a"', "cache-control" => "max-age=60", "vary" => "*"})
    assert given?
  end

  test "after a page whose cookies changed while it loaded it asks by itself about what is stale, and not after others" do
    give({"etag" => '"a"'})
    [[nil, false], ["c=3", true], ["a=1; b=2", false], ["c=3", true]].each do |cookie, asks|
      @cache.requested(Address.parse(URL), [SAID.first, ["cookie", cookie], ["if-none-match", '"a"']]) if cookie
      # What leads to the page asks for nothing by itself.
      2.times { turn }
      assert_equal asks, given?, cookie
    end
  end

  test "it is the same browser with the same User-Agent, whatever its cookies are" do
    ["a=9", "c=1;b=;d", "", "c=a; d=b", "A=1"].each do |cookie|
      turn
      give
      said = [SAID.first, *([["cookie", cookie]] unless cookie.empty?)]
      turn(said)
      assert given?(said), cookie
    end
    refute given?([%w[user-agent two]])
  end

  test "who asks for what it was taken to have, three times on a page, has nothing of that server" do
    urls = Array.new(4) { |i| "#{URL}#{i}" }
    urls.each { |url| give(url: url) }
    give(url: "http://b.example/")
    %w[if-none-match if-modified-since range cache-control].each { |name| urls.each { |url| refute @cache.requested(Address.parse(url), SAID + [[name, "x"]]) } }
    assert_equal [false, false], urls.first(2).map { |url| asked(url) }
    turn
    urls.first(2).each { |url| give(url: url) }
    assert_equal [false, false, true], urls.first(3).map { |url| asked(url) }
    refute given?(url: urls.last)
    assert given?(url: "http://b.example/")
  end

  test "so many answers are remembered, and none that has changed" do
    urls = Array.new(6) { |i| "#{URL}#{i}" }
    urls.each { |url| give(url: url) }
    assert_equal [5, [false, true]], [@cache.size, urls.first(2).map { |url| given?(url: url) }]
    @cache.drop([urls.last])
    assert_equal [true, false], urls.last(2).map { |url| given?(url: url) }
  end

  test "what the browser has is not fetched again, though a cookie changed; and for a browser that has nothing all is" do
    [["Cache-Control", "max-age=60"], ["Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"], ["ETag", '"a"']].each do |field|
      site(field) do |server, proxy|
        visit(server, proxy, "/1.html", TARGETS)
        before = server.log.size
        # Another cookie: of what is on the page nothing is asked for, but what is new.
        get(proxy, server, "/2.html", "Accept: text/html", AGENT, "Cookie: b=2")
        wait_until { server.log.any? { |entry| entry[2] == "/2.html-new.png" } }
        get(proxy, server, "/2.html-new.png", "Accept: image/avif,*/*", AGENT, "Cookie: b=2")
        assert_equal %w[/2.html /2.html-new.png], server.log.drop(before).map { |entry| entry[2] }, field
        # The same User-Agent, and nothing in the cache. All is fetched ahead when that is seen.
        before = server.log.size
        get(proxy, server, "/3.html", "Accept: text/html", AGENT, "Cookie: a=3")
        TARGETS.first(3).each { |target| get(proxy, server, target, "Accept: image/avif,*/*", AGENT, "Cookie: a=3") }
        wait_until { server.log.size == before + 2 + TARGETS.size }
        TARGETS.drop(3).each { |target| assert_equal 200, get(proxy, server, target, "Accept: image/avif,*/*", AGENT, "Cookie: a=3").first }
        assert_equal ["/3.html", "/3.html-new.png", *TARGETS].sort, server.log.drop(before).map { |entry| entry[2] }.sort, field
      end
    end
  end

  test "what the browser asked about after its cookies changed is not fetched whole with the next page" do
    site(["ETag", '"a"']) do |server, proxy|
      visit(server, proxy, "/1.html", TARGETS)
      before = server.log.size
      get(proxy, server, "/2.html", "Accept: text/html", AGENT, "Cookie: a=2")
      TARGETS.each { |target| get(proxy, server, target, "Accept: image/avif,*/*", AGENT, "Cookie: a=2", 'If-None-Match: "a"') }
      get(proxy, server, "/3.html", "Accept: text/html", AGENT, "Cookie: a=2")
      wait_until { server.log.any? { |entry| entry[2] == "/3.html-new.png" } }
      assert_equal ["/2.html", "/2.html-new.png", "/3.html", "/3.html-new.png", *TARGETS].sort, server.log.drop(before).map { |entry| entry[2] }.sort
    end
  end

  private

  def date(seconds) = Time.at(@now + seconds).httpdate

  def turn(said = SAID) = @cache.open_page(Address.parse(URL).origin, said)

  def give(fields = {"cache-control" => "max-age=60"}, status: 200, url: URL, said: SAID)
    @cache.store(Address.parse(url), said, Hikyaku::HTTP::Response.new(status: status, headers: [["date", date(0)], *fields], body: "", url: url), credentials: "own")
  end

  def given?(said = SAID, url: URL, credentials: "own") = @cache.include?(Address.parse(url), said, credentials: credentials)

  def asked(url) = @cache.requested(Address.parse(url), SAID)

  # Each page has the same images, and one more.
  def site(field)
    way = Misbehaving::AsTold.new do |request, _|
      next "HTTP/1.1 304 Not Modified\r\n#{field.join(": ")}\r\n\r\n" if request.headers["if-none-match"]
      html = [*TARGETS, "#{request.path}-new.png"].map { |target| "<img src=#{target}>" }.join
      type, body = request.path.end_with?(".html") ? ["text/html", html] : ["image/png", "x"]
      "HTTP/1.1 200 OK\r\n#{field.join(": ")}\r\nContent-Type: #{type}\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
    end
    Misbehaving.run(way) { |server| run_proxy { |proxy| yield server, proxy } }
  end

  def visit(server, proxy, page, targets)
    get(proxy, server, page, "Accept: text/html", AGENT, "Cookie: a=1")
    [*targets, "#{page}-new.png"].each { |target| get(proxy, server, target, "Accept: image/avif,*/*", AGENT, "Cookie: a=1") }
  end
end
