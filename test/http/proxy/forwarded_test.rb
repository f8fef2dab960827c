# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# What a server behind the proxy gets of a browser's request, and the browser of the answer, over sockets.
class HTTPProxyForwardedTest < Minitest::Test
  include Proxied

  # As browsers and programs write them; each with what stands in the request line upstream, where it is not the same.
  TARGETS = {
    "" => "/", "/" => "/", "?" => "/?", "?q" => "/?q", "/?" => "/?", "/a?" => "/a?", "/a??b?c" => nil, "/%7e%7E/%2f%2F%41%zz%" => nil, "/a/./b/../c/.." => nil, "/../../a" => nil,
    "/%2e%2E/%2e/a" => nil, "//a//b//" => nil, "//other.example/a" => nil, "/a;b=c,d" => nil, "/a?%20+&&=%00" => nil, "/{}|\\^`\"<>[]'()*!$" => nil, "/a?{}|\\^`\"<>[]'" => nil,
    "/?http://other.example/" => nil, "/@:80" => nil, "/a\\..\\b" => nil
  }.freeze
  VIA = /\A1\.1 hikyaku-\h{4}\z/
  private_constant :TARGETS, :VIA

  test "path and query go upstream as the browser wrote them, with every method" do
    [true, false].each do |prefetch|
      with(:well_behaved, prefetch: prefetch) do |server, proxy|
        TARGETS.each do |target, sent|
          %w[GET HEAD PUT].each do |method|
            length = (method == "PUT") ? "Content-Length: 0\r\n" : ""
            assert_equal 200, ask(connect(proxy), "#{method} HTTP://#{host(server)}#{target} HTTP/1.1\r\nHost: x\r\n#{length}\r\n").first, target
            assert_equal [method, sent || target], server.log.last[1, 2]
          end
        end
      end
    end
  end

  test "bytes beyond ASCII go upstream as they are, and disturb nothing" do
    with(:well_behaved) do |server, proxy|
      ["/\xE9?\xFF", "/\u00E9?q"].each do |target|
        status, = get(proxy, server, target, "Accept: text/html", "Referer: http://#{host(server)}/\xE9?\xE9")
        assert_equal [200, target.b], [status, server.log.last[2].b]
        status, = ask(connect(proxy), "POST http://#{host(server)}#{target} HTTP/1.1\r\nHost: x\r\nReferer: http://x/\xE9?\xE9\r\nContent-Length: 0\r\n\r\n".b)
        assert_equal [200, target.b], [status, server.log.last[2].b]
      end
      assert_equal 200, get(proxy, server, "/a.html", "Accept: text/html").first
      assert_equal 200, ask(connect(proxy), "POST http://#{host(server)}/\xE9?\xFF HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".b).first
    end
  end

  test "two targets that mean the same are asked for each, and two that are the same are one" do
    answer = ->(bytes) { "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\n#{bytes.scan("GET ").size}" if bytes.end_with?("\r\n\r\n") }
    with_origin(answer) do |origin, proxy|
      targets = %w[/%7ea /~a /%7Ea /a/../%7ea /%7ea]
      assert_equal %w[1 2 3 4 1], targets.map { |target| get(proxy, origin, target).last }
    end
  end

  test "the server is told the host of the URL, whatever the field Host says" do
    with(:well_behaved) do |server, proxy|
      ["GET %s HTTP/1.1\r\nHost: other.example\r\n\r\n", "POST %s HTTP/1.1\r\nHost: other.example\r\nContent-Length: 0\r\n\r\n", "GET %s HTTP/1.1\r\nHost:\r\n\r\n"].each do |request|
        assert_equal 200, ask(connect(proxy), format(request, server.url("/"))).first
        assert_equal host(server), server.log.last.last["host"]
      end
    end
  end

  test "a URL that is none is refused in a sentence" do
    run_proxy do |proxy|
      ["http://999.1.1.1/", "http://xn--a/", "http://a.example/#{"a" * 16_000}"].each do |url|
        status, _, body = ask(connect(proxy), "GET #{url} HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal 400, status, url[0, 40]
        assert_match(/\Ahikyaku proxy: "http:/, body)
      end
    end
  end

  test "the proxy says in each message, both ways, that it is there" do
    with(:well_behaved) do |server, proxy|
      names = [get(proxy, server, "/a.gif"), get(proxy, server, "/b.gif"), ask(connect(proxy), "POST #{server.url("/")} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
        ask(connect(proxy), "HEAD #{server.url("/")} HTTP/1.1\r\nHost: a\r\n\r\n")].map { |_, headers, _| headers["via"] }
      assert_match VIA, names.first
      assert_equal [names.first] * 4, names
      assert_equal names, server.log.map { |entry| entry.last["via"] }
    end
  end

  test "what others said in Via stays, and the version is that of the message" do
    answer = "HTTP/1.0 200 OK\r\nVia: 1.1 front\r\nContent-Length: 0\r\n\r\n"
    with_origin(answer) do |origin, proxy|
      ["GET", "PUT"].each do |method|
        browser = connect(proxy)
        browser.write("#{method} http://#{host(origin)}/ HTTP/1.0\r\nvia: 1.1 one, 1.0 two\r\nContent-Length: 0\r\n\r\n")
        assert_match(/^Via: 1\.1 front\r\n(?:.*\r\n)*Via: 1\.0 hikyaku-\h{4}\r\n/i, browser.read)
        assert_match(/^via: 1\.1 one, 1\.0 two\r\n(?:.*\r\n)*Via: 1\.0 hikyaku-\h{4}\r\n/i, origin.received.last)
      end
    end
  end

  test "a request that comes back is known by the proxy's name for its server, and by no other" do
    with(:well_behaved) do |server, proxy|
      name = get(proxy, server, "/")[1]["via"].split.last
      assert_equal 508, get(proxy, server, "/a", "Via: 1.1 other, 1.1 #{name} (it)").first
      assert_equal 508, ask(connect(proxy), "POST #{server.url("/")} HTTP/1.1\r\nHost: a\r\nVia: 1.1 #{name}\r\nContent-Length: 0\r\n\r\n").first
      ["hikyaku", "hikyaku-", "x#{name}"].each { |other| assert_equal 200, get(proxy, server, "/b", "Via: 1.1 #{other}").first }
      assert_equal 4, server.log.size
    end
  end

  test "each server knows the proxy by a name of its own, and each proxy has others" do
    origins = %w[a b c d e f].map { |host| Hikyaku::HTTP::Origin.new("http", host, 80) }
    one, other = Array.new(2) { Hikyaku::HTTP::Proxy::Forwarding::ViaName.new }
    names = origins.map { |origin| one.for(origin) }
    assert_equal names, origins.map { |origin| one.for(origin) }
    assert_operator names.uniq.size, :>, 1
    refute_equal names, origins.map { |origin| other.for(origin) }
    refute_match(/key/, one.inspect)
  end

  test "without Via nothing says that there is a proxy" do
    with(:well_behaved, via: false) do |server, proxy|
      [get(proxy, server, "/a"), ask(connect(proxy), "POST #{server.url("/")} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")].each { |_, headers, _| assert_nil headers["via"] }
      assert_equal [nil, nil], server.log.map { |entry| entry.last["via"] }
    end
  end

  test "a cookie that was set once is not set again from the cache" do
    answer = ->(bytes) { "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nSet-Cookie: a=b\r\nX-Y: z\r\nContent-Length: 0\r\n\r\n" if bytes.end_with?("\r\n\r\n") }
    with_origin(answer) do |origin, proxy|
      first, second = Array.new(2) { get(proxy, origin, "/")[1] }
      assert_equal [%w[a=b z], [nil, "z"]], [first, second].map { |headers| headers.values_at("set-cookie", "x-y") }
      assert_equal 1, origin.received.join.scan("GET ").size
    end
  end

  test "of an answer that is still right only the cookies are set that come with the word that it is" do
    cookies = ["Set-Cookie: a=1\r\n", "", "Set-Cookie: a=2\r\n", ""]
    answer = lambda do |bytes|
      next unless bytes.end_with?("\r\n\r\n")
      count = bytes.scan("GET ").size
      "HTTP/1.1 #{(count == 1) ? "200 OK" : "304 Not Modified"}\r\nCache-Control: no-cache\r\nETag: \"x\"\r\n#{cookies[count - 1]}#{"Content-Length: 1\r\n" if count == 1}\r\n#{"b" if count == 1}"
    end
    with_origin(answer) do |origin, proxy|
      answers = Array.new(4) { get(proxy, origin, "/") }
      assert_equal ["a=1", nil, "a=2", nil], answers.map { |_, headers, _| headers["set-cookie"] }
      assert_equal [[200, "b"]], answers.map { |status, _, body| [status, body] }.uniq
      assert_equal 3, origin.received.join.scan('If-None-Match: "x"').size + origin.received.join.scan('if-none-match: "x"').size
    end
  end

  test "events come as they are sent, and nothing waits behind them" do
    head = "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n"
    answer = ->(bytes) { bytes.include?("GET /events") ? format(head, "text/event-stream", "") + "data: one\n\n" : format(head, "text/plain", "Content-Length: 2\r\n") + "ok" }
    with_origin(answer) do |origin, proxy|
      assert_equal "ok", get(proxy, origin, "/before").last
      stream = connect(proxy)
      stream.write("GET http://#{host(origin)}/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
      come = +""
      come << stream.readpartial(1_000) until come.include?("data: one\n\n")
      assert_equal "ok", get(proxy, origin, "/behind").last
      assert_equal [false, true], origin.received.first(2).map { |bytes| bytes.include?("GET /events") && bytes.match?(/^Connection: close\r$/i) }
    end
  end

  test "an answer without content says no length" do
    with_origin("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n") do |origin, proxy|
      status, headers, = get(proxy, origin, "/")
      assert_equal [204, nil], [status, headers["content-length"]]
    end
  end

  test "a proxy that listens everywhere is asked for at none of the machine's addresses" do
    addresses = Socket.ip_address_list.map(&:ip_address).grep_v(/%/) | %w[127.0.0.1 127.9.9.9 0.0.0.0 :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1]
    run_proxy(host: "0.0.0.0", users: {"ada" => "secret"}, allow: ["0.0.0.0/0", "::/0"]) do |proxy|
      user = "Proxy-Authorization: Basic #{["ada:secret"].pack("m0")}\r\n"
      addresses.each do |address|
        place = "#{address.include?(":") ? "[#{address}]" : address}:#{proxy.port}"
        ["GET http://#{place}/ HTTP/1.1\r\n", "PUT http://#{place}/ HTTP/1.1\r\nContent-Length: 0\r\n", "CONNECT #{place} HTTP/1.1\r\n"].each do |request|
          status, _, body = ask(connect(proxy), "#{request}Host: a\r\n#{user}\r\n")
          assert_equal 403, status, request
          assert_includes body, "leads to the proxy itself", request
        end
      end
    end
  end
end
