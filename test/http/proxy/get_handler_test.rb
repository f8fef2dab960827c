# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# What of a page is fetched before the browser asks, over sockets.
class HTTPProxyGetHandlerTest < Minitest::Test
  include Proxied

  # Serves a page with these fields, and what Misbehaving would.
  class Site < Misbehaving::WellBehaved
    def initialize(html, *fields)
      super()
      @html = html
      @fields = fields
    end

    def misbehave(connection, request)
      return super unless request.path == "/page.html"
      head = ["HTTP/1.1 200 OK", "Content-Type: text/html; charset=utf-8", "Content-Length: #{@html.bytesize}", *@fields]
      connection.write("#{head.join("\r\n")}\r\n\r\n#{@html}")
    end
  end

  # Images come last, as their turn does: when they were asked for, all was that would be.
  PAGE = "<link rel=stylesheet href=a.css><script src=a.js></script><img src=a.png>"
  POLICIES = {
    [] => %w[/a.css /a.js /a.png],
    ["Content-Security-Policy: default-src 'self'"] => %w[/a.css /a.js /a.png],
    ["Content-Security-Policy: default-src 'none'; img-src *"] => %w[/a.png],
    ["content-security-policy: script-src 'none'", "Content-Security-Policy: style-src https:"] => %w[/a.png],
    ["Content-Security-Policy: script-src 'none', img-src 'self'"] => %w[/a.css /a.png],
    ["Integrity-Policy: blocked-destinations=(script)", "Content-Security-Policy: img-src *"] => %w[/a.png],
    ["Content-Security-Policy-Report-Only: default-src 'none'"] => %w[/a.css /a.js /a.png]
  }.freeze
  private_constant :PAGE, :POLICIES

  test "what the page's policy does not allow is not fetched" do
    POLICIES.each { |fields, targets| assert_fetched(targets, PAGE, *fields) }
  end

  test "what a policy in the page does not allow is not fetched" do
    assert_fetched(%w[/a.js /a.png], "<meta http-equiv=content-security-policy content=\"style-src 'none'\">#{PAGE}")
    assert_fetched(%w[/a.css /a.png], "<meta http-equiv=content-security-policy content=\"script-src 'none'\">#{PAGE}", "Content-Security-Policy: script-src 'self'")
  end

  test "of a page that is read as it passes, what is no element of it, comes later or is another's is not fetched" do
    assert_fetched(%w[/b/s.js /b/p.css /b/l.css /b/1x.png /b/z.png].sort, <<~HTML)
      <!doctype html><!-- <img src=/comment.png> --><base href=/b/><base href=/c/><title><img src=/title.png></title>
      <link rel=preload as=style href=p.css><link rel=stylesheet href=l.css><link rel=prefetch href=/prefetch.png><link rel=stylesheet media=print href=/print.css>
      <script>document.write('<img src=/script.png>')</script><script src=s.js></script><style>p { background: url(/style.png) }</style>
      <noscript><img src=/noscript.png></noscript><template><img src=/template.png></template><textarea><img src=/textarea.png></textarea>
      <img src=/lazy.png loading=lazy><img src=/srcset.png srcset="1x.png 1x, 2x.png 2x"><img src=http://127.0.0.2:9/other.png><img src=//127.0.0.2:9/other.png><img src=z.png>
    HTML
  end

  test "relative to a base elsewhere nothing is fetched" do
    assert_fetched(%w[/here.png], "<img src=here.png><base href=http://127.0.0.2:9/><img src=there.png><link rel=stylesheet href=there.css><img src=here.png>")
  end

  test "what is fetched ahead was sent by nobody, and says no Via; the page and what is asked for does" do
    Misbehaving.run(Site.new(PAGE)) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html", "Via: 1.1 other")
        wait_until { server.log.size == 4 }
        get(proxy, server, "/other.png")
        said = server.log.to_h { |entry| [entry[2], entry.last["via"]] }
        assert_equal [nil, nil, nil], said.values_at("/a.css", "/a.js", "/a.png")
        assert_match(/hikyaku-/, said["/page.html"])
        assert_match(/hikyaku-/, said["/other.png"])
      end
    end
  end

  test "what was fetched ahead is answered once, and asked for once, also where no other request follows" do
    Misbehaving.run(Site.new(PAGE)) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html")
        wait_until { server.log.size == 4 }
        socket = connect(proxy)
        socket.write("GET #{server.url("/a.png")} HTTP/1.1\r\nHost: #{host(server)}\r\nAccept: image/avif,image/*,*/*;q=0.8\r\nConnection: close\r\n\r\n")
        assert_equal 1, socket.read.scan("HTTP/1.1 200").size
        assert_equal 4, server.log.size
      end
    end
  end

  test "after a cookie was set nothing is fetched, nor behind so many bytes of a page" do
    assert_fetched([], PAGE, "Set-Cookie: a=b")
    assert_fetched(%w[/a.css /a.js /a.png], PAGE + " " * 4_300_000 + "<img src=/late.png>")
  end

  # Fields of an image, and whether a request with a further cookie is answered with the image that was fetched without.
  SHAREABLE = {
    ["Cache-Control: max-age=60"] => true, ["Cache-Control: public, max-age=60", "Vary: DNT"] => true, ["Expires: Thu, 01 Jan 2099 00:00:00 GMT"] => true,
    ["Last-Modified: Thu, 01 Jan 2004 00:00:00 GMT"] => true, [] => false, ['ETag: "a"'] => false, ["Cache-Control: private, max-age=60"] => false,
    ["Cache-Control: no-store"] => false, ["Cache-Control: no-cache, max-age=60"] => false, ["Cache-Control: max-age=0"] => false,
    ["Cache-Control: max-age=60, s-maxage=0"] => false, ["Cache-Control: max-age=60", "Age: 60"] => false, ["Cache-Control: max-age=60", "Vary: Accept, cookie"] => false,
    ["Cache-Control: max-age=60", "Vary: *"] => false, ["Cache-Control: max-age=60", "Set-Cookie: a=b"] => false
  }.freeze
  private_constant :SHAREABLE

  test "a request with a further cookie gets what a shared cache could give to it, and of what it could not, no more of the kind waits" do
    SHAREABLE.each do |fields, given|
      way = Misbehaving::AsTold.new do |request, _|
        type, body, more = (request.path == "/page.html") ? ["text/html", "<img src=/a.png><img src=/b.png>", []] : ["image/png", request.headers["cookie"].to_s, fields]
        [*["HTTP/1.1 200 OK", "Content-Type: #{type}", "Content-Length: #{body.bytesize}", *more].map { |line| "#{line}\r\n" }, "\r\n", body].join
      end
      Misbehaving.run(way) do |server|
        run_proxy do |proxy|
          get(proxy, server, "/page.html", "Accept: text/html", "Cookie: a=1")
          wait_until { server.log.size == 3 }
          assert_equal given ? "a=1" : "a=1; b=2", get(proxy, server, "/a.png", "Accept: image/avif,*/*", "Cookie: a=1; b=2").last, fields.inspect
          assert_equal [given ? 3 : 4, given ? 1 : 0], [server.log.size, proxy.user_state.prefetcher.size], fields.inspect
          assert_equal "a=2", get(proxy, server, "/b.png", "Accept: image/avif,*/*", "Cookie: a=2").last
        end
      end
    end
  end

  test "when all connections of a browser end, and when it asks for another page, what was not sent yet is not fetched" do
    targets = Array.new(30) { |i| "/#{i}.png" }
    page = targets.map { |target| "<img src=#{target}>" }.join
    held = Queue.new
    way = Misbehaving::AsTold.new do |request, _|
      held.pop if request.path.end_with?(".png")
      next Misbehaving::Answer.to(request) unless request.path == "/page.html"
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{page.bytesize}\r\n\r\n#{page}"
    end
    [true, false].each do |ends|
      Misbehaving.run(way) do |server|
        run_proxy do |proxy|
          prefetcher = proxy.user_state.prefetcher
          browser = connect(proxy)
          request = "GET #{server.url("/page.html")} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n"
          ask(browser, request)
          assert_equal 30, prefetcher.size
          ends ? browser.close : browser.write(request.sub("page", "other").sub("\r\n\r\n", "\r\nReferer: #{server.url("/page.html")}\r\n\r\n"))
          wait_until { prefetcher.size < 10 }
          60.times { held << true }
        end
      end
      held.clear
    end
  end

  test "who leaves in the middle of a page wants nothing more of it, though another connection stands" do
    images = Array.new(30) { |i| "<img src=/#{i}.png>" }.join
    held = Queue.new
    way = Misbehaving::WellBehaved.new
    way.define_singleton_method(:misbehave) do |connection, request|
      next behave(connection, request) if request.path == "/before"
      next held.pop if request.path.end_with?(".png")
      connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000000\r\n\r\n#{images}")
      loop do
        connection.write(" " * 10_000)
        sleep 0.01
      end
    end
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/before")
        browser = connect(proxy)
        browser.write("GET #{server.url("/page.html")} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n")
        wait_until { proxy.user_state.prefetcher.size == 30 }
        browser.close
        wait_until { proxy.user_state.prefetcher.size < 10 }
      end
      30.times { held << true }
    end
  end

  test "of each resource is shown when it came, though the browser took it later, and what came from the cache" do
    way = Misbehaving::AsTold.new do |request, _|
      type, body = (request.path == "/page.html") ? %w[text/html <img\ src=/a.png>] : %w[image/png x]
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Type: #{type}\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
    end
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        2.times do |load|
          another = "User-Agent: #{load}"
          get(proxy, server, "/page.html", "Accept: text/html", another)
          page = proxy.user_state.page_log.pages.first
          wait_until { page.resources.last.ended_at }
          sleep 0.05
          get(proxy, server, "/a.png", "Accept: image/avif,*/*", another)
          assert_equal [%i[pipeline prefetch], %i[cache cache]].fetch(load), page.resources.map(&:source)
          image = page.resources.last
          assert_operator image.requested_at, :>=, image.ended_at + 0.05
          get(proxy, server, "/a.png", "Accept: image/avif,*/*", another, "Referer: #{server.url("/page.html")}")
          assert_equal :cache, page.resources.last.source
        end
        assert_equal 2, server.log.size
      end
    end
  end

  private

  # @param targets [Array<String>] the last of which is asked for last, or else all of one kind
  def assert_fetched(targets, html, *fields)
    Misbehaving.run(Site.new(html, *fields)) do |server|
      run_proxy do |proxy|
        assert_equal html, get(proxy, server, "/page.html", "Accept: text/html").last
        wait_until { server.log.size > targets.size }
        browser = connect(proxy)
        targets.each { |target| assert_equal Misbehaving.body_of(target), ask(browser, "GET #{server.url(target)} HTTP/1.1\r\nHost: a\r\n\r\n").last }
        assert_equal targets.sort, server.log.drop(1).map { |entry| entry[2] }.sort, fields.join
      end
    end
  end
end
