# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# What passes through, or is not kept, over sockets.
class HTTPProxyPassingTest < Minitest::Test
  include Proxied

  KEPT = "Cache-Control: max-age=600\r\n"
  private_constant :KEPT

  # How a request ends, its answer's status and fields, and how often what was kept of /a, /b and /c is asked for afterwards.
  CHANGES = [
    ["POST", "/a", 200, nil, [2, 1, 1]], ["DELETE", "/a", 204, nil, [2, 1, 1]], ["PURGE", "/a", 303, "Location: /b", [2, 2, 1]], ["PUT", "/a", 201, "Content-Location: b", [2, 2, 1]],
    ["POST", "/b", 200, "Location: http://127.0.0.2/c", [1, 2, 1]], ["POST", "/a", 404, nil, [1, 1, 1]], ["POST", "/a", 500, "Location: /b", [1, 1, 1]],
    ["HEAD", "/a", 200, nil, [1, 1, 1]], ["OPTIONS", "/a", 200, "Location: /b", [1, 1, 1]]
  ].freeze
  private_constant :CHANGES

  test "what may have changed is not answered from the cache any more (RFC 9111, 4.4)" do
    CHANGES.each do |method, target, status, field, expected|
      with_origin(->(bytes) { kept_or(bytes, status, field) }) do |origin, proxy|
        all = -> { %w[/a /b /c].each { |path| assert_equal 200, get(proxy, origin, path, "Cookie: a=b").first } }
        all.call
        length = %w[HEAD OPTIONS DELETE].include?(method) ? "" : "Content-Length: 0\r\n"
        assert_equal status, ask(connect(proxy), "#{method} http://#{host(origin)}#{target} HTTP/1.1\r\nHost: a\r\n#{length}\r\n").first
        all.call
        assert_equal expected, %w[/a /b /c].map { |path| origin.received.join.scan("GET #{path} ").size }, [method, status, field].join(" ")
      end
    end
  end

  test "nor from what was fetched ahead of it" do
    answer = lambda do |bytes|
      next unless bytes.end_with?("\r\n\r\n")
      next "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 34\r\n\r\n<img src=/a.png><img src=/b.png>  " if bytes[/.*\z/m].include?("GET /page")
      kept_or(bytes, 200, "Location: /b.png").sub(KEPT, "")
    end
    with_origin(answer) do |origin, proxy|
      get(proxy, origin, "/page", "Accept: text/html")
      wait_until { proxy.user_state.prefetcher.size == 2 }
      ask(connect(proxy), "OPTIONS http://#{host(origin)}/a.png HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal 2, proxy.user_state.prefetcher.size
      ask(connect(proxy), "POST http://#{host(origin)}/a.png HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
      assert_equal 0, proxy.user_state.prefetcher.size
    end
  end

  test "what is asked for only if it is kept, and is not, is 504 (RFC 9111, 5.2.1.7)" do
    with_origin(->(bytes) { kept_or(bytes, 200, nil) }) do |origin, proxy|
      only = "Cache-Control: max-age=60, only-if-cached"
      assert_equal 504, get(proxy, origin, "/a", only).first
      assert_equal 504, get(proxy, origin, "/a", only, "Accept: text/event-stream").first
      assert_equal 504, ask(connect(proxy), "HEAD http://#{host(origin)}/a HTTP/1.1\r\nHost: a\r\n#{only}\r\n\r\n").first
      assert_empty origin.received
      assert_equal [200, 200], [get(proxy, origin, "/a").first, get(proxy, origin, "/a", only).first]
      assert_equal 1, origin.received.size
    end
  end

  test "a server that asks for what proxies ask for is refused alike with every method" do
    answer = "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"
    with_origin(answer) do |origin, proxy|
      %w[GET HEAD OPTIONS].each do |method|
        2.times { assert_equal 502, ask(connect(proxy), "#{method} http://#{host(origin)}/a.png HTTP/1.1\r\nHost: a\r\nAccept: image/*\r\n\r\n").first, method }
      end
      assert_equal 6, origin.received.join.scan(" /a.png ").size
    end
  end

  test "what was fetched ahead and is such an answer is refused as well" do
    page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 17\r\n\r\n<img src=/a.png> "
    answer = lambda do |bytes|
      next unless bytes.end_with?("\r\n\r\n")
      bytes.include?(" /a.png ") ? "HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n" : page
    end
    with_origin(answer) do |origin, proxy|
      get(proxy, origin, "/page", "Accept: text/html")
      wait_until { proxy.user_state.prefetcher.size == 1 }
      assert_equal 502, get(proxy, origin, "/a.png").first
    end
  end

  test "a stream of events that nobody asked for as one is passed on as it comes, silent or not" do
    answer = lambda do |bytes|
      next unless bytes.end_with?("\r\n\r\n")
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: #{bytes.include?("close") ? "own" : "shared"}\n\n"
    end
    origin = Proxied::Origin.new(&answer)
    run_proxy(timeout: 0.1) do |proxy|
      browser = connect(proxy)
      browser.write("GET http://#{host(origin)}/events HTTP/1.1\r\nHost: a\r\n\r\n")
      come = +""
      come << browser.readpartial(1_000) until come.include?("data: ")
      assert_includes come, "data: own\n\n"
      browser.write("GET http://#{host(origin)}/next HTTP/1.1\r\nHost: a\r\n\r\n") # has to wait
      assert_nil browser.wait_readable(0.4)
    end
  ensure
    origin&.close
  end

  test "a server has so long to answer, and then it is 504" do
    Misbehaving.run(:slow_first_byte, seconds: 5) do |server|
      run_proxy(timeout: 0.1) do |proxy|
        assert_equal 504, get(proxy, server, "/a").first
        assert_equal 504, ask(connect(proxy), "POST #{server.url("/a")} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").first
      end
    end
  end

  test "what a server says before its answer goes to those who know such, and what comes after it is the answer" do
    {"GET" => "\r\n", "POST" => "Content-Length: 0\r\n\r\n"}.each do |method, rest|
      Misbehaving.run(Misbehaving::InterimFirst.new(statuses: [100, 103, 102])) do |server|
        run_proxy do |proxy|
          said = %w[1.1 1.0].map do |version|
            browser = connect(proxy)
            browser.write("#{method} #{server.url("/a")} HTTP/#{version}\r\nHost: a\r\nConnection: close\r\n#{rest}")
            browser.read
          end
          assert_equal [%w[103 102 200], %w[200]], said.map { |text| text.scan(%r{^HTTP/1\.1 (\d+)}).flatten }, method
          assert_match(%r{\AHTTP/1\.1 103 Early Hints\r\nLink: </style\.css>; rel=preload; as=style\r\nVia: .*\r\n\r\nHTTP/1\.1 102}, said.first)
          assert(said.all? { |text| text.end_with?(Misbehaving.body_of("/a")) }) if method == "GET"
        end
      end
    end
  end

  private

  def kept_or(bytes, status, field)
    return unless bytes.end_with?("\r\n\r\n")
    last = bytes[/(?:.*\r\n\r\n)?(\S+ \S+ HTTP\/1\.1\r\n.*)\z/m, 1]
    return "HTTP/1.1 200 OK\r\n#{KEPT}Content-Length: 1\r\n\r\nx" if last.start_with?("GET ")
    "HTTP/1.1 #{status} X\r\n#{"#{field}\r\n" if field}#{"Content-Length: 0\r\n" unless status == 204}\r\n"
  end
end
