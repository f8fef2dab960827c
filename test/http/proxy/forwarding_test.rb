# frozen_string_literal: true

require "test_helper"
require "hikyaku/http"
require "hikyaku/http/proxy/forwarding"

class HTTPProxyForwardingTest < Minitest::Test
  Parser = Hikyaku::HTTP::Parser
  Forwarding = Hikyaku::HTTP::Proxy::Forwarding

  # Lines of a request, and those of what goes upstream.
  PASSED_ON = {
    ["GET http://a.example/b?c HTTP/1.1", "Host: a.example"] => ["GET /b?c HTTP/1.1", "Host: a.example", "Via: 1.1 p"],
    ["GET http://a.example HTTP/1.1", "Host: a.example"] => ["GET / HTTP/1.1", "Host: a.example", "Via: 1.1 p"],
    ["GET http://a.example?c HTTP/1.1", "Host: a.example"] => ["GET /?c HTTP/1.1", "Host: a.example", "Via: 1.1 p"],
    ["GET HTTP://A.Example:80/B HTTP/1.1", "Host: A.Example"] => ["GET /B HTTP/1.1", "Host: a.example", "Via: 1.1 p"],
    ["GET http://a.example:/ HTTP/1.1", "Host: a.example"] => ["GET / HTTP/1.1", "Host: a.example", "Via: 1.1 p"],
    ["GET http://[2001:DB8::1]:8080/ HTTP/1.1", "Host: x"] => ["GET / HTTP/1.1", "Host: [2001:db8::1]:8080", "Via: 1.1 p"],
    ["GET http://a_b.example./ HTTP/1.0"] => ["GET / HTTP/1.1", "Host: a_b.example.", "Via: 1.0 p"],
    ["GET http://a/%7e/.././/\\{|}\"<>?'`^ HTTP/1.1", "Host: a"] => ["GET /%7e/.././/\\{|}\"<>?'`^ HTTP/1.1", "Host: a", "Via: 1.1 p"],
    ["GET http://a/\xE9 HTTP/1.1", "Host: a", "X: \xE9\t y"] => ["GET /\xE9 HTTP/1.1", "Host: a", "X: \xE9\t y", "Via: 1.1 p"],
    ["PROPFIND http://a/ HTTP/1.1", "Host: a", "Content-Length: 2"] => ["PROPFIND / HTTP/1.1", "Host: a", "Content-Length: 2", "Via: 1.1 p"],
    # The order and the case of fields are the browser's.
    ["GET http://a/ HTTP/1.1", "x-b:1", "X-A:", "Host:\t a ", "cOOKIE:  c=d;e=f  ", "X-b: 2"] =>
      ["GET / HTTP/1.1", "Host: a", "x-b: 1", "X-A: ", "cOOKIE: c=d;e=f", "X-b: 2", "Via: 1.1 p"],
    # What ends here.
    ["GET http://a/ HTTP/1.1", "Host: a", "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic x", "proxy-x: y", "Keep-Alive: 5", "TE: trailers", "Trailer: X",
      "Upgrade: h2c", "HTTP2-Settings: x", "Connection: upgrade, http2-settings, TE"] => ["GET / HTTP/1.1", "Host: a", "Via: 1.1 p"],
    ["GET http://a/ HTTP/1.1", "Host: a", "Connection: close, X-One,, x-TWO", "connection: x-three", "X-One: 1", "X-Two: 2", "X-THREE: 3", "X-Four: 4", "x-one: 5"] =>
      ["GET / HTTP/1.1", "Host: a", "X-Four: 4", "Via: 1.1 p"],
    ["GET http://a/ HTTP/1.1", "Host: a", "Via: 1.0 other, 1.1 another", "Max-Forwards: 0"] => ["GET / HTTP/1.1", "Host: a", "Via: 1.0 other, 1.1 another", "Max-Forwards: 0", "Via: 1.1 p"],
    # What the connection's fields name does not unmake a request.
    ["POST http://a/ HTTP/1.1", "Host: b", "Connection: host, content-length, transfer-encoding, via", "Content-Length: 002"] =>
      ["POST / HTTP/1.1", "Host: a", "Content-Length: 2", "Via: 1.1 p"],
    ["POST http://a/ HTTP/1.1", "Host: a", "Transfer-Encoding: Chunked", "Connection: transfer-encoding"] =>
      ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Via: 1.1 p"],
    ["GET http://a/ HTTP/1.1", "Host: a", "Content-Length: 0"] => ["GET / HTTP/1.1", "Host: a", "Via: 1.1 p"],
    # Expectations.
    ["PUT http://a/ HTTP/1.1", "Host: a", "Content-Length: 1", "Expect: 100-Continue"] => ["PUT / HTTP/1.1", "Host: a", "Content-Length: 1", "Expect: 100-continue", "Via: 1.1 p"],
    ["PUT http://a/ HTTP/1.0", "Host: a", "Content-Length: 1", "Expect: 100-continue"] => ["PUT / HTTP/1.1", "Host: a", "Content-Length: 1", "Via: 1.0 p"],
    ["GET http://a/ HTTP/1.1", "Host: a", "Expect: 100-continue"] => ["GET / HTTP/1.1", "Host: a", "Via: 1.1 p"],
    # Hops are counted.
    ["OPTIONS http://a HTTP/1.1", "Host: a", "max-forwards: 05"] => ["OPTIONS * HTTP/1.1", "Host: a", "Max-Forwards: 4", "Via: 1.1 p"],
    ["OPTIONS http://a/ HTTP/1.1", "Host: a"] => ["OPTIONS / HTTP/1.1", "Host: a", "Via: 1.1 p"],
    ["OPTIONS http://a?b HTTP/1.1", "Host: a"] => ["OPTIONS /?b HTTP/1.1", "Host: a", "Via: 1.1 p"],
    ["TRACE http://a/ HTTP/1.1", "Host: a", "Max-Forwards: 1"] => ["TRACE / HTTP/1.1", "Host: a", "Max-Forwards: 0", "Via: 1.1 p"]
  }.freeze

  # Requests that two servers could understand differently, or that are none of a proxy's; the reason of the parser, or the status.
  REFUSED = {
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => :framing_conflict,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello" => :content_length_repeated,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello" => :content_length,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello" => :content_length,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello" => :content_length,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" => :transfer_encoding,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" => :transfer_encoding,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" => :transfer_encoding_unknown,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => :transfer_encoding,
    "POST http://a/ HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => :transfer_encoding,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" => :header_name,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n" => :header_name,
    "POST http://a/ HTTP/1.1\r\nHost: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => :folded,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: y\r\n\tContent-Length: 5\r\n\r\n" => :folded,
    "GET http://a/ HTTP/1.1\nHost: a\n\n" => :line_end,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 5\r\n\r\n" => :line_end,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 5\r\n\r\n" => :header_value,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n" => :header_value,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n" => :header_name,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n" => :header_name,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" => :host_repeated,
    "GET http://a/ HTTP/1.1\r\n\r\n" => :host_missing,
    "GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n" => :host,
    "GET http://a/ b HTTP/1.1\r\nHost: a\r\n\r\n" => :start_line,
    "GET http://a/ HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n" => :start_line,
    "GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n" => :version,
    "GET http://a/#b HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http://user:secret@a/ HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http://a\\@b/ HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http://a:65536/ HTTP/1.1\r\nHost: a\r\n\r\n" => :target,
    "GET http://a,b/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://a%2eb/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://a..b/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://.a/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://#{"a" * 256}/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET http://a:0/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n" => 400,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" => 400,
    "HEAD http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" => 400,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => 400,
    "TRACE http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" => 400,
    "TRACE http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: -1\r\n\r\n" => 400,
    "TRACE http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\nMax-Forwards: 0\r\n\r\n" => 400,
    "OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 9999999999\r\n\r\n" => 400,
    "PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 200-ok\r\n\r\nx" => 417,
    "PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue, x\r\n\r\nx" => 417,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nVia: 1.0 other, 1.1 p (it)\r\n\r\n" => 508,
    "GET http://a/ HTTP/1.1\r\nHost: a\r\nVia: HTTP/1.1 p\r\nConnection: via\r\n\r\n" => 508
  }.freeze

  # A response, the method and version of the request; then the lines of what goes to the browser.
  ANSWERED = [
    [["HTTP/1.1 200 Fine", "content-LENGTH: 05", "X: y"], "GET", 1, ["HTTP/1.1 200 Fine", "X: y", "Content-Length: 5", "Via: 1.1 p"]],
    [["HTTP/1.0 200", "Content-Length: 5"], "GET", 1, ["HTTP/1.1 200 ", "Content-Length: 5", "Via: 1.0 p"]],
    [["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "GET", 1, ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Via: 1.1 p"]],
    [["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "GET", 0, ["HTTP/1.1 200 OK", "Via: 1.1 p", "Connection: close"]],
    [["HTTP/1.1 200 OK", "Connection: close"], "GET", 1, ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Via: 1.1 p"]],
    [["HTTP/1.0 200 OK"], "GET", 0, ["HTTP/1.1 200 OK", "Via: 1.0 p", "Connection: close"]],
    [["HTTP/1.1 200 OK", "Content-Length: 5"], "GET", 0, ["HTTP/1.1 200 OK", "Content-Length: 5", "Via: 1.1 p", "Connection: close"]],
    [["HTTP/1.1 200 OK", "Content-Length: 0"], "GET", 1, ["HTTP/1.1 200 OK", "Content-Length: 0", "Via: 1.1 p"]],
    [["HTTP/1.1 200 OK", "Content-Length: 5"], "HEAD", 1, ["HTTP/1.1 200 OK", "Content-Length: 5", "Via: 1.1 p"]],
    [["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "HEAD", 1, ["HTTP/1.1 200 OK", "Via: 1.1 p"]],
    [["HTTP/1.1 200 OK"], "HEAD", 1, ["HTTP/1.1 200 OK", "Via: 1.1 p"]],
    [["HTTP/1.1 204 No Content", "Content-Length: 0"], "GET", 1, ["HTTP/1.1 204 No Content", "Via: 1.1 p"]],
    [["HTTP/1.1 304 Not Modified", "Content-Length: 5", "ETag: x"], "GET", 1, ["HTTP/1.1 304 Not Modified", "ETag: x", "Via: 1.1 p"]],
    [["HTTP/1.1 304 Not Modified", "Content-Length: 5"], "HEAD", 1, ["HTTP/1.1 304 Not Modified", "Via: 1.1 p"]],
    [["HTTP/1.1 200 OK", "Set-Cookie: a", "set-cookie: b", "Content-Length: 0", "Keep-Alive: max=3", "Connection: keep-alive, X-Y", "x-y: z", "Upgrade: h2", "Trailer: X",
      "Proxy-Authenticate: Basic", "Proxy-Connection: close", "Alt-Svc: clear"], "GET", 1,
      ["HTTP/1.1 200 OK", "Set-Cookie: a", "set-cookie: b", "Alt-Svc: clear", "Content-Length: 0", "Via: 1.1 p"]],
    [["HTTP/1.1 200 OK", "Content-Length: 5", "Connection: content-length"], "GET", 1, ["HTTP/1.1 200 OK", "Content-Length: 5", "Via: 1.1 p"]],
    [["HTTP/1.1 200 \xE9", "X: \xE9", "Content-Length: 0"], "GET", 1, ["HTTP/1.1 200 \xE9", "X: \xE9", "Content-Length: 0", "Via: 1.1 p"]],
    [["HTTP/1.1 999 x", "Content-Length: 0", "Via: 1.1 p"], "GET", 1, ["HTTP/1.1 999 x", "Via: 1.1 p", "Content-Length: 0", "Via: 1.1 p"]]
  ].freeze
  private_constant :Parser, :Forwarding, :PASSED_ON, :REFUSED, :ANSWERED

  test "a request is written anew, for the server that its target names" do
    PASSED_ON.each { |lines, expected| assert_equal bytes(expected), Forwarding.request(parsed(bytes(lines)), via: "p").head, lines.first }
  end

  test "what goes upstream is understood there as it was here" do
    PASSED_ON.each_key do |lines|
      request = parsed(bytes(lines))
      upstream = Forwarding.request(request, via: "p")
      again = parsed(upstream.head)
      assert_equal [request.method, request.framing, request.content_length], [again.method, again.framing, again.content_length] unless request.content_length == 0
      assert_equal [upstream.target, upstream.origin.authority], [again.target, again.authority]
      assert_includes %i[origin asterisk], again.form
    end
  end

  test "what could be understood in two ways, or is not for a proxy, goes nowhere" do
    REFUSED.each do |bytes, reason|
      error = assert_raises(Parser::Malformed, Hikyaku::HTTP::Proxy::StatusError, bytes) { Forwarding.request(parsed(bytes), via: "p") }
      assert_equal reason, error.is_a?(Parser::Malformed) ? error.reason : error.status, bytes
      assert_kind_of Hikyaku::Error, error
      refute_includes error.message, "secret"
    end
  end

  test "a malformed body is told before its message could go on" do
    ["5\nhello\r\n0\r\n\r\n", "5 ;\r\nhello", "0x5\r\nhello", "-1\r\n", "5\r\nhello0\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n"].each do |body|
      parser = Parser.new(:request) << "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n#{body}"
      upstream = Forwarding.request(parser.next)
      sent = +""
      assert_raises(Parser::Malformed) do
        while (part = parser.next)
          sent << ((part == :end) ? upstream.finish : upstream.body(part))
        end
        parser.close
        parser.next
      end
      refute_includes sent, "\r\n0\r\n"
    end
  end

  test "bodies are framed anew" do
    parser = Parser.new(:request) << "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n00005;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n"
    upstream = Forwarding.request(parser.next)
    assert_equal "5\r\nhello\r\n", upstream.body(parser.next)
    assert_equal [:end, "0\r\n\r\n", ""], [parser.next, upstream.finish, upstream.body("")]
    assert_equal "a\r\n#{"\xC3\xA9" * 5}\r\n".b, upstream.body("\u00E9" * 5)

    upstream = Forwarding.request(parsed("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"))
    assert_equal ["hello", ""], [upstream.body("hello"), upstream.finish]
  end

  test "the name in Via may be left out, and a connection may be closed" do
    request = parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\nVia: 1.1 hikyaku\r\n\r\n")
    assert_equal "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 hikyaku\r\nConnection: close\r\n\r\n", Forwarding.request(request, via: nil).head(close: true)
    assert_equal 508, assert_raises(Hikyaku::HTTP::Proxy::StatusError) { Forwarding.request(request) }.status
  end

  test "the URL and the server are told apart" do
    upstream = Forwarding.request(parsed("GET http://A.example:8080/b?c HTTP/1.1\r\nHost: x\r\n\r\n"))
    assert_equal ["http://a.example:8080/b?c", "a.example", 8080, "/b?c", "GET"], [upstream.url, upstream.origin.host, upstream.origin.port, upstream.target, upstream.method]
    assert_equal "http://a.example", Forwarding.request(parsed("OPTIONS http://a.example HTTP/1.1\r\nHost: x\r\n\r\n")).url
  end

  test "a tunnel goes to a host and a port" do
    origin = Forwarding.tunnel(parsed("CONNECT A.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"))
    assert_equal ["a.example", 443], [origin.host, origin.port]
    assert_equal "[::1]", Forwarding.tunnel(parsed("CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n")).host
    ["CONNECT a:0 HTTP/1.1", "CONNECT a,b:1 HTTP/1.1", "GET http://a/ HTTP/1.1"].each do |line|
      assert_equal 400, assert_raises(Hikyaku::HTTP::Proxy::StatusError, line) { Forwarding.tunnel(parsed("#{line}\r\nHost: x\r\n\r\n")) }.status
    end
  end

  test "a request that may go no further is answered here" do
    answer = Forwarding.request(parsed("OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n"))
    assert_equal "HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT\r\nContent-Length: 0\r\n\r\n", answer.head
    assert_equal ["", false], [answer.content, answer.close?]

    answer = Forwarding.request(parsed("TRACE http://a/ HTTP/1.0\r\nHost: a\r\nMax-Forwards: 00\r\nCookie: secret\r\nauthorization: secret\r\nX: y\r\nX-Api-Key: secret\r\n\r\n"))
    assert_equal "TRACE http://a/ HTTP/1.0\r\nHost: a\r\nMax-Forwards: 00\r\nX: y\r\n\r\n", answer.content
    assert_equal "HTTP/1.1 200 OK\r\nContent-Type: message/http\r\nContent-Length: #{answer.content.bytesize}\r\nConnection: close\r\n\r\n", answer.head
    assert_predicate answer, :close?
  end

  test "a response is written anew, for the browser that asked" do
    ANSWERED.each do |lines, method, minor, expected|
      request = parsed("#{method} http://a/ HTTP/1.#{minor}\r\nHost: a\r\nProxy-Connection: keep-alive\r\n\r\n")
      downstream = Forwarding.response(answered(bytes(lines), method), request, via: "p")
      assert_equal bytes(expected), downstream.head, lines.join(" ")
      assert_equal expected.include?("Connection: close"), downstream.close?
    end
  end

  test "what goes to the browser is understood there as it was here" do
    ANSWERED.each do |lines, method, minor, _|
      next if minor == 0
      response = answered(bytes(lines), method)
      again = answered(Forwarding.response(response, parsed("#{method} http://a/ HTTP/1.1\r\nHost: a\r\n\r\n")).head, method)
      framing = (response.framing == :until_close) ? :chunked : response.framing
      assert_equal [response.status, framing, response.content_length, true], [again.status, again.framing, again.content_length, again.keep_alive?]
    end
  end

  test "the browser's connection is kept where both want it" do
    response = answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    closing = parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    keeping = parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n")
    old = parsed("GET http://a/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    [[closing, false, true], [keeping, false, false], [keeping, true, true], [old, false, true]].each do |request, close, closed|
      downstream = Forwarding.response(response, request, close: close)
      assert_equal [closed, closed], [downstream.close?, downstream.head.include?("Connection: close\r\n")]
    end
  end

  test "a response that lasts until the server closes is chunked, or lasts until the proxy closes" do
    response = answered("HTTP/1.0 200 OK\r\n\r\n")
    downstream = Forwarding.response(response, parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"))
    assert_equal ["5\r\nhello\r\n", "0\r\n\r\n", false], [downstream.body("hello"), downstream.finish, downstream.close?]
    downstream = Forwarding.response(response, parsed("GET http://a/ HTTP/1.0\r\n\r\n"))
    assert_equal ["hello", "", true], [downstream.body("hello"), downstream.finish, downstream.close?]
  end

  test "responses that make no sense behind a proxy are refused" do
    request = parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n")
    ["HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: y\r\n\r\n", "HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n"].each do |bytes|
      assert_equal 502, assert_raises(Hikyaku::HTTP::Proxy::StatusError) { Forwarding.response(answered(bytes), request) }.status
    end
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n 5\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\rY: b\r\n\r\n", "HTTP/1.1 200 OK\r\nX : a\r\n\r\n", "HTTP/1.1 200 O\0K\r\n\r\n"].each do |bytes|
      assert_raises(Parser::Malformed, bytes) { Forwarding.response(answered(bytes), request) }
    end
  end

  test "interim responses go to those who understand them" do
    get = parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n")
    put = parsed("PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
    old = parsed("GET http://a/ HTTP/1.0\r\n\r\n")
    early = answered("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: y\r\nContent-Length: 0\r\n\r\n")
    assert_equal "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 p\r\n\r\n", Forwarding.interim(early, get, via: "p")
    assert_nil Forwarding.interim(early, old)
    continue = answered("HTTP/1.1 100 Continue\r\n\r\n")
    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", Forwarding.interim(continue, put, via: nil)
    assert_nil Forwarding.interim(continue, get)
    assert_raises(ArgumentError) { Forwarding.response(continue, get) }
    assert_raises(ArgumentError) { Forwarding.interim(answered("HTTP/1.1 200 OK\r\n\r\n"), get) }
  end

  test "a thousand names in Connection take time in proportion" do
    names = Array.new(8_000) { |index| "x#{index}" }.join(",")[0, 30_000]
    request = parsed("GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: #{names}\r\n#{(0...97).map { |index| "x#{index}: y\r\n" }.join}\r\n")
    assert_equal "GET / HTTP/1.1\r\nHost: a\r\n\r\n", Forwarding.request(request, via: nil).head
  end

  test "an event stream is one by its media type, or by any of those that are accepted" do
    {"text/event-stream" => true, "Text/Event-Stream; charset=utf-8" => true, "text/html, text/event-stream;q=0.5, */*" => true, " text/event-stream " => true,
     "text/event-streams" => false, "x-text/event-stream" => false, "multipart/mixed; type=\"text/event-stream\"" => false, "*/*" => false, "" => false}.each do |value, expected|
      assert_equal expected, Forwarding.event_stream?(["a/b", value]), value
    end
  end

  test "nothing that may be secret is shown" do
    request = parsed("GET http://a/secret?secret HTTP/1.1\r\nHost: a\r\nCookie: secret\r\n\r\n")
    response = answered("HTTP/1.1 200 secret\r\nSet-Cookie: secret\r\nContent-Length: 0\r\n\r\n")
    refute_includes [Forwarding.request(request).inspect, Forwarding.response(response, request).inspect].join, "secret"
  end

  private

  def bytes(lines) = "#{lines.map(&:b).join("\r\n".b)}\r\n\r\n".b

  def parsed(bytes) = (Parser.new(:request) << bytes).next

  def answered(bytes, method = "GET")
    parser = Parser.new(:response) << bytes
    parser.request_method = method
    parser.next
  end
end
