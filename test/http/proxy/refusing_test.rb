# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# What is said to who is refused, and what becomes of their connection.
class HTTPProxyRefusingTest < Minitest::Test
  include Proxied

  BODY = ["Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"].freeze
  private_constant :BODY

  test "a connection that ends with a refusal is said to end, and one that does not goes on" do
    run_proxy do |proxy|
      refused = "127.0.0.1:#{TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }}"
      {"http://169.254.169.254/" => "403", "https://a/" => "400", "http://#{refused}/" => "502", "http://hikyaku.proxy/nothing" => nil}.each do |url, status|
        BODY.each { |body| assert_last(proxy, "POST #{url} HTTP/1.1\r\nHost: a\r\n#{body}", status) } if status
        assert_goes_on(proxy, "GET #{url} HTTP/1.1\r\nHost: a\r\n\r\n", status || "404")
        assert_goes_on(proxy, "HEAD #{url} HTTP/1.1\r\nHost: a\r\n\r\n", status || "404")
      end
      assert_last(proxy, "CONNECT #{refused} HTTP/1.1\r\nHost: a\r\n\r\n", "502")
      assert_last(proxy, "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: a\r\n\r\n", "403")
      assert_last(proxy, "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400")
    end
  end

  test "who does not say who they are is told so, and whether they may say it on this connection" do
    run_proxy(users: {"ada" => "secret"}) do |proxy|
      assert_goes_on(proxy, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "407")
      assert_last(proxy, "POST http://a/ HTTP/1.1\r\nHost: a\r\n#{BODY.first}", "407")
    end
  end

  test "who is one too many is told so, as many as can be at a time, and let go when they have gone or heard" do
    away = Hikyaku::HTTP::Proxy::Admission::Rejected.new
    server = TCPServer.new("127.0.0.1", 0)
    ours, theirs = Array.new(20) { [TCPSocket.new("127.0.0.1", server.addr[1]), server.accept] }.transpose
    theirs.each { |socket| away.add(socket, "full") }
    assert_equal [16, 4], [away.size, theirs.count(&:closed?)]
    ours.each { |socket| assert_match(/\AHTTP\/1\.1 503 .*\r\n\r\nhikyaku proxy: full\n\z/m, socket.read) }
    ours.first(8).each(&:close)
    wait_until { away.size == 8 }
    wait_until { away.size.zero? && theirs.all?(&:closed?) } # they have heard
  ensure
    [server, away, *ours].each { |one| one&.close }
  end

  test "without descriptors left everybody is told so, and it goes on when there are some" do
    Misbehaving.run(:well_behaved) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/before")
        asked = ["GET #{server.url("/known")}", "GET #{server.url("/new")} HTTP/1.1\r\nCookie: a=b", "POST #{server.url("/post")}", "CONNECT #{host(server)}"]
        browsers = asked.to_h { |line| [line, connect(proxy)] }
        browsers.each_value { |browser| ask(browser, "GET http://hikyaku.proxy/ HTTP/1.1\r\nHost: a\r\n\r\n") }
        late = Socket.new(:INET, :STREAM)
        proxy.user_state.close_idle
        without_descriptors do |again|
          browsers.each do |line, browser|
            count = proxy.connections
            again.call
            browser.write("#{line}#{" HTTP/1.1" unless line.include?("HTTP/1.1")}\r\nHost: a\r\n\r\n")
            assert_match(/\AHTTP\/1\.1 503 .*^Connection: close\r\n.*ulimit -n/m, browser.wait_readable(60) && browser.readpartial(4_096), line) unless line.start_with?("GET")
            assert_match(/\AHTTP\/1\.1 503 .*ulimit -n/m, browser.readpartial(4_096), line) if line.start_with?("GET")
            next if line.start_with?("GET")
            wait_until { proxy.connections < count } # its descriptor is there again
            again.call
          end
          again.call
          late.connect(Addrinfo.tcp("127.0.0.1", proxy.port))
          assert_match(/\AHTTP\/1\.1 503 .*^Connection: close\r\n.*ulimit -n/m, late.wait_readable(60) && late.readpartial(4_096))
          late.close
        end
        assert_equal 200, get(proxy, server, "/after").first
      end
    end
  end

  private

  def without_descriptors
    limits = Process.getrlimit(:NOFILE)
    filling = []
    # It would close what earlier tests have left open.
    GC.start
    GC.disable
    Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").map(&:to_i).max + 8, limits.last)
    fill = lambda do
      loop { filling << File.open(File::NULL) }
    rescue Errno::EMFILE
      nil
    end
    fill.call
    yield fill
  ensure
    GC.enable
    Process.setrlimit(:NOFILE, *limits)
    filling.each(&:close)
  end

  def assert_last(proxy, request, status)
    browser = connect(proxy)
    browser.write(request)
    assert_match(%r{\AHTTP/1\.1 #{status} .*^Connection: close\r\n}m, browser.read, request)
  end

  def assert_goes_on(proxy, request, status)
    browser = connect(proxy)
    2.times do
      found, headers, = ask(browser, request)
      assert_equal [status, nil], [found.to_s, headers["connection"]], request
    end
  end
end
