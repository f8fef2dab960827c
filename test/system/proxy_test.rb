# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy"
require "support/availability"
require "support/browser"
require "support/misbehaving"

# The proxy, and an unmodified Chromium that uses it.
class ProxySystemTest < Minitest::Test
  PIXEL = ["47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"].pack("H*")
  private_constant :PIXEL

  # A page of forty images, one style sheet and one script; at /script the page's own script adds a cookie first.
  class Site < Misbehaving::WellBehaved
    COUNT = 40
    HTML = <<~PAGE
      <!DOCTYPE html><html><head><title>many</title><link rel="stylesheet" href="/s.css"><script src="/s.js"></script></head>
      <body>#{Array.new(COUNT) { |i| %(<img src="/i/#{i}.gif" alt="">) }.join}<form method="post" action="/form"><button>send</button></form></body></html>
    PAGE

    # A page on which much is not asked for: by its policies, by what it is in, or not yet.
    POLICY = "script-src 'self' 'nonce-n'; style-src 'none'; img-src 'self' http://other.example; font-src 'none'; base-uri 'self'"
    STRICT = <<~PAGE
      <!DOCTYPE html><html><head><title>strict</title><base href="/i/"><link rel="stylesheet" href="/i/no.css"><script src="nonce.js" nonce="n"></script><script src="/s.js"></script>
      <link rel="preload" as="font" href="no.woff2" crossorigin><link rel="preload" as="image" href="preload.gif"><!-- <img src="comment.gif"> -->
      <meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script src="late.js" nonce="n"></script></head>
      <body><img src="1.gif"><img src="http://other.example:9/2.gif"><img srcset="1x.gif 1x, 2x.gif 2x" src="3.gif"><picture><source srcset="4.gif" type="image/gif"><img src="5.gif"></picture>
      <img src="a b{}|^`'%7e/../c//d.gif?x=%20{}|^`'\u00E9&amp;y"><img src="?"><script nonce="n">const text = '<img src="script.gif">'</script><noscript><img src="noscript.gif"></noscript>
      <template><img src="template.gif"></template><textarea><img src="textarea.gif"></textarea>
      <div style="background: url(style.gif)"></div><pre>#{"\n" * 2_000}</pre><img src="lazy.gif" loading="lazy"></body></html>
    PAGE

    # @param kept [String] for how long what it serves may be kept
    def initialize(kept: "no-store")
      super()
      @kept = kept
    end

    def misbehave(connection, request)
      type, body = content(request)
      policy = (body == STRICT) ? "Content-Security-Policy: #{POLICY}\r\n" : ""
      connection.write("HTTP/1.1 200 OK\r\nContent-Type: #{type}\r\n#{policy}Cache-Control: #{@kept}\r\nContent-Length: #{body.bytesize}\r\n\r\n".b + body.b)
    end

    private

    def content(request)
      case request.path
      when %r{\A/i/.*\.js\z} then ["text/javascript", ""]
      when %r{\A/i/} then ["image/gif", PIXEL]
      when "/s.css" then ["text/css", "body { color: rgb(1, 2, 3) }"]
      when "/s.js" then ["text/javascript", "window.ran = true"]
      when "/script" then ["text/html", HTML.sub("<title>", "<script>document.cookie = 'seen=1'</script><title>")]
      when "/strict" then ["text/html; charset=utf-8", STRICT]
      else ["text/html", (request.method == "POST") ? "<p>posted</p>" : HTML]
      end
    end
  end

  def setup
    skip_unless_available("chromium")
    @memory = File.join(Dir.mktmpdir, "origins.json")
    @proxy = Hikyaku::HTTP::Proxy.new(memory: @memory, allow: ["127.0.0.0/8", TestBrowser::NAME])
    @thread = Thread.new { @proxy.run }
    @browser = TestBrowser.new("proxy-server" => "127.0.0.1:#{@proxy.port}", "proxy-bypass-list" => "<-loopback>")
  end

  def teardown
    @browser&.quit
    @proxy&.stop
    @thread&.join
    FileUtils.rm_rf(File.dirname(@memory)) if @memory
  end

  test "a page is whole, each of its resources was asked for once, many at a time" do
    Misbehaving.run(Site.new) do |server|
      page = @browser.page
      2.times do |visit|
        page.visit(server.url("/?#{visit}"))
        assert_equal Site::COUNT, page.js("[...document.images].filter((image) => image.complete && image.naturalWidth === 1).length")
        assert_equal [true, "rgb(1, 2, 3)"], page.js("[window.ran, getComputedStyle(document.body).color]")
      end
      asked = server.log.map { |entry| entry[2] }.grep(%r{\A/[is]}).tally
      assert_equal Site::COUNT + 2, asked.size
      assert_equal [2], asked.values.uniq, "per visit once"
      page.visit("http://hikyaku.proxy/")
      assert_includes page.text("ul"), "is pipelined"
      assert_operator page.js("document.querySelectorAll('svg:first-of-type rect').length"), :>=, Site::COUNT + 3
      assert_empty page.complaints
    end
  end

  test "a cookie that a script of the page adds doubles no request for what a shared cache may give" do
    Misbehaving.run(Site.new(kept: "max-age=60")) do |server|
      page = @browser.page
      page.visit(server.url("/script"))
      page.until("it did not load") { page.js("document.readyState") == "complete" }
      assert_equal [Site::COUNT, "seen=1"], page.js("[[...document.images].filter((image) => image.naturalWidth === 1).length, document.cookie]")
      asked = server.log.map { |entry| entry[2] }.grep(%r{\A/[is]}).tally
      assert_equal [Site::COUNT + 3, [1]], [asked.size, asked.values.uniq]
    end
  end

  test "what the browser does not ask for by itself is not fetched for it, and what it asks for has the same URL" do
    Misbehaving.run(Site.new(kept: "max-age=0")) do |server|
      page = @browser.page
      asked = [true, false].map do |prefetch|
        assert_equal prefetch, @proxy.user_state.prefetch?
        before = server.log.size
        page.visit(server.url("/strict"))
        page.until("it did not load") { page.js("document.readyState") == "complete" }
        assert page.js("window.ran && document.images[0].naturalWidth === 1")
        targets = server.log.drop(before).map { |entry| entry[2] }.reject { |target| target == "/favicon.ico" }
        switch(page)
        targets.sort
      end
      assert_equal asked.last, asked.first
      assert_includes asked.first, "/i/1x.gif"
      assert_includes asked.first, "/i/c//d.gif?x=%20{}|^`%27%C3%A9&y"
      assert_empty asked.first.grep(/no\.|comment|script\.gif|template|textarea|style|late|lazy|2x|3\.gif|5\.gif/)
    end
  end

  test "a form is posted" do
    Misbehaving.run(Site.new) do |server|
      page = @browser.page
      page.visit(server.url("/"))
      page.click("form button")
      page.until("it was not posted") { page.text("p") == "posted" }
      assert_equal 1, server.log.count { |entry| entry[1] == "POST" }
    end
  end

  test "with the switch of its page it passes on only" do
    page = @browser.page
    switch(page)
    refute_predicate @proxy.user_state, :prefetch?
    Misbehaving.run(Site.new) do |server|
      page.visit(server.url("/"))
      assert_equal Site::COUNT, page.js("[...document.images].filter((image) => image.complete).length")
    end
  end

  test "its page says what to do where nothing was loaded, and shows hostile URLs as text" do
    page = @browser.page
    page.visit("http://hikyaku.proxy/")
    assert_includes page.text("body"), "Open an http:// page in this browser"
    hostile = "/'\"><img src=x onerror=alert(1)></text></svg><script>alert(2)</script>.html"
    Misbehaving.run(Site.new) do |server|
      TCPSocket.open("127.0.0.1", @proxy.port) do |socket|
        socket.write("GET http://127.0.0.1:#{server.port}#{hostile.delete(" ")} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nConnection: close\r\n\r\n")
        assert_includes socket.read, "200"
      end
      page.visit("http://hikyaku.proxy/")
      assert_includes page.text("h3"), "<imgsrc=xonerror=alert(1)></text></svg><script>alert(2)</script>.html"
      assert_equal [0, 1], page.js("['img, script, b', 'svg'].map((name) => document.querySelectorAll(name).length)")
      assert_operator page.js("[...document.querySelectorAll('svg text')].filter((text) => text.getBoundingClientRect().right > innerWidth).length"), :==, 0
      assert_empty page.complaints
    end
  end

  private

  def switch(page)
    wanted = @proxy.user_state.prefetch? ? "Pipeline and prefetch" : "Only pass through"
    page.visit("http://hikyaku.proxy/")
    page.click("form button")
    page.until("it did not switch") { page.text("form").include?(wanted) }
  end
end
