# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# What is long, or comes without a length, is fetched ahead once: who asks while it comes gets what came, and what goes on to come.
class HTTPProxyPrefetcherBufferedResponseTest < Minitest::Test
  include Proxied

  # A page, and answers to /long without a length, of so many pieces. Each waits for a gate, if there is one.
  class Site < Misbehaving::WellBehaved
    PIECE = ("0123456789abcdef" * 4_096).freeze

    # @return [Integer] pieces that were written
    attr_reader :written
    # @return [Queue, nil] each thing in it lets a piece go
    attr_reader :gate

    def initialize(html, pieces:, gate: nil, chunked: true)
      super()
      @html = html
      @pieces = pieces
      @gate = gate
      @chunked = chunked
      @written = 0
    end

    def misbehave(connection, request)
      return connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{@html.bytesize}\r\n\r\n#{@html}") if request.path == "/page.html"
      return super unless request.path.start_with?("/long")
      connection.write("HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nETag: \"long\"\r\n#{@chunked ? "Transfer-Encoding: chunked" : "Content-Length: #{@pieces * PIECE.bytesize}"}\r\n\r\n")
      @pieces.times do
        @gate&.pop
        connection.write(@chunked ? "#{PIECE.bytesize.to_s(16)}\r\n#{PIECE}\r\n" : PIECE)
        @written += 1
      end
      connection.write("0\r\n\r\n") if @chunked
    end
  end

  MUCH = 24 << 20 # more than sockets hold
  IMAGE = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
  private_constant :MUCH, :IMAGE

  test "who asks for what is coming joins it, and gets each piece as it comes" do
    gate = Queue.new
    site = Site.new("<img src=/long>", pieces: 40, gate: gate)
    visiting(site) do |server, proxy|
      wait_until { count(server, "/long") == 1 }
      browser = connect(proxy)
      browser.write("GET #{server.url("/long")} HTTP/1.1\r\nHost: a\r\n#{IMAGE}\r\n\r\n")
      2.times { gate << true }
      parser = Hikyaku::HTTP::Parser.new(:response)
      read = 0
      read += read_parts(browser, parser).sum(&:bytesize) until read == 2 * Site::PIECE.bytesize
      assert_equal 2, site.written
      40.times { gate << true }
      read += read_parts(browser, parser).sum(&:bytesize) until read == 40 * Site::PIECE.bytesize
      assert_equal 1, count(server, "/long")
    end
  end

  [true, false].each do |chunked|
    test "what is long#{" and comes without a length" if chunked} is read up to a bound until somebody asks, keeps nothing else from coming, and is fetched once" do
      site = Site.new("<img src=/long><img src=/a.png>", pieces: MUCH / Site::PIECE.bytesize, chunked: chunked)
      visiting(site) do |server, proxy|
        prefetcher = proxy.user_state.prefetcher
        wait_until { prefetcher.bytes > 1 << 20 }
        assert_equal Misbehaving.body_of("/a.png"), get(proxy, server, "/a.png", IMAGE).last
        sleep 0.2
        assert_operator prefetcher.bytes, :<, 1.2 * (1 << 20)
        assert_operator site.written, :<, MUCH / Site::PIECE.bytesize
        status, headers, body = get(proxy, server, "/long", IMAGE)
        assert_equal [200, "\"long\"", MUCH, true], [status, headers["etag"], body.bytesize, body == Site::PIECE * (MUCH / Site::PIECE.bytesize)]
        assert_equal 1, count(server, "/long")
        assert_equal 0, prefetcher.bytes
      end
    end
  end

  test "many that are long keep connections from nobody, and are answered when they are asked for" do
    targets = Array.new(8) { |i| "/long#{i}" }
    site = Site.new(targets.map { |target| "<img src=#{target}>" }.join, pieces: 300)
    visiting(site) do |server, proxy|
      wait_until { targets.all? { |target| count(server, target).positive? } && proxy.user_state.prefetcher.size == 2 }
      assert_equal Misbehaving.body_of("/other"), get(proxy, server, "/other").last
      before = count(server, targets.first)
      targets.first(2).each { |target| assert_equal 300 * Site::PIECE.bytesize, get(proxy, server, target, IMAGE).last.bytesize }
      assert_equal [before, 0], [count(server, targets.first), proxy.user_state.prefetcher.size]
      assert_equal 300 * Site::PIECE.bytesize, get(proxy, server, targets.last, IMAGE).last.bytesize
    end
  end

  test "what is long and waits is let go when the browser turns to another page" do
    visiting(Site.new("<img src=/long>", pieces: MUCH / Site::PIECE.bytesize)) do |server, proxy|
      wait_until { proxy.user_state.prefetcher.bytes > 1 << 20 }
      assert_equal 1, proxy.user_state.prefetcher.size
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_equal [0, 0], [proxy.user_state.prefetcher.size, proxy.user_state.prefetcher.bytes]
    end
  end

  test "a browser that takes nothing of what it joined slows the server down" do
    site = Site.new("<img src=/long>", pieces: 2 * MUCH / Site::PIECE.bytesize)
    visiting(site) do |server, proxy|
      wait_until { count(server, "/long") == 1 }
      browser = connect(proxy)
      browser.write("GET #{server.url("/long")} HTTP/1.1\r\nHost: a\r\n#{IMAGE}\r\n\r\n")
      written = -1
      wait_until { (written == site.written).tap { written = site.written || sleep(0.1) } && sleep(0.2) && written == site.written }
      assert_operator site.written, :<, 2 * MUCH / Site::PIECE.bytesize
      browser.close
      assert_equal Misbehaving.body_of("/a"), get(proxy, server, "/a").last
    end
  end

  test "an answer that breaks off before somebody asked for it is fetched anew, from its beginning" do
    tries = 0
    way = Misbehaving::AsTold.new do |request, connection|
      next "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<img src=/long>" if request.path == "/page.html"
      next unless request.path == "/long" && (tries += 1) == 1
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n#{"wrong" * 100}")
      raise IOError
    end
    visiting(way) do |server, proxy|
      wait_until { proxy.user_state.prefetcher.bytes == Misbehaving.body_of("/long").bytesize }
      assert_equal Misbehaving.body_of("/long"), get(proxy, server, "/long", IMAGE).last
      assert_equal 2, tries
    end
  end

  test "one that breaks off while it is passed on is broken off, and one that had passed nothing on is asked for anew" do
    [0, 1].each do |pieces|
      gate = Queue.new
      way = Site.new("<img src=/long>", pieces: 1)
      tries = 0
      way.define_singleton_method(:misbehave) do |connection, request|
        next super(connection, request) if request.path != "/long" || (tries += 1) > 3
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n#{"x" * 10_000}") if pieces == 1
        gate.pop
        raise IOError
      end
      visiting(way) do |server, proxy|
        wait_until { count(server, "/long") == 1 }
        browser = connect(proxy)
        browser.write("GET #{server.url("/long")} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n#{IMAGE}\r\n\r\n")
        browser.wait_readable(60) if pieces == 1
        4.times { gate << true }
        said = browser.read
        assert_operator said.bytesize, (pieces == 1) ? :< : :>, Site::PIECE.bytesize
        assert_equal 1, said.scan("HTTP/1.1 200").size
      end
    end
  end

  test "what the browser has already it is told so, though the answer still comes" do
    gate = Queue.new
    visiting(Site.new("<img src=/long>", pieces: 4, gate: gate)) do |server, proxy|
      wait_until { count(server, "/long") == 1 }
      gate << true
      browser = connect(proxy)
      assert_equal 304, ask(browser, "GET #{server.url("/long")} HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"long\"\r\n#{IMAGE}\r\n\r\n").first
      3.times { gate << true }
      assert_equal Misbehaving.body_of("/a"), ask(browser, "GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n\r\n").last
    end
  end

  # What brings the pieces, and what keeps them, as far as they are told.
  Flow = Struct.new(:paused) do
    def pause = self.paused = true

    def resume = self.paused = false

    def step_aside = nil
  end
  Kept = Struct.new(:over, :bytes) do
    def grew(_held, count) = (self.bytes += count) && over
  end
  private_constant :Flow, :Kept

  test "what is too much together is not read further until others have gone, or somebody comes" do
    [:resume, :take!].each do |going_on|
      held, flow, kept = held_of("http://a.example/")
      held.push("x" * 10)
      assert_equal [false, false, 10], [flow.paused, held.stopped?, kept.bytes]
      kept.over = true
      held.push("x")
      assert_equal [true, true, false], [flow.paused, held.stopped?, held.settled_at.nil?]
      held.public_send(going_on)
      refute flow.paused
      held.push("x")
      assert_equal going_on == :resume, flow.paused
      assert_equal (going_on == :resume) ? 12 : 11, kept.bytes
    end
  end

  test "a short answer, which says so, is waited for as a whole, any other from its beginning" do
    {nil => true, "1000000" => true, "100" => false}.each do |length, begun|
      held, = held_of("http://a.example/", headers: [["content-length", length]].select(&:last))
      assert_equal begun, held.satisfied?
      held.complete(Hikyaku::HTTP::Response.new(status: 200, headers: [], body: "", url: "http://a.example/"))
      assert_predicate held, :satisfied?
    end
  end

  test "the page's note is told when all is there, and not when it is asked for" do
    page = Hikyaku::HTTP::Proxy::PageLog::Page.new("http://a.example/", prefetch: true, now: 0.0)
    note = page.add("http://a.example/a", :image, :prefetch, 0.0, requested: false)
    held, = held_of("http://a.example/a", note: note)
    held.push("12345")
    assert_nil note.ended_at
    held.complete(Hikyaku::HTTP::Response.new(status: 203, headers: [], body: "12345", url: "http://a.example/a"))
    assert_equal [203, 5, held.settled_at], note.to_h.values_at(:status, :bytes, :ended_at)
    assert_equal "12345", held.take!.read
  end

  private

  def held_of(url, note: nil, headers: [])
    kept, flow = Kept.new(false, 0), Flow.new(false)
    held = Hikyaku::HTTP::Proxy::Prefetcher::BufferedResponse.new(url, nil, Hikyaku::HTTP::Client::Driver.new)
    held.attach(kept, note)
    held.head_came(Hikyaku::HTTP::Response.new(status: 200, headers: headers, body: "", url: url), flow)
    [held, flow, kept]
  end

  def visiting(way)
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html")
        yield server, proxy
      end
    end
  end

  # @return [Array<String>] of the body
  def read_parts(browser, parser)
    assert browser.wait_readable(60)
    parser << browser.readpartial(65_536)
    parts = []
    while (part = parser.next)
      parts << part if part.is_a?(String)
    end
    parts
  end

  def count(server, target) = server.log.count { |entry| entry[2] == target }
end
