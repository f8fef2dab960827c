# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# Servers that do not answer, and browsers that do not wait for it.
class HTTPProxyHangingTest < Minitest::Test
  include Proxied

  test "what browsers gave up keeps no place at a server that never answers it" do
    hanging do |server, proxy|
      get(proxy, server, "/before")
      7.times do |i|
        browser = connect(proxy)
        browser.write("GET #{server.url("/hang#{i}")} HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until { i > 5 || server.log.any? { |entry| entry[2] == "/hang#{i}" } }
        browser.close
      end
      assert_equal 200, get(proxy, server, "/after").first
      wait_until { proxy.connections <= 2 }
    end
  end

  test "what was fetched ahead for a page that was left keeps none, either" do
    hanging do |server, proxy|
      get(proxy, server, "/page.html", "Accept: text/html")
      wait_until { proxy.user_state.clients.connections == 6 }
      get(proxy, server, "/next.html", "Accept: text/html", "Referer: #{server.url("/page.html")}")
      assert_equal 200, get(proxy, server, "/after").first
    end
  end

  private

  def hanging
    gate = Queue.new
    page = Array.new(20) { |i| "<img src=/hang#{i}.png>" }.join
    way = Misbehaving::AsTold.new do |request, _|
      gate.pop if request.path.start_with?("/hang")
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{page.bytesize}\r\n\r\n#{page}" if request.path == "/page.html"
    end
    Misbehaving.run(way) do |server|
      run_proxy { |proxy| yield server, proxy }
    ensure
      99.times { gate << true }
    end
  end
end
