# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "socket"
require "hikyaku/http/client"
require "hikyaku/http/client/route"

# The expectations are what curl does, but for ports in no_proxy, which it does not know.
class HTTPClientEnvironmentTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  Environment = HTTP::Client::Environment
  PROXY = "http://proxy.example:3128"
  private_constant :HTTP, :Environment, :PROXY

  # Variables, and the proxies for http and for https.
  VARIABLES = [
    [{}, nil, nil],
    [{"http_proxy" => PROXY}, PROXY, nil], [{"HTTP_PROXY" => PROXY}, nil, nil],
    [{"https_proxy" => PROXY}, nil, PROXY], [{"HTTPS_PROXY" => PROXY}, nil, PROXY],
    [{"https_proxy" => PROXY, "HTTPS_PROXY" => "http://other.example"}, nil, PROXY], [{"https_proxy" => "", "HTTPS_PROXY" => PROXY}, nil, PROXY],
    [{"all_proxy" => PROXY}, PROXY, PROXY], [{"ALL_PROXY" => PROXY}, PROXY, PROXY], [{"all_proxy" => PROXY, "ALL_PROXY" => "http://other.example"}, PROXY, PROXY],
    [{"http_proxy" => PROXY, "all_proxy" => "http://other.example:1"}, PROXY, "http://other.example:1"],
    [{"http_proxy" => "", "all_proxy" => ""}, nil, nil],
    [{"http_proxy" => "127.0.0.1:3128"}, "http://127.0.0.1:3128", nil], [{"http_proxy" => " proxy.example:3128 "}, PROXY, nil], [{"http_proxy" => "[::1]:3128"}, "http://[::1]:3128", nil]
  ].freeze

  # What no_proxy says; what is asked straight, and what by the proxy.
  EXCEPTIONS = {
    "*" => [%w[http://a.example http://127.0.0.1 http://[::1]], []],
    "" => [[], %w[http://a.example http://127.0.0.1 http://localhost http://[::1]]],
    "example.test" => [%w[http://example.test http://example.test:81 http://example.test. http://a.b.EXAMPLE.test], %w[http://anexample.test http://example.test.a http://test http://127.0.0.1]],
    ".example.test" => [%w[http://example.test http://a.example.test], %w[http://anexample.test]],
    "Example.TEST." => [%w[http://example.test http://a.example.test.], %w[http://example]],
    "a.test, b.test\tc.test,,d.test" => [%w[http://a.test http://b.test http://c.test http://d.test], %w[http://e.test]],
    "*.example.test,*" => [[], %w[http://a.example.test]],
    "," => [[], %w[http://a.test]], "." => [[], %w[http://a.test]],
    "localhost" => [%w[http://localhost:3000 http://a.localhost], %w[http://127.0.0.1]],
    "example.test:81" => [%w[http://example.test:81 http://a.example.test:81], %w[http://example.test http://example.test:8]],
    "127.0.0.1" => [%w[http://127.0.0.1 http://127.0.0.1:3000 http://2130706433], %w[http://127.0.0.2 http://1.127.0.0.1.example]],
    "127.0.0.1:81" => [%w[http://127.0.0.1:81], %w[http://127.0.0.1]],
    "10.0.0.0/8,192.168.1.0/24" => [%w[http://10.1.2.3 http://192.168.1.255], %w[http://11.1.2.3 http://192.168.2.1 http://a.example http://[::a01:203]]],
    "::1" => [%w[http://[::1] http://[::1]:81], %w[http://[::2] http://0.0.0.1]], "[::1]" => [%w[http://[::1]:81], %w[http://[::2]]],
    "[::1]:81" => [%w[http://[::1]:81], %w[http://[::1]]], "2001:db8::/32" => [%w[http://[2001:db8:1::1]], %w[http://[2001:db9::1]]],
    "10.0.0.0/99,[::1,1.2.3" => [[], %w[http://10.0.0.0 http://[::1] http://1.2.3.4]],
    "\xFF.test" => [[], %w[http://a.test]]
  }.freeze
  private_constant :VARIABLES, :EXCEPTIONS

  test "the proxy is the one that the variables name for the scheme" do
    VARIABLES.each do |env, *proxies|
      assert_equal(proxies, %w[http://a.example https://a.example].map { |url| proxy(url, env)&.origin&.to_s }, env.inspect)
    end
  end

  test "no_proxy names what is asked straight: names and all below them, addresses and blocks of them, and their ports" do
    EXCEPTIONS.each do |text, (straight, by_proxy)|
      env = {"http_proxy" => PROXY, "no_proxy" => text}
      assert_equal [straight, by_proxy], [*straight, *by_proxy].partition { |url| proxy(url, env).nil? }, text.inspect
    end
  end

  test "NO_PROXY says it where no_proxy says nothing" do
    env = {"http_proxy" => PROXY, "NO_PROXY" => "a.test"}
    assert_nil proxy("http://a.test", env)
    assert proxy("http://b.test", env)
    assert proxy("http://a.test", env.merge("no_proxy" => "b.test"))
  end

  test "the proxy's user and password are told to it, and shown nowhere" do
    env = {"http_proxy" => "b%6Fb:p%3Aw%2B+@proxy.example:3128"}
    route = HTTP::Client::Route.new(origin("http://a.example"), proxy("http://a.example", env))
    assert_equal "Basic #{["bob:p:w++"].pack("m0")}", route.credentials
    refute_match(/bob|p:w|p%3A/, route.inspect + route.key)
    ["bob:%zz@proxy.example", "bob:50%@proxy.example"].each do |text|
      error = assert_raises(HTTP::InvalidURL) { HTTP::Client::Route.new(origin("http://a.example"), proxy("http://a.example", {"http_proxy" => text})) }
      assert_match(/percent-encoded/, error.message)
      refute_match(/bob|zz|50/, error.message)
    end
  end

  test "a variable that names no proxy is named, and not shown" do
    ["socks5://bob:secret@proxy.example", "http://bob:secret@a b/", "://", "http://", "\xFF\xFF"].each do |text|
      error = assert_raises(HTTP::InvalidURL, text) { proxy("http://a.example", {"all_proxy" => text}) }
      assert_match(%r{the variable all_proxy names no proxy: it has to be http://HOST:PORT}, error.message)
      refute_match(/bob|secret|proxy\.example/, error.message)
    end
  end

  test "the client asks by the proxy of its environment, and looks no name up for it" do
    TCPServer.open("127.0.0.1", 0) do |server|
      asked = Thread.new { server.accept.then { |socket| socket.gets.tap { socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") } } }
      with("http_proxy" => "127.0.0.1:#{server.addr[1]}") do
        unasked = ->(*) { raise "a name was looked up" }
        IPSocket.stub(:getaddress, unasked) { Addrinfo.stub(:getaddrinfo, unasked) { assert_equal 200, HTTP::Client.new(memory: nil).get("http://a.test/b").status } }
      end
      assert_equal "GET http://a.test/b HTTP/1.1\r\n", asked.value
    end
  end

  private

  def origin(url) = HTTP::Address.parse(url).origin

  def proxy(url, env) = Environment.proxy(origin(url), env)

  def with(variables)
    before = ENV.to_h
    %w[http_proxy https_proxy all_proxy ALL_PROXY no_proxy NO_PROXY].each { |name| ENV.delete(name) }
    ENV.update(variables)
    yield
  ensure
    ENV.replace(before)
  end
end
