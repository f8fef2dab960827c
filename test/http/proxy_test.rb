# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# The proxy as a browser sees it, over sockets, with servers on the loopback.
class HTTPProxyTest < Minitest::Test
  include Proxied

  Proxy = Hikyaku::HTTP::Proxy
  private_constant :Proxy

  # Serves one page with inline images, and what Misbehaving would.
  class Site < Misbehaving::WellBehaved
    IMAGES = Array.new(20) { |i| "/i/#{i}.gif" }
    HTML = "<html><body>#{IMAGES.map { |path| %(<img src="#{path}">) }.join}</body></html>"

    def misbehave(connection, request)
      return super unless request.path == "/page.html"
      connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: #{HTML.bytesize}\r\n\r\n#{HTML}")
    end
  end

  test "a GET comes as the server gave it, on a connection that is kept" do
    with(:well_behaved) do |server, proxy|
      browser = connect(proxy)
      2.times do |i|
        status, headers, body = ask(browser, "GET #{server.url("/#{i}.txt")} HTTP/1.1\r\nHost: #{host(server)}\r\n\r\n")
        assert_equal [200, Misbehaving.body_of("/#{i}.txt"), Misbehaving.etag_of("/#{i}.txt")], [status, body, headers["etag"]]
      end
    end
  end

  test "what a page contains is fetched before the browser asks, and only once" do
    Misbehaving.run(Site.new) do |server|
      run_proxy do |proxy|
        browser = connect(proxy)
        ask(browser, "GET #{server.url("/page.html")} HTTP/1.1\r\nHost: #{host(server)}\r\nAccept: text/html,*/*\r\nUser-Agent: test\r\n\r\n")
        wait_until { server.log.size == 21 }
        Site::IMAGES.each do |path|
          status, _, body = ask(browser, "GET #{server.url(path)} HTTP/1.1\r\nHost: #{host(server)}\r\nAccept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\r\nReferer: #{server.url("/page.html")}\r\nUser-Agent: test\r\n\r\n")
          assert_equal [200, Misbehaving.body_of(path)], [status, body]
        end
        assert_equal 21, server.log.size
      end
    end
  end

  test "another identity gets nothing that was fetched for the first" do
    Misbehaving.run(Site.new) do |server|
      run_proxy do |proxy|
        ask(connect(proxy), "GET #{server.url("/page.html")} HTTP/1.1\r\nHost: #{host(server)}\r\nAccept: text/html\r\nCookie: who=ada\r\n\r\n")
        wait_until { server.log.size == 21 }
        ask(connect(proxy), "GET #{server.url("/i/1.gif")} HTTP/1.1\r\nHost: #{host(server)}\r\nAccept: image/*\r\nCookie: who=bob\r\n\r\n")
        assert_equal 22, server.log.size
        assert_equal "who=bob", server.log.last.last["cookie"]
        refute_equal server.log.last.first, server.log.first.first, "they share a connection"
      end
    end
  end

  test "a POST passes through with its body, and its answer comes back" do
    with(:well_behaved) do |server, proxy|
      status, _, body = ask(connect(proxy), "POST #{server.url("/a")} HTTP/1.1\r\nHost: #{host(server)}\r\nContent-Length: 5\r\n\r\nhello")
      assert_equal [200, "POST /a\n"], [status, body]
      assert_equal "5", server.log.first.last["content-length"]
    end
  end

  test "CONNECT is a tunnel" do
    with(:well_behaved) do |server, proxy|
      browser = connect(proxy)
      browser.write("CONNECT #{host(server)} HTTP/1.1\r\nHost: #{host(server)}\r\n\r\n")
      assert_match(/\AHTTP\/1\.1 200 /, browser.readpartial(100))
      status, _, body = ask(browser, "GET /t HTTP/1.1\r\nHost: x\r\n\r\n")
      assert_equal [200, Misbehaving.body_of("/t")], [status, body]
    end
  end

  {
    "GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" => 403, "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n" => 403,
    "GET http://metadata.google.internal/ HTTP/1.1\r\nHost: metadata.google.internal\r\n\r\n" => 403, "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" => 403,
    "POST http://[::1]:%d/ HTTP/1.1\r\nHost: [::1]:%d\r\nContent-Length: 0\r\n\r\n" => 403
  }.each do |request, status|
    test "without leave #{request[/\A\S+ \S+/]} is refused" do
      Misbehaving.run(:well_behaved) do |server|
        run_proxy(allow: []) do |proxy|
          assert_equal status, ask(connect(proxy), request.gsub("%d", server.port.to_s)).first
          assert_empty server.log
        end
      end
    end
  end

  [
    "GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "GET http://127.0.0.1:%d/ HTTP/1.1\nHost: a\n\n",
    "GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
  ].each do |request|
    test "#{request[/\r?\n.*/m].inspect} is refused, and nothing goes on" do
      with(:well_behaved) do |server, proxy|
        assert_equal 400, ask(connect(proxy), request.gsub("%d", server.port.to_s)).first
        assert_empty server.log
      end
    end
  end

  test "a server that is not there, and one that answers nonsense, are told in a sentence" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    run_proxy do |proxy|
      status, _, body = ask(connect(proxy), "GET http://127.0.0.1:#{port}/ HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal 502, status
      assert_match(/\Ahikyaku proxy: .*#{port}/, body)
    end
    with(:bad_chunk) do |server, proxy|
      browser = connect(proxy)
      browser.write("GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n\r\n")
      said = browser.read
      refute_includes said, "0\r\n\r\n" # it is broken off, not ended
      assert_equal 1, said.scan("HTTP/1.1 ").size
    end
  end

  test "beyond the loopback it listens for named users alone" do
    assert_raises(Hikyaku::ConfigError) { Proxy.new(host: "0.0.0.0", memory: nil) }
    Misbehaving.run(:well_behaved) do |server|
      run_proxy(users: {"ada" => "secret"}) do |proxy|
        get = "GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n"
        status, headers, = ask(connect(proxy), "#{get}\r\n")
        assert_equal [407, 'Basic realm="hikyaku proxy", charset="UTF-8"'], [status, headers["proxy-authenticate"]]
        assert_equal 407, ask(connect(proxy), "#{get}Proxy-Authorization: Basic #{["ada:wrong"].pack("m0")}\r\n\r\n").first
        assert_equal 200, ask(connect(proxy), "#{get}Proxy-Authorization: Basic #{["ada:secret"].pack("m0")}\r\n\r\n").first
        assert_nil server.log.first.last["proxy-authorization"]
      end
    end
  end

  test "its page shows servers and pages, and its switch is for the page alone" do
    with(:well_behaved) do |server, proxy|
      browser = connect(proxy)
      ask(browser, "GET #{server.url("/x.html")} HTTP/1.1\r\nHost: #{host(server)}\r\nAccept: text/html\r\n\r\n")
      status, headers, body = ask(browser, "GET http://hikyaku.proxy/ HTTP/1.1\r\nHost: hikyaku.proxy\r\n\r\n")
      assert_equal 200, status
      assert_includes body, host(server)
      assert_match(/default-src 'none'/, headers["content-security-policy"])
      assert_equal 403, ask(browser, post("token=wrong")).first
      assert_equal 303, ask(browser, post("token=#{body[/name="token" value="([^"]+)"/, 1]}")).first
      refute_predicate proxy.user_state, :prefetch?
      assert_equal 421, ask(connect(proxy), "GET / HTTP/1.1\r\nHost: evil.example:#{proxy.port}\r\n\r\n").first
    end
  end

  test "beyond so many connections one is told so, and taken again when another has ended" do
    with(:well_behaved, max_connections: 2) do |server, proxy|
      first, = Array.new(2) { connect(proxy).tap { |browser| assert_equal 200, ask(browser, "GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n\r\n").first } }
      third = connect(proxy)
      third.write("GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\nX: #{"x" * 60_000}\r\n\r\n")
      assert_match(/\AHTTP\/1\.1 503 .*^Connection: close\r\n.*too many connections/m, third.read)
      first.close
      served = false
      wait_until do
        served ||= get(proxy, server, "/a").first == 200
        sleep 0.02
        served
      rescue EOFError, SystemCallError
        false
      end
    end
  end

  test "without descriptors left it waits before each try, and goes on when there are some" do
    with(:well_behaved) do |server, proxy|
      listener = proxy.instance_variable_get(:@server)
      tries, short = [], true
      listener.define_singleton_method(:accept_nonblock) do |**options|
        tries << Process.clock_gettime(Process::CLOCK_MONOTONIC)
        raise Errno::EMFILE if short
        singleton_class.remove_method(:accept_nonblock)
        accept_nonblock(**options)
      end
      browser = connect(proxy)
      # Each time it tries twice: to accept the connection, and to reject it. The pause is a quarter of a second.
      wait_until { tries.size >= 5 }
      assert_operator tries[4] - tries[0], :>=, 2 * 0.25
      short = false
      assert_equal 200, ask(browser, "GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n\r\n").first
    end
  end

  private

  def post(body) = "POST http://hikyaku.proxy/switch HTTP/1.1\r\nHost: hikyaku.proxy\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
end
