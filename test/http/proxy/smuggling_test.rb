# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# Messages that two readers could understand in two ways, over sockets: none of them, and nothing behind them, gets to the other side.
#
# RFC 9112, sections 2.2, 3.2, 5, 6, 7.1 and 11.2.
class HTTPProxySmugglingTest < Minitest::Test
  include Proxied

  SMUGGLED = "GET http://%<host>s/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
  POST = "POST http://%<host>s/ HTTP/1.1\r\nHost: a\r\n"

  # Requests, each with the status of its answer; then comes another request, which is never looked at.
  REFUSED = {
    "#{POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Content-Length: 0\r\nContent-Length: 44\r\n\r\n" => 400,
    "#{POST}Content-Length: 0\r\nContent-Length: 0\r\n\r\n" => 400,
    "#{POST}Content-Length: 0, 44\r\n\r\n" => 400,
    "#{POST}Content-Length: -1\r\n\r\n" => 400,
    "#{POST}Content-Length: +4\r\n\r\nabcd" => 400,
    "#{POST}Content-Length: 4 4\r\n\r\nabcd" => 400,
    "#{POST}Content-Length: 18446744073709551616\r\n\r\n" => 400,
    "#{POST}Content-Length:\r\n\r\n" => 400,
    "#{POST}Content-Length : 4\r\n\r\nabcd" => 400,
    "#{POST}Content-Length\0: 4\r\n\r\nabcd" => 400,
    "#{POST}X: a\r\n Content-Length: 4\r\n\r\nabcd" => 400,
    "#{POST}X: a\r\n\tContent-Length: 4\r\n\r\nabcd" => 400,
    "#{POST} Content-Length: 4\r\n\r\nabcd" => 400,
    "#{POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" => 501,
    "#{POST}Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Transfer-Encoding: identity\r\n\r\n" => 400,
    "#{POST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Transfer-Encoding: \x0Bchunked\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" => 400,
    "#{POST}Transfer_Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd" => 400,
    "HEAD http://%<host>s/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => 400,
    "CONNECT %<host>s HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd" => 400,
    "CONNECT %<host>s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => 400,
    # Line ends.
    "GET http://%<host>s/ HTTP/1.1\nHost: a\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nX: y\n\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 4\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\rHost: a\r\n\r\n" => 400,
    "GET http://%<host>s/\r HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n" => 400,
    "GET http://%<host>s/\0 HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET\0 http://%<host>s/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://%<host>s/\tx HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\n\x7F: b\r\n\r\n" => 400,
    # Who is asked.
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a/b\r\n\r\n" => 400,
    "GET http://%<host>s/ HTTP/1.1\r\n\r\n" => 400,
    "GET http://a@%<host>s/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://%<host>s\\@a/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://%<host>s/#a HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    # What is too long.
    "GET http://%<host>s/#{"a" * 17_000} HTTP/1.1\r\nHost: a\r\n\r\n" => 414,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nX: #{"a" * 33_000}\r\n\r\n" => 431,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\n#{"X: #{"a" * 30_000}\r\n" * 3}\r\n" => 431,
    "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\n#{"X: y\r\n" * 100}\r\n" => 431,
    "#{"A" * 40} http://%<host>s/ HTTP/1.1\r\nHost: a\r\n\r\n" => 501,
    "GET http://%<host>s/ HTTP/3.0\r\nHost: a\r\n\r\n" => 505,
    "\r\n" * 5 + "GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400
  }.freeze

  # Bodies that are malformed: what went on of them before does not end.
  BODIES = ["5\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n", "5;a=\"b\nc\"\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n00;\n\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n", "5\r\nhello\r\n0\r\nTransfer-Encoding: x\r\n\r\n", "10000000000000000\r\nhello",
    "5\r\nhello\r\n0\r\n X: y\r\n\r\n", "5;#{"a" * 300}\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n#{"X: #{"y" * 1000}\r\n" * 9}\r\n"].freeze

  # Answers of servers that the browser is not given.
  ANSWERS = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 0\nContent-Length: 5\n\nhello", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 200 OK\r\n#{"X: y\r\n" * 101}\r\n", "ICY 200 OK\r\n\r\n", "<html>\r\n"
  ].freeze
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  private_constant :SMUGGLED, :POST, :REFUSED, :BODIES, :ANSWERS, :OK

  test "a request that could be understood in two ways is refused, and what is behind it is not looked at" do
    with_origin(OK) do |origin, proxy|
      REFUSED.each do |request, status|
        browser = connect(proxy)
        browser.write(format(request + SMUGGLED, host: host(origin)))
        answers = browser.read
        assert_match(/\AHTTP\/1\.1 #{status} /, answers, request[0, 200])
        assert_equal 1, answers.scan("HTTP/1.1 ").size, request[0, 200]
      end
      assert_empty origin.received.reject(&:empty?)
    end
  end

  test "a malformed body is not ended, and what is behind it is not looked at" do
    with_origin(->(_) {}) do |origin, proxy|
      BODIES.each do |body|
        browser = connect(proxy)
        browser.write(format("#{POST}Transfer-Encoding: chunked\r\n\r\n", host: host(origin)) + body + format(SMUGGLED, host: host(origin)))
        assert_match(/\AHTTP\/1\.1 4\d\d (?:(?!HTTP\/1\.1).)*\z/m, browser.read, body[0, 100])
      end
      origin.received.each { |bytes| refute_match(/\r\n0\r\n|smuggled/, bytes) }
    end
  end

  test "what of a body says nothing is not passed on" do
    with_origin(->(bytes) { OK if bytes.end_with?("\r\n0\r\n\r\n") }) do |origin, proxy|
      body = "00005;name=value;x=\"y;\\\"z\"\r\nhello\r\n000;last\r\nX-Trailer: smuggled\r\n\r\n"
      assert_equal 200, ask(connect(proxy), format("#{POST}Transfer-Encoding: chunked\r\n\r\n#{body}", host: host(origin))).first
      assert_equal "5\r\nhello\r\n0\r\n\r\n", origin.received.last.partition("\r\n\r\n").last
    end
  end

  test "a body ends where it says, and what follows is another request" do
    with_origin(->(bytes) { OK if bytes.match?(/\r\n\r\n(?:GET \/x)?\z/) }) do |origin, proxy|
      browser = connect(proxy)
      smuggled = "GET /x"
      browser.write(format("#{POST}Content-Length: #{smuggled.size}\r\n\r\n#{smuggled}GET http://%<host>s/next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", host: host(origin)))
      assert_equal 2, browser.read.scan("HTTP/1.1 200 ").size
      assert_equal [["POST / HTTP/1.1", smuggled], ["GET /next HTTP/1.1", ""]], origin.received.map { |bytes| [bytes[/\A[^\r]*/], bytes.partition("\r\n\r\n").last] }
    end
  end

  test "an answer whose lines end with LF is passed on with CRLF" do
    with_origin(->(bytes) { "HTTP/1.1 200 OK\nX: a\nContent-Length: 0\n\n" if bytes.end_with?("\r\n\r\n") }) do |origin, proxy|
      browser = connect(proxy)
      browser.write(format("GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", host: host(origin)))
      assert_match(/\AHTTP\/1\.1 200 .*\r\nx: a\r\n(?:[^\n]*\r\n)*\z/m, browser.read)
    end
  end

  test "an answer whose fields are folded is passed on with one line for each" do
    with_origin(->(bytes) { "HTTP/1.1 200 OK\r\nX: a\r\n\tContent-Length: 5\r\nContent-Length: 0\r\n\r\n" if bytes.end_with?("\r\n\r\n") }) do |origin, proxy|
      browser = connect(proxy)
      browser.write(format("GET http://%<host>s/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", host: host(origin)))
      came = browser.read
      assert_match(/\AHTTP\/1\.1 200 .*\r\nx: a Content-Length: 5\r\n(?:[^\s][^\n]*\r\n)*\r\n\z/m, came)
      assert_equal ["0"], came.scan(/^content-length: (\d+)\r$/i).flatten
    end
  end

  test "an answer that could be understood in two ways is not passed on" do
    answer = nil
    with_origin(->(bytes) { answer if bytes.end_with?("\r\n\r\n") }) do |origin, proxy|
      ANSWERS.each do |bytes|
        answer = bytes
        ["GET http://%<host>s/ HTTP/1.1\r\n", "POST http://%<host>s/ HTTP/1.1\r\nContent-Length: 0\r\n"].each do |request|
          browser = connect(proxy)
          browser.write(format("#{request}Host: a\r\nConnection: close\r\n\r\n", host: host(origin)))
          assert_match(/\AHTTP\/1\.1 502 (?:(?!HTTP\/1\.1|hello).)*\z/m, browser.read, bytes[0, 200])
        end
      end
    end
  end

  test "what a server says behind its answer is given to nobody" do
    answer = "#{OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
    with_origin(answer) do |origin, proxy|
      browser = connect(proxy)
      %w[GET GET POST GET].each_with_index do |method, index|
        status, _, body = ask(browser, "#{method} http://#{host(origin)}/#{index} HTTP/1.1\r\nHost: a\r\n#{"Content-Length: 0\r\n" if method == "POST"}\r\n")
        assert_equal [200, "ok"], [status, body]
      end
    end
  end

  test "in the middle of an answer nothing is said of a body that is malformed" do
    head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun"
    with_origin(->(bytes) { head if bytes.end_with?("hello\r\n") }) do |origin, proxy|
      browser = connect(proxy)
      browser.write(format("#{POST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", host: host(origin)))
      begun = +""
      begun << browser.readpartial(1_000) until begun.end_with?("begun")
      browser.write("x\r\n")
      assert_empty browser.read
    end
  end

  test "who still speaks when the answer is given gets it whole" do
    with_origin(OK) do |origin, proxy|
      browser = connect(proxy)
      browser.write(format("#{POST}Content-Length: 1\r\nContent-Length: 1\r\n\r\n", host: host(origin)))
      browser.wait_readable
      100.times { browser.write("x" * 10_000) }
      browser.close_write
      assert_match(/\AHTTP\/1\.1 400 .*more than one Content-Length/m, browser.read)
    end
  end

  test "what a server does not want of a body is not taken for a request" do
    (browser, socket), (server, peer) = Array.new(2) { UNIXSocket.pair }
    # It takes nothing more, and has answered.
    peer.close_read
    peer.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
    browser.write(format("#{POST}Content-Length: 1000000\r\n\r\n", host: "a.example") + format(SMUGGLED, host: "a.example"))
    browser_connection = Hikyaku::HTTP::Proxy::BrowserConnection.new(socket)
    request = browser_connection.request
    passage = Hikyaku::HTTP::Proxy::PassThrough.new(browser_connection, request, Hikyaku::HTTP::Proxy::Forwarding.request(request), server)
    refute passage.run, "the browser's connection would be used on"
    socket.close_write
    assert_match(/\AHTTP\/1\.1 413 .*\r\nConnection: close\r\n\r\nno\z/m, browser.read)
  ensure
    [browser, socket, server, peer].compact.each(&:close)
  end
end
