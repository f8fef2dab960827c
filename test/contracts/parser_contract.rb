# frozen_string_literal: true

require "hikyaku/http"
require "http/outcome"
require "http/vectors"

# What the parser must do with either reader of heads. Including tests say by `native?` which.
module ParserContract
  extend SentenceTests

  Parser = Hikyaku::HTTP::Parser
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

  test "the vectors come to what they say" do
    assert_operator Vectors.all.size, :>, 400
    Vectors.all.each { |vector| assert_equal vector.expected, outcome(vector), vector.name }
  end

  test "the vectors come to what they say, cut at every byte" do
    Vectors.all.each do |vector|
      (1...vector.bytes.bytesize).each { |first| assert_equal vector.expected, outcome(vector, first: first), "#{vector.name}, after #{first}" }
    end
  end

  test "the vectors come to what they say, byte by byte" do
    Vectors.all.each { |vector| assert_equal vector.expected, outcome(vector, first: 1, step: 1), vector.name }
  end

  test "a request is told in parts: its head, pieces of its body, its end" do
    parser = parser_of(:request)
    assert_nil parser.next
    parser << "POST /a?b HTTP/1.1\r\nHost: c\r\nX-Y: 1\r\nx-y: 2\r\nContent-Length: 5\r\n\r\nhe"
    head = parser.next
    assert_equal ["POST", "/a?b", "/a", "b", "c", :origin, 1], [head.method, head.target, head.path, head.query, head.authority, head.form, head.minor]
    assert_equal ["1", %w[1 2], nil, []], [head["X-y"], head.values("x-Y"), head["z"], head.values("z")]
    assert_equal [:length, 5], [head.framing, head.content_length]
    assert_equal ["he", nil], [parser.next, parser.next]
    parser << "llo"
    assert_equal ["llo", :end, nil], [parser.next, parser.next, parser.next]
  end

  test "all strings are binary, and those of heads are frozen" do
    parser = parser_of(:request) << "PUT /a?b HTTP/1.1\r\nHost: c\r\nX: \xC3\xA9\r\nContent-Length: 2\r\n\r\n\xC3\xA9"
    head = parser.next
    strings = [head.method, head.target, head.path, head.query, head.authority, *head.headers.flatten]
    assert_equal [Encoding::BINARY], [*strings, parser.next].map(&:encoding).uniq
    assert strings.all?(&:frozen?)
    assert head.frozen? && head.headers.frozen? && head.headers.all?(&:frozen?)
    assert_equal "\xC3\xA9".b, head["x"]
  end

  test "the caller's bytes are not kept: they may change afterwards" do
    bytes = +"GET / HTTP/1.1\r\nHo"
    parser = parser_of(:request) << bytes
    bytes.replace("!" * 30)
    parser << "st: a\r\n\r\n"
    assert_equal "a", parser.next.authority
  end

  test "each response is parsed as the answer to its own request" do
    parser = parser_of(:response) << "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" << OK
    parser.request_method = "HEAD"
    assert_equal [:none, nil], parser.next.then { |head| [head.framing, head.content_length] }
    assert_equal :end, parser.next
    parser.request_method = "GET"
    assert_equal [200, "OK", :length], parser.next.then { |head| [head.status, head.reason, head.framing] }
    assert_equal ["hi", :end, nil], [parser.next, parser.next, parser.next]
  end

  test "a response has its fields in lower case as well, and knows how long its head is" do
    head = "HTTP/1.1 200 Fine\r\nX-Y: 1\r\nx-y: 2\r\nX#{"Long" * 30}: \xC3\xA9\r\nContent-Length: 0\r\n\r\n".b
    response = (parser_of(:response) << head << OK).next
    assert_equal [["x-y", "1"], ["x-y", "2"], ["x#{"long" * 30}", "\xC3\xA9".b], %w[content-length 0]], response.fields
    assert_equal [["X-Y", "1"], ["x-y", "2"], ["X#{"Long" * 30}", "\xC3\xA9".b], %w[Content-Length 0]], response.headers
    assert_equal [head.bytesize, "Fine", "1", %w[1 2], nil, []], [response.bytes, response.reason, response["X-y"], response.values("x-Y"), response["z"], response.values("z")]
    assert response.frozen? && [*response.fields, *response.headers, response.fields, response.reason].all?(&:frozen?)
    strings = [response.reason, *response.fields.flatten, *response.headers.flatten]
    assert_equal [[Encoding::BINARY], true], [strings.map(&:encoding).uniq, strings.all?(&:frozen?)]
  end

  test "a response until the connection is closed ends then" do
    parser = parser_of(:response) << "HTTP/1.1 200 OK\r\n\r\nhello"
    refute_predicate parser.next, :keep_alive?
    assert_equal ["hello", nil], [parser.next, parser.next]
    parser << " you"
    parser.close
    assert_equal [" you", :end, nil], [parser.next, parser.next, parser.next]
  end

  test "what has arrived before the connection was closed is still told" do
    parser = parser_of(:request) << GET << GET
    parser.close
    assert_equal 4, [parser.next, parser.next, parser.next, parser.next].compact.size
    assert_nil parser.next
  end

  test "a message that is cut off is malformed" do
    [GET.chop, "\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh"].each do |bytes|
      parser = parser_of(:request) << bytes
      parser.close
      assert_equal :truncated, assert_raises(Parser::Malformed) { loop { parser.next or flunk } }.reason
    end
  end

  test "a parser that has refused something refuses for ever" do
    parser = parser_of(:request) << "GET\r\n"
    errors = Array.new(2) { assert_raises(Parser::Malformed) { parser.next } }
    assert_equal [:method, 400], [errors.first.reason, errors.first.status]
    assert_kind_of Hikyaku::Error, errors.first
    parser << GET
    assert_raises(Parser::Malformed) { parser.next }
  end

  test "a parser is idle between messages alone" do
    parser = parser_of(:request)
    assert_predicate parser, :idle?
    GET.each_char do |byte|
      parser << byte
      head = parser.next
      refute_predicate parser, :idle?
      assert_equal :end, parser.next if head
    end
    assert_predicate parser, :idle?
    parser << "\r\n"
    assert_nil parser.next
    refute_predicate parser, :idle?
    parser << "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
    parser.next
    refute_predicate parser, :idle?
  end

  test "after CONNECT, a tunnel or another protocol the rest is left to the caller" do
    parser = parser_of(:request) << "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n\x16"
    assert_equal :authority, parser.next.form
    assert_equal [:end, nil, "\x16", ""], [parser.next, parser.next, parser.rest, parser.rest]
    parser << GET
    assert_nil parser.next
    assert_equal GET, parser.rest

    [["CONNECT", "HTTP/1.1 200 OK\r\n\r\n"], ["GET", "HTTP/1.1 101 x\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n"]].each do |method, head|
      parser = parser_of(:response) << head << "raw"
      parser.request_method = method
      assert_predicate parser.next, :upgrade?
      assert_equal [:end, nil, "raw"], [parser.next, parser.next, parser.rest]
    end
  end

  test "a server that takes an offer to upgrade finds the rest" do
    parser = parser_of(:request) << "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw"
    assert_predicate parser.next, :upgrade?
    assert_equal [:end, "raw"], [parser.next, parser.rest]
  end

  test "an interim response is followed by the response" do
    parser = parser_of(:response) << "HTTP/1.1 100 Continue\r\n\r\n" << OK
    assert_predicate parser.next, :interim?
    assert_equal :end, parser.next
    refute_predicate parser.next, :interim?
  end

  test "many pipelined messages and long bodies take time in proportion" do
    parser = parser_of(:request) << GET * 20_000
    heads = 0
    while (part = parser.next)
      heads += 1 unless part == :end
    end
    assert_equal 20_000, heads

    parser = parser_of(:response) << OK * 20_000
    heads = 0
    while (part = parser.next)
      heads += 1 if part.is_a?(Parser::Response)
    end
    assert_equal 20_000, heads

    parser = parser_of(:response)
    "HTTP/1.1 200 OK\r\n#{"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 90}Content-Length: 2000000\r\n\r\n".each_char { |byte| heads += 1 if (parser << byte).next }
    assert_equal 20_001, heads
    20_000.times { assert_equal 100, (parser << "x" * 100).next.bytesize }
    assert_equal :end, parser.next
  end

  test "a value of much white space takes time in proportion" do
    parser = parser_of(:request) << "GET / HTTP/1.1\r\nHost: a\r\nX: a#{" " * 30_000}b#{"\t" * 1_000}\r\n\r\n"
    assert_equal 30_002, parser.next["x"].bytesize
  end

  test "limits without bounds are none" do
    limits = %i[max_leading_lines max_method_bytes max_target_bytes max_line_bytes max_head_bytes max_headers max_chunk_line_bytes max_trailer_bytes]
    parser = parser_of(:request, **limits.to_h { |name| [name, Float::INFINITY] })
    parser << "\r\n" * 10 << "A" * 50 << " /" << "a" * 70_000 << " HTTP/1.1\r\nHost: a\r\n" << "X: y\r\n" * 200 << "\r\n"
    assert_equal [70_001, 201], parser.next.then { |head| [head.target.bytesize, head.headers.size] }
    parser = parser_of(:response, **limits.to_h { |name| [name, Float::INFINITY] })
    parser << "HTTP/1.1 200 #{"a" * 70_000}\r\n" << "X: y\r\n" * 20_000 << "\r\n"
    assert_equal [70_000, 20_000], parser.next.then { |head| [head.reason.bytesize, head.headers.size] }
  end

  test "there are requests and responses, and limits that have names" do
    assert_raises(ArgumentError) { parser_of(:both) }
    assert_raises(ArgumentError) { parser_of(:request, max_bytes: 1) }
  end

  test "nothing that may be secret is shown" do
    parser = parser_of(:request) << "GET /?authorization=secret HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\nGET /secret"
    response = (parser_of(:response) << "HTTP/1.1 200 secret\r\nSet-Cookie: secret\r\nContent-Length: 0\r\n\r\n").next
    shown = [parser.next.inspect, parser.inspect, response.inspect]
    refute_includes shown.join, "secret"
    assert_includes shown.first, "GET Host Authorization"
  end

  private

  def parser_of(kind, **limits) = Parser.new(kind, native: native?, **limits)

  def outcome(vector, first: 0, step: 0)
    Outcome.of(vector.kind, vector.bytes, method: vector.method, first: first, step: step, limits: vector.limits, native: native?)
  end
end
