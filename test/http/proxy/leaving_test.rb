# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# What becomes of what was fetched ahead, and is on its way, when the browser turns to another page; with a server that is slow indeed.
class HTTPProxyLeavingTest < Minitest::Test
  include Proxied

  # Pages of images, and nothing of it faster than so much.
  class Slow < Misbehaving::WellBehaved
    PIECE = 2_000
    PAUSE = 0.01

    # @return [Array<Integer>] connections that were closed in the midst of an answer
    attr_reader :cut

    # @param bytes [Integer] of each image
    # @param count [Integer] of images
    # @param more [String] of the page
    def initialize(bytes, count, more)
      super()
      @bytes = bytes
      @page = Array.new(count) { |i| "<img src=/#{i}.png>" }.join + more
      @cut = []
    end

    def misbehave(connection, request)
      image = request.path.end_with?(".png")
      body = if image
        "#{request.path} ".ljust(@bytes, "x")
      else
        (request.path == "/page.html") ? @page : "<p>nothing more"
      end
      write(connection, "HTTP/1.1 200 OK\r\nContent-Type: #{image ? "image/png" : "text/html"}\r\nETag: \"#{request.path}\"\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
    end

    private

    def write(connection, bytes)
      until bytes.empty?
        connection.write(bytes.byteslice(0, PIECE))
        bytes = bytes.byteslice(PIECE..) || ""
        sleep PAUSE
      end
    rescue IOError, SystemCallError
      @cut << connection.number
      raise
    end
  end

  LONG = 40_000 # bytes, which take this server a fifth of a second
  SHORT = 400
  IMAGE = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
  private_constant :LONG, :SHORT, :IMAGE

  test "what nobody asked for and would hold up the next page is let go with its connection" do
    visiting(LONG) do |way, server, proxy|
      before = server.log.map(&:first).uniq
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      refute_includes before, asked(server, "/next.html").first
      wait_until { way.cut.any? }
      assert_empty before - way.cut
    end
  end

  test "what does not hold it up for long comes, and is given to who asks for it still" do
    visiting(SHORT, 7) do |way, server, proxy|
      wait_until { asked(server, "/5.png") }
      before = server.log.map(&:first).uniq
      last = server.log.last[2]
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_includes before, asked(server, "/next.html").first
      assert_empty way.cut
      assert_equal SHORT, get(proxy, server, last, IMAGE).last.bytesize
      assert_equal 1, server.log.count { |entry| entry[2] == last }
    end
  end

  test "what somebody asked for is asked for once more elsewhere" do
    visiting(LONG) do |_, server, proxy|
      browser = asking(server, proxy, behind = target(beginning(proxy) + 1))
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_equal "#{behind} ".ljust(LONG, "x"), browser.read.split("\r\n\r\n", 2).last
    end
  end

  test "what has begun to come to somebody comes to its end, and nothing behind it" do
    visiting(LONG) do |_, server, proxy|
      number = beginning(proxy)
      browser = asking(server, proxy, target(number))
      start = browser.readpartial(1_000)
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_equal "#{target(number)} ".ljust(LONG, "x"), (start + browser.read).split("\r\n\r\n", 2).last
      assert_equal [1, 0], [number, number + 1].map { |one| server.log.count { |entry| entry[2] == target(one) } }
    end
  end

  test "what a browser asked for that has left is let go, and not what was fetched ahead for the page" do
    visiting(LONG, 7) do |way, server, proxy|
      number = beginning(proxy)
      [number, number + 1].map { |one| asking(server, proxy, target(one)) }.each(&:close)
      wait_until { way.cut.any? }
      assert_equal [LONG] * 2, [target(6), "/end.png"].map { |one| get(proxy, server, one, IMAGE).last.bytesize }
      assert_equal [1, 0], [number, number + 1].map { |one| server.log.count { |entry| entry[2] == target(one) } }
    end
  end

  test "who has but ended their own half of the connection is answered, also where it takes long" do
    gate = Queue.new
    Misbehaving.run(Misbehaving::AsTold.new { |request, _| gate.pop && nil if request.path == "/late" }) do |server|
      run_proxy do |proxy|
        browser = connect(proxy)
        browser.write("GET #{server.url("/late")} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        browser.close_write
        sleep 0.3
        gate << true
        assert browser.read.end_with?(Misbehaving.body_of("/late"))
      end
    end
  end

  test "what no server was asked for yet never is when the browser has left" do
    gate = Queue.new
    way = Misbehaving::AsTold.new { |request, _| gate.pop && nil if request.path.start_with?("/held") }
    Misbehaving.run(way) do |server|
      run_proxy(prefetch: false) do |proxy|
        browsers = Array.new(8) { |i| connect(proxy).tap { |browser| browser.write("GET #{server.url("/held#{i}")} HTTP/1.1\r\nHost: a\r\n\r\n") } }
        wait_until { server.log.size == 6 }
        browsers.each(&:close)
        sleep 0.4
        8.times { gate << true }
        assert_equal 200, get(proxy, server, "/after").first
        assert_equal 7, server.log.size
      end
    end
  end

  test "who breaks off what a page asks for, and asks for another without saying from where, has turned it, in whichever order that is seen" do
    [true, false].each do |first|
      visiting(LONG) do |_, server, proxy|
        before = proxy.user_state.prefetcher.size
        browser = asking(server, proxy, target(beginning(proxy) + 3), "Referer: #{server.url("/page.html")}")
        browser.close if first
        wait_until { proxy.user_state.page_log.latest.left? } if first
        get(proxy, server, "/next.html", "Accept: text/html")
        browser.close
        wait_until { proxy.user_state.prefetcher.size < before - 10 }
      end
    end
  end

  test "the same page once more will want it: it is kept" do
    visiting(LONG) do |way, server, proxy|
      before = server.log.map(&:first).uniq
      get(proxy, server, "/page.html", "Accept: text/html")
      assert_includes before, server.log.reverse.find { |entry| entry[2] == "/page.html" }.first
      assert_empty way.cut
    end
  end

  test "what a frame of the page shows is a part of it, and what another window shows is not: nothing is let go" do
    visiting(LONG, 40, "<iframe src=/frame.html></iframe>") do |way, server, proxy|
      before = proxy.user_state.prefetcher.size
      assert_operator before, :>, 10
      get(proxy, server, "/frame.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_empty way.cut
      assert_operator proxy.user_state.prefetcher.size, :>=, before
      assert_equal ["/page.html"], proxy.user_state.page_log.pages.map { |page| page.url[%r{/\w+\.html}] }
      get(proxy, server, "/unknown.html", "Accept: text/html", "Referer: #{server.url("/page.html")}", "Sec-Fetch-Dest: iframe")
      assert_equal 1, proxy.user_state.page_log.pages.size
      get(proxy, server, "/window.html", "Accept: text/html")
      assert_empty way.cut
      assert_operator proxy.user_state.prefetcher.size, :>=, before
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_operator proxy.user_state.prefetcher.size, :<, before
    end
  end

  private

  # Until it is pipelined, it is known how fast it is, and something is on its way.
  def visiting(bytes, count = 40, more = "")
    way = Slow.new(bytes, count, more)
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html")
        wait_until { proxy.user_state.clients.explanations.first.to_s.match?(/is pipelined.*come in a second/) && asked(server, "/3.png") }
        yield way, server, proxy
      end
    end
  end

  # @return [Integer] the number of the image that has just begun to come
  def beginning(proxy)
    before = coming(proxy)
    wait_until { coming(proxy) > before }
    coming(proxy)
  end

  def coming(proxy) = proxy.user_state.page_log.pages.first.resources.drop(1).index { |resource| resource.ended_at.nil? }

  def target(number) = "/#{number}.png"

  def asking(server, proxy, target, *fields)
    browser = connect(proxy)
    browser.write("GET #{server.url(target)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n#{[IMAGE, *fields].join("\r\n")}\r\n\r\n")
    wait_until { proxy.user_state.page_log.pages.first.resources.any? { |resource| resource.url.end_with?(target) && resource.requested_at } }
    browser
  end

  def asked(server, target) = server.log.find { |entry| entry[2] == target }
end
