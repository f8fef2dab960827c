# frozen_string_literal: true

require "test_helper"
require "hikyaku/http"
require "hikyaku/http/proxy/pass_through"

# One request to its server and the answer back, between two sockets.
class HTTPProxyPassThroughTest < Minitest::Test
  Parser = Hikyaku::HTTP::Parser
  Proxy = Hikyaku::HTTP::Proxy
  LARGE = 16_777_216
  private_constant :Parser, :Proxy, :LARGE

  def setup
    (@browser, near), (@server, far) = Array.new(2) { UNIXSocket.pair }
    @near, @far = near, far
    @connection = Proxy::BrowserConnection.new(near)
  end

  def teardown
    @thread&.kill
    [@browser, @near, @server, @far].each(&:close)
  end

  test "no more of a body is taken than the server takes, but for a little" do
    begin_exchange("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: #{LARGE}\r\n\r\n")
    taken = 0
    while taken < LARGE && @browser.wait_writable(0.3)
      count = @browser.write_nonblock("x" * 65_536, exception: false)
      taken += count if count.is_a?(Integer)
    end
    assert_operator taken, :<, LARGE / 4
    @server.wait_readable
    assert_match(/\APOST \/ HTTP/, @server.readpartial(1_000))
  end

  test "a server that is silent is given up" do
    begin_exchange("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", timeout: 0.05)
    assert_equal 504, assert_raises(Proxy::StatusError) { @thread.value }.status
  end

  test "a stream of events may be silent, from the request for one or from the answer" do
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n" => nil, "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" => "text/event-stream; x=y"}.each do |request, type|
      anew
      # The response is there before its time begins.
      @server.write("HTTP/1.1 200 OK\r\nContent-Type: #{type}\r\n\r\n") if type
      begin_exchange(request, timeout: 0.05)
      sleep 0.2
      @server.write("HTTP/1.1 200 OK\r\n\r\n") unless type
      sleep 0.2
      @server.write("data: x\n\n")
      @server.close_write
      @thread.value
      assert_includes @browser.read_nonblock(10_000), "data: x\n\n"
    end
  end

  test "who has gone wants no more events; who says the next thing already does" do
    request = "GET http://a/ HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"
    begin_exchange(request)
    @browser.close_write
    assert_raises(Proxy::BrowserConnection::Disconnected) { @thread.value }
    anew
    begin_exchange(request)
    @browser.write(request)
    @server.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert @thread.value
    assert_equal "a", @connection.request.authority
  end

  test "who has gone wants no answer that is long in coming; who has but ended their half of the connection has one that is not" do
    request = "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    begin_exchange(request, grace: 0.05)
    @browser.close
    assert_raises(Proxy::BrowserConnection::Disconnected) { @thread.value }
    anew
    begin_exchange(request, grace: 60)
    @browser.close_write
    sleep 0.05
    @server.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    sleep 0.05
    @server.write("ok")
    @thread.value
    assert @browser.read_nonblock(10_000).end_with?("ok")
  end

  private

  def anew
    teardown
    setup
  end

  def begin_exchange(bytes, **options)
    @browser.write(bytes)
    request = @connection.request
    upstream = Proxy::Forwarding.request(request)
    @thread = Thread.new { Proxy::PassThrough.new(@connection, request, upstream, @far, **options).run }
    @thread.report_on_exception = false
  end
end
